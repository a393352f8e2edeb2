/**
 * The service with its default configuration, its own database and its key in a file: the key is rotated while it runs.
 */
import { spawn } from "node:child_process"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, layer } from "@effect/vitest"
import { Effect, FileSystem } from "effect"
import { serverFolder } from "../../support/database/DatabaseServer.ts"
import { assertAnswered, send } from "../../support/http/Http.ts"
import { processEnvironment, runCommand } from "../../support/processes/Processes.ts"
import { program } from "../../support/processes/Program.ts"

/** Allows for other tests on a busy machine. */
const minute = 180_000

const token = "token-of-the-test-with-more-than-32-characters"

/** Starts the service and waits until it is ready; `stop` waits until it has exited. */
const serve = Effect.fnUntraced(function* (settings: Record<string, string>) {
  const main = yield* program
  const child = yield* Effect.acquireRelease(
    Effect.sync(() =>
      spawn(process.execPath, [main], {
        env: { ...processEnvironment, LICENSING_PORT: "0", LICENSING_LOG_FORMAT: "json", ...settings },
        stdio: ["ignore", "pipe", "inherit"]
      })
    ),
    (child) => Effect.sync(() => child.kill("SIGKILL"))
  )
  const port = yield* Effect.callback<number>((resume) => {
    let out = ""
    child.stdout.on("data", (chunk) => {
      out += chunk
      const [, portText] = /"api":"http:\/\/127\.0\.0\.1:(\d+)\//.exec(out) ?? []
      if (portText !== undefined) resume(Effect.succeed(Number(portText)))
    })
    child.on("exit", (code) => resume(Effect.die(new Error(`The service ended with ${code}: ${out}`))))
  })
  const stop = Effect.callback<void>((resume) => {
    child.once("exit", () => resume(Effect.void))
    child.kill("SIGTERM")
  })
  const create = (name: string) =>
    send(port, {
      method: "POST",
      path: "/api/v1/api-keys",
      headers: { authorization: `Bearer ${token}`, "idempotency-key": name },
      body: { name }
    })
  return { create, stop }
})

layer(NodeFileSystem.layer, { excludeTestServices: true, timeout: 90_000 })("The master key in a file", (it) => {
  it.effect(
    "is rotated while the service runs; without it nothing starts, and no replacement is created",
    () =>
      Effect.gen(function* () {
        const files = yield* FileSystem.FileSystem
        const folder = yield* serverFolder
        const path = `${folder}/data/master.key`
        const settings = { LICENSING_DATA_DIR: `${folder}/data`, LICENSING_BOOTSTRAP_TOKEN: token }
        const service = yield* serve(settings)
        const first = yield* service.create("first")
        assertAnswered(first, 201)
        const before = yield* files.readFileString(path)

        // As a rotation leaves it that is killed while it creates the next key.
        yield* files.writeFileString(`${path}.next.0b5e`, "")
        const rotated = yield* runCommand(settings, "master-key", "rotate")
        assert.strictEqual(rotated.code, 0, rotated.error)
        // Names the file that needs a copy, and no other.
        assert.match(rotated.error, /^The new key is in \S+\/master\.key: keep a copy of it\. .*\n$/)
        const after = yield* files.readFileString(path)
        assert.notStrictEqual(after, before)
        const names = (yield* files.readDirectory(`${folder}/data`)).filter((name) => name.startsWith("master.key"))
        const [retired] = names.filter((name) => name !== "master.key")
        assert.strictEqual(names.length, 2)
        assert.strictEqual(yield* files.readFileString(`${folder}/data/${retired}`), before)
        for (const name of names) assert.strictEqual((yield* files.stat(`${folder}/data/${name}`)).mode & 0o777, 0o600)
        for (const key of [before, after]) assert.notInclude(rotated.out + rotated.error, key.trim())

        assert.strictEqual((yield* service.create("first")).text, first.text)
        assertAnswered(yield* service.create("second"), 201)
        assert.strictEqual((yield* runCommand(settings, "keys", "rotate")).code, 0)
        yield* service.stop

        const listed = yield* runCommand(settings, "keys", "list")
        assert.strictEqual(listed.out.trimEnd().split("\n").length, 2, listed.error)
        yield* files.rename(path, `${path}.away`)
        const missing = yield* runCommand(settings)
        assert.deepStrictEqual([missing.code, missing.out], [1, ""])
        assert.match(missing.error, /^The master key file .*master\.key is missing, .*\n$/)
        assert.isFalse(yield* files.exists(path))
        yield* files.rename(`${path}.away`, path)
        const again = yield* serve(settings)
        assert.strictEqual((yield* again.create("first")).text, first.text)
        yield* again.stop
      }).pipe(Effect.scoped),
    minute
  )
})
