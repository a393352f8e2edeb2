import { assert, layer } from "@effect/vitest"
import { Clock, Context, Effect, Fiber, Latch, Layer, Queue, References } from "effect"
import { SqlClient } from "effect/sql"
import { Readiness } from "../../../src/edge/system/Readiness.ts"
import { Shutdown } from "../../../src/edge/system/Shutdown.ts"
import { EventLog } from "../../../src/ledger/events/EventLog.ts"
import { Migrations } from "../../../src/platform/postgres/migrations/Migrations.ts"
import { KeyRing } from "../../../src/platform/signing/KeyRing.ts"
import { Workers } from "../../../src/platform/workers/Workers.ts"
import { assertAnswered, assertRefused } from "../../support/http/Http.ts"
import { TestServer } from "../../support/http/TestServer.ts"
import { poll } from "../../support/rules/Poll.ts"

/** The readiness probe's first response with a status: what needs the database is checked twice a second. */
const readiness = (status: number) =>
  Effect.flatMap(TestServer, ({ send }) => poll(send({ path: "/readyz" }), (answer) => answer.status === status))

layer(TestServer.layer)("Probes", (it) => {
  for (const path of ["/health", "/healthz"]) {
    it.effect(`${path} reports that the service runs, without a credential`, () =>
      Effect.gen(function* () {
        const server = yield* TestServer
        const answer = yield* server.send({ path, anonymous: true })
        assert.deepStrictEqual(assertAnswered(answer, 200), { status: "ok" })
      })
    )
  }

  it.effect("/readyz reports that the service can serve requests, without a credential", () =>
    Effect.gen(function* () {
      const server = yield* TestServer
      const answer = yield* server.send({ path: "/readyz", anonymous: true })
      assert.deepStrictEqual(assertAnswered(answer, 200), {
        status: "ready",
        checks: {
          database: "ok",
          migrations: "ok",
          signing_key: "ok",
          event_counter: "ok",
          workers: "ok",
          shutdown: "ok"
        }
      })
    })
  )

  it.effect("however many, check the database twice a second", () =>
    Effect.gen(function* () {
      let checks = 0
      const counted = Layer.mock(Migrations, { pending: Effect.sync(() => ++checks * 0) })
      const readinesses = Layer.fresh(Readiness.layer).pipe(
        Layer.provide([counted, Shutdown.layerTest, EventLog.layer])
      )
      const { check } = Context.get(yield* Layer.build(readinesses), Readiness)
      const clock = yield* Clock.Clock
      const checkAt = (millis: number) =>
        Effect.provideService(check, Clock.Clock, {
          ...clock,
          monotonicTimeNanos: Effect.succeed(BigInt(millis) * 1_000_000n)
        })
      for (const [millis, expected] of [
        [0, 1],
        [499, 1],
        [500, 2],
        [999, 2],
        [1_000, 3]
      ] as const) {
        const probes = Array.from({ length: 20 }, () => checkAt(millis))
        yield* Effect.all(probes, { concurrency: "unbounded", discard: true })
        assert.strictEqual(checks, expected, `${millis} ms`)
      }
    }).pipe(Effect.scoped)
  )

  it.effect("/readyz names a missing migration", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* sql`UPDATE schema_migrations SET id = -id WHERE id = 1`
      assertRefused(yield* readiness(503), 503, "NOT_READY", "migrations")
      yield* sql`UPDATE schema_migrations SET id = -id WHERE id = -1`
      assertAnswered(yield* readiness(200), 200)
    })
  )

  it.effect("/readyz detects a signing key that no client can look up", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { kid } = (yield* KeyRing).current()
      yield* sql`UPDATE signing_keys SET kid = 'hidden'`
      assertRefused(yield* readiness(503), 503, "NOT_READY", "signing_key")
      yield* sql`UPDATE signing_keys SET kid = ${kid}`
      assertAnswered(yield* readiness(200), 200)
    })
  )
})

const silence = Layer.succeed(References.MinimumLogLevel, "None")

// Workers pause in the machine's time.
layer(TestServer.layer.pipe(Layer.provideMerge(Workers.layer), Layer.provideMerge(silence)), {
  excludeTestServices: true
})("A dead worker", (it) => {
  it.effect("makes the service not ready until it works again, and is reported", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      const workers = yield* Workers
      const worker = { ...(yield* makeWorker), every: "1 hour" as const }
      yield* workers.supervise({ ...worker, name: "well", pass: Effect.void })
      yield* workers.supervise({ ...worker, name: "doomed" })
      const fiber = yield* worker.begun
      assertAnswered(yield* send({ path: "/readyz" }), 200)
      worker.hold()
      yield* Fiber.interrupt(fiber)
      assertRefused(yield* send({ path: "/readyz" }), 503, "NOT_READY", "workers")
      const workerStates = (yield* client.ops.summary()).workers.map(({ deaths, name, status }) => [
        name,
        status,
        deaths
      ])
      assert.deepStrictEqual(workerStates, [
        ["well", "ok", 0],
        ["doomed", "dead", 1]
      ])
      const { text } = yield* send({ path: "/metrics" })
      assert.include(text, 'licensing_worker_up{worker="doomed"} 0\n')
      assert.include(text, 'licensing_worker_up{worker="well"} 1\n')
      assert.include(text, 'licensing_worker_deaths_total{worker="doomed"} 1\n')
      // It is restarted automatically; only a completed pass proves recovery.
      yield* worker.begun
      assertRefused(yield* send({ path: "/readyz" }), 503, "NOT_READY", "workers")
      worker.release()
      yield* poll(send({ path: "/readyz" }), ({ status }) => status === 200)
      assert.include((yield* send({ path: "/metrics" })).text, 'licensing_worker_up{worker="doomed"} 1\n')
    })
  )
})

/** A worker that exposes the fiber of each pass, and whose passes the test can block. */
const makeWorker = Effect.gen(function* () {
  const fibers = yield* Queue.unbounded<Fiber.Fiber<unknown, unknown>>()
  const gate = yield* Latch.make(true)
  return {
    begun: Queue.take(fibers),
    hold: () => gate.closeUnsafe(),
    release: () => gate.openUnsafe(),
    pass: Effect.andThen(
      Effect.withFiber((fiber) => Queue.offer(fibers, fiber)),
      gate.await
    )
  }
})

layer(TestServer.layer)("Public keys", (it) => {
  it.effect("are a list of one page, the active one first, without a credential", () =>
    Effect.gen(function* () {
      const server = yield* TestServer
      const before = (yield* KeyRing).current()
      const rotated = yield* (yield* KeyRing).rotate
      const answer = yield* server.send({ path: "/api/v1/system/public-keys", anonymous: true })
      const keys = assertAnswered(answer, 200) as ReadonlyArray<Record<string, string>>
      assert.deepStrictEqual(
        keys.map(({ kid, algorithm, status }) => [kid, algorithm, status]),
        [
          [rotated.kid, "Ed25519", "active"],
          [before.kid, "Ed25519", "retired"]
        ]
      )
      assert.strictEqual(Buffer.from(keys[0]!["public_key"]!, "base64").length, 32)
      assert.deepStrictEqual((answer.json as { page_info: unknown }).page_info, { next_cursor: null })
    })
  )
})
