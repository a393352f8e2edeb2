/** A process that starts before its database can be reached. */
import { fileURLToPath } from "node:url"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { DatabaseProxy } from "../../support/database/Database.ts"
import { assertAnswered, assertRefused, send } from "../../support/http/Http.ts"
import { freePort } from "../../support/processes/FreePort.ts"
import { spawnService } from "../../support/processes/Processes.ts"

const fastTime = fileURLToPath(new URL("../../support/processes/FastTime.ts", import.meta.url))

/** Starts the program on the test's database, with its output and its end. */
const start = Effect.fnUntraced(function* (port: number) {
  const { child, written } = yield* spawnService({ LICENSING_PORT: String(port), NODE_OPTIONS: `--import=${fastTime}` })
  const ended = Effect.callback<number | null>((resume) => {
    if (child.exitCode !== null) resume(Effect.succeed(child.exitCode))
    else child.once("exit", (code) => resume(Effect.succeed(code)))
  })
  /** Waits for output. */
  const wrote = (holds: (out: string) => boolean) =>
    Effect.callback<void>((resume) => {
      const look = () => {
        if (holds(written.out)) resume(Effect.void)
      }
      child.stdout.on("data", look)
      child.once("exit", () => resume(Effect.die(new Error(`The service ended: ${written.out}${written.error}`))))
      look()
    })
  return { child, ended, written, wrote }
})

const attempts = (out: string) => out.split("cannot be reached yet").length - 1
// The pauses between the attempts grow to three seconds: this many take more than half a minute of the program's time.
const attemptsInHalfAMinute = 18

layer(DatabaseProxy.layerEmpty, { excludeTestServices: true, timeout: 120_000 })(
  "A service that starts without its database",
  (it) => {
    it.effect(
      "is alive and not ready, waits for more than half a minute, and creates the tables when the database is there",
      () =>
        Effect.gen(function* () {
          const wire = yield* DatabaseProxy
          yield* wire.disconnect
          const port = yield* freePort
          const { child, written, wrote } = yield* start(port)
          yield* wrote((out) => attempts(out) >= 1)
          for (const path of ["/health", "/healthz"]) assertAnswered(yield* send(port, { path }), 200)
          for (const path of ["/readyz", "/api/v1/products", "/nothing"]) {
            const answer = yield* send(port, { path })
            assertRefused(answer, 503, "NOT_READY", "starting")
            assert.strictEqual(answer.headers["retry-after"], "1")
            assert.include(String(answer.headers["content-security-policy"]), "default-src 'none'")
          }
          const traced = yield* send(port, { path: "/readyz", headers: { "x-request-id": "while-it-starts" } })
          assertRefused(traced, 503, "NOT_READY", "starting")
          assert.strictEqual(traced.headers["x-request-id"], "while-it-starts")
          const switchFastTime = Effect.sync(() => void child.kill("SIGUSR2"))
          yield* switchFastTime
          yield* wrote((out) => attempts(out) >= attemptsInHalfAMinute)
          yield* switchFastTime
          yield* wire.reconnect
          yield* wrote((out) => out.includes("The service is ready."))
          assert.include(written.out, "Created the tables")
          assertAnswered(yield* send(port, { path: "/readyz" }), 200)
          assertRefused(yield* send(port, { path: "/api/v1/products" }), 401, "TOKEN_MISSING")
        }).pipe(Effect.scoped)
    )

    it.effect("ends at once when it is told to, with 0", () =>
      Effect.gen(function* () {
        yield* (yield* DatabaseProxy).disconnect
        const { child, ended, wrote } = yield* start(yield* freePort)
        yield* wrote((out) => attempts(out) >= 1)
        child.kill("SIGTERM")
        assert.strictEqual(yield* ended, 0)
      }).pipe(Effect.scoped)
    )
  }
)
