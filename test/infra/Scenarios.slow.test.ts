/** Runs the programs of docs/guides/scenarios.md on a service, and compares what they print with the comments after them. */
import { execFile } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestServer } from "../support/http/TestServer.ts"
import { blocksOf } from "../support/processes/DocumentBlocks.ts"

const kit = fileURLToPath(new URL("../../src/clients/kit/LicenseKit.ts", import.meta.url))
const [service, ...programs] = blocksOf("docs/guides/scenarios.md").filter(({ language }) => language === "ts")

const printedBy = (code: string) =>
  Array.from(code.matchAll(/^\/\/ (.*)$(?![\s\S]*^[^/\n])/gm), ([, line]) => `${line}\n`).join("")

/** A folder with the kit where a package of this name would be. */
const folder = Effect.acquireRelease(
  Effect.sync(() => {
    const path = mkdtempSync(join(tmpdir(), "licensing-scenarios-"))
    const installed = join(path, "node_modules/@licensing-service/kit")
    mkdirSync(installed, { recursive: true })
    symlinkSync(kit, join(installed, "kit.ts"))
    writeFileSync(join(installed, "package.json"), `{"type": "module", "exports": "./kit.ts"}`)
    writeFileSync(join(path, "package.json"), `{"type": "module"}`)
    writeFileSync(join(path, "service.ts"), service!.code)
    return path
  }),
  (path) => Effect.sync(() => rmSync(path, { recursive: true }))
)

const run = (path: string, env: Record<string, string>) =>
  Effect.callback<string>((resume) => {
    execFile(process.execPath, [path], { env: { ...process.env, ...env } }, (failure, out, error) =>
      resume(failure === null ? Effect.succeed(out) : Effect.die(new Error(error)))
    )
  })

layer(TestServer.layer, { excludeTestServices: true, timeout: 60_000 })("The guide of scenarios", (it) => {
  it.effect("has programs that print what their comments say", () =>
    Effect.gen(function* () {
      const { adminToken, baseUrl } = yield* TestServer
      const path = yield* folder
      const env = { LICENSING_URL: baseUrl, LICENSING_TOKEN: adminToken }
      const printed = yield* Effect.forEach(
        programs,
        ({ code }, index) =>
          Effect.suspend(() => {
            writeFileSync(join(path, `${index}.ts`), code)
            return run(join(path, `${index}.ts`), env)
          }),
        { concurrency: 3 }
      )
      for (const [index, { code, heading }] of programs.entries())
        assert.strictEqual(printed[index], printedBy(code), heading)
      assert.lengthOf(programs, 7)
    }).pipe(Effect.scoped)
  )
})
