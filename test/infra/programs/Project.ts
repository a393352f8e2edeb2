/** A project of a reader who copies the guides' programs: a folder with the packages, and a product at a service. */
import { spawn } from "node:child_process"
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { TestServer } from "../../support/http/TestServer.ts"
import { blocksOf } from "../../support/processes/DocumentBlocks.ts"

const root = fileURLToPath(new URL("../../../", import.meta.url))
const month = { reset_period: "month", overage_max: 500, max_consumptions: 1_000 } as const

/** The code of a guide in a language, in order. */
export const codes = (guide: string, language: string) =>
  blocksOf(`docs/guides/${guide}.md`)
    .filter((block) => block.language === language)
    .map(({ code }) => code)

/** A folder with the kit and other packages where npm would install them, and the product of the guides. */
export class Project extends Context.Service<
  Project,
  {
    readonly folder: string
    /** Issues a license of the product, with its seats and quotas. */
    readonly sell: Effect.Effect<{ readonly id: string; readonly license_key: string }>
    readonly ids: { readonly product_id: string; readonly policy_id: string }
  }
>()("licensing/test/Project") {
  static readonly layer = Layer.effect(
    Project,
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const product = yield* client.products.create({ payload: { name: "Editor", code: "editor-pro" } })
      const params = { id: product.id }
      const rules = { license_type: "perpetual", max_floating_users: 1, borrow_days_max: 14 } as const
      const policy = yield* client.policies.create({ params, payload: { name: "Pro", code: "pro", ...rules } })
      const limits = { ai: month, export: { max_consumptions: 2 } }
      for (const [code, payload] of Object.entries(limits)) {
        const feature = yield* client.features.create({ params, payload: { name: code, code } })
        yield* client.policies.setFeature({ params: { id: policy.id, feature_id: feature.id }, payload })
      }
      const ids = { product_id: product.id, policy_id: policy.id }
      const sell = Effect.map(client.licenses.create({ payload: ids }), ({ license, license_key }) => ({
        id: license.id,
        license_key
      }))
      return { folder: yield* folder, sell: Effect.orDie(sell), ids }
    }).pipe(Effect.orDie)
  )
}

const folder = Effect.acquireRelease(
  Effect.sync(() => {
    const path = mkdtempSync(join(tmpdir(), "licensing-programs-"))
    const kit = join(path, "node_modules/@licensing-service/kit")
    mkdirSync(kit, { recursive: true })
    symlinkSync(join(root, "src/clients/kit"), join(kit, "src"))
    const machineId = { browser: "./src/machine/BrowserMachineId.ts", default: "./src/machine/MachineId.ts" }
    const exports = { ".": "./src/LicenseKit.ts", "./machine-id": machineId }
    writeFileSync(join(kit, "package.json"), JSON.stringify({ type: "module", exports }))
    const electron = join(path, "node_modules/electron")
    cpSync(join(root, "test/infra/programs/electron.mjs"), join(electron, "index.mjs"))
    writeFileSync(join(electron, "package.json"), JSON.stringify({ exports: "./index.mjs" }))
    symlinkSync(join(root, "node_modules/standardwebhooks"), join(path, "node_modules/standardwebhooks"))
    writeFileSync(join(path, "package.json"), JSON.stringify({ type: "module" }))
    return path
  }),
  (path) => Effect.sync(() => rmSync(path, { recursive: true }))
)

/** Writes files into a folder of the project's. */
export const writeTo = Effect.fnUntraced(function* (
  name: string,
  files: { readonly [file: string]: string | undefined }
) {
  const path = join((yield* Project).folder, name)
  mkdirSync(path)
  for (const [file, code] of Object.entries(files)) writeFileSync(join(path, file), code ?? assert.fail(file))
  return path
})

/** Runs a program to its end; one that is still running is killed with the scope. */
export const start = Effect.fnUntraced(function* (
  cwd: string,
  args: ReadonlyArray<string>,
  env: Record<string, string>
) {
  const { baseUrl } = yield* TestServer
  const { CI: _, ...own } = process.env
  const said = { text: "", errors: "" }
  const child = yield* Effect.acquireRelease(
    Effect.sync(() => spawn(process.execPath, args, { cwd, env: { ...own, LICENSING_URL: baseUrl, ...env } })),
    (started) => Effect.sync(() => started.kill("SIGKILL"))
  )
  const ended = new Promise<number | null>((resolve) => child.once("close", resolve))
  child.stderr.on("data", (chunk) => {
    said.errors += chunk
  })
  const heard = new Set<() => void>([])
  child.stdout.on("data", (chunk) => {
    said.text += chunk
    for (const hear of heard) hear()
  })
  return {
    end: (signal?: NodeJS.Signals) =>
      Effect.promise(async () => {
        if (signal !== undefined) child.kill(signal)
        const code = await ended
        return { code, ...said }
      }),
    until: (sign: RegExp) =>
      Effect.callback<void>((resume) => {
        const hear = () => sign.test(said.text) && resume(Effect.void)
        heard.add(hear)
        child.once("close", () => resume(Effect.die(new Error(said.text + said.errors))))
        hear()
      })
  }
})

export const run = (...given: Parameters<typeof start>) =>
  Effect.scoped(Effect.flatMap(start(...given), ({ end }) => end())).pipe(
    Effect.map(({ code, errors, text }) => ({ code, said: text + errors }))
  )

export const bash = Effect.fnUntraced(function* (cwd: string, script: string, env: Record<string, string>) {
  const { adminToken, baseUrl } = yield* TestServer
  const code = script.replaceAll("http://127.0.0.1:8080", baseUrl)
  return yield* Effect.callback<string>((resume) => {
    const child = spawn("bash", ["-euc", code], { cwd, env: { ...process.env, TOKEN: adminToken, ...env } })
    let text = ""
    child.stdout.on("data", (chunk) => {
      text += chunk
    })
    child.once("close", (status) => resume(status === 0 ? Effect.succeed(text) : Effect.die(new Error(code + text))))
  })
})
