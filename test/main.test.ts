import { spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import { assert, layer } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { Database } from "./support/Database.ts"
import { assertAnswered, assertRefused } from "./support/Envelopes.ts"
import { send } from "./support/RawHttp.ts"

const program = fileURLToPath(new URL("../src/main.ts", import.meta.url))
const masterKey = Buffer.alloc(32, 9).toString("base64")

/** The service as a process: what it writes, line by line, and how it ends. */
const start = (settings: Record<string, string>, ...args: ReadonlyArray<string>) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const child = spawn(process.execPath, [program, ...args], {
        env: { PATH: process.env["PATH"], LICENSING_PORT: "0", ...settings },
        stdio: ["ignore", "pipe", "pipe"]
      })
      const written = { out: "", error: "" }
      child.stdout.on("data", (chunk) => {
        written.out += chunk
      })
      child.stderr.on("data", (chunk) => {
        written.error += chunk
      })
      const exit = Effect.callback<number | null>((resume) => {
        if (child.exitCode !== null) return resume(Effect.succeed(child.exitCode))
        child.on("exit", (code) => resume(Effect.succeed(code)))
      })
      const wrote = (pattern: RegExp) =>
        Effect.callback<RegExpExecArray>((resume) => {
          const look = () => {
            const found = pattern.exec(written.out)
            if (found !== null) resume(Effect.succeed(found))
          }
          child.stdout.on("data", look)
          look()
        })
      return { child, written, exit, wrote }
    }),
    ({ child }) => Effect.sync(() => child.kill("SIGKILL"))
  )

const onDatabase = Effect.map(Database, ({ url }) => ({
  LICENSING_DATABASE_URL: Redacted.value(url),
  LICENSING_MASTER_KEY: masterKey
}))

layer(Database.layerUrlEmpty, { excludeTestServices: true })("The process", (it) => {
  it.effect("says what runs where and shows the first token once, then stops at a signal", () =>
    Effect.gen(function* () {
      const settings = yield* onDatabase
      const first = yield* start({ ...settings, LICENSING_LOG_FORMAT: "json" })
      const [, port] = yield* first.wrote(/"api":"http:\/\/127\.0\.0\.1:(\d+)\/api\/v1"/)
      const [, token] = yield* first.wrote(/^Admin token, shown only now: (lsm_\S+)$/m)
      const authorized = { path: "/api/v1/products", headers: { authorization: `Bearer ${token}` } }
      assertAnswered(yield* send(Number(port), authorized), 200)
      assert.strictEqual(first.written.out.split(token!).length, 2)
      assert.notInclude(first.written.out, masterKey)

      first.child.kill("SIGTERM")
      const stopping = yield* send(Number(port), { path: "/readyz" }).pipe(Effect.repeat({ until: ({ status }) => status !== 200 }))
      assertRefused(stopping, 503, "NOT_READY", "shutdown")
      const late = yield* send(Number(port), { ...authorized, headers: { ...authorized.headers, connection: "keep-alive" } })
      assertAnswered(late, 200)
      assert.strictEqual(late.headers["connection"], "close")
      first.child.kill("SIGTERM")
      assert.strictEqual(yield* first.exit, 0)
      assert.strictEqual(first.written.error, "")

      const second = yield* start({ ...settings, LICENSING_LOG_FORMAT: "pretty" }, "serve")
      const [, again] = yield* second.wrote(/api +http:\/\/127\.0\.0\.1:(\d+)\/api\/v1/)
      assertAnswered(yield* send(Number(again), authorized), 200)
      second.child.kill("SIGINT")
      assert.strictEqual(yield* second.exit, 0)
      assert.notInclude(second.written.out, "Admin token")
    }).pipe(Effect.scoped)
  )

  it.effect("runs ahead by the clock's offset", () =>
    Effect.gen(function* () {
      const settings = yield* onDatabase
      const ahead = yield* start({ ...settings, LICENSING_LOG_FORMAT: "json", LICENSING_CLOCK_OFFSET_SECONDS: "31536000" })
      const [, port] = yield* ahead.wrote(/"api":"http:\/\/127\.0\.0\.1:(\d+)\/api\/v1"/)
      const answer = yield* send(Number(port), { path: "/health" })
      const { timestamp } = (answer.json as { meta: { timestamp: string } }).meta
      const aheadMillis = Date.parse(timestamp) - Date.now()
      assert.isTrue(Math.abs(aheadMillis - 31_536_000_000) < 60_000)
    }).pipe(Effect.scoped)
  )

  it.effect("that cannot start says why in plain lines and ends with 1", () =>
    Effect.gen(function* () {
      const settings = yield* onDatabase
      const failing: ReadonlyArray<readonly [Record<string, string>, RegExp]> = [
        [{ LICENSING_PORT: "x", LICENSING_SWEEP_SECONDS: "x" }, /^LICENSING_PORT must .*\nLICENSING_SWEEP_SECONDS must .*\n$/],
        [{ LICENSING_HOST: "256.0.0.1" }, /^LICENSING_HOST and LICENSING_PORT cannot be listened on: .*\n$/],
        [{ LICENSING_MASTER_KEY: Buffer.alloc(32, 8).toString("base64") }, /^A stored secret lies under the master key .*\n$/]
      ]
      for (const [wrong, message] of failing) {
        const { exit, written } = yield* start({ ...settings, ...wrong })
        assert.strictEqual(yield* exit, 1)
        assert.match(written.error, message)
      }
    }).pipe(Effect.scoped)
  )
})
