/** Requests while the database hangs: they are answered at their deadline, and what was given up is not done later. */
import { assert, it, layer } from "@effect/vitest"
import { Clock, Deferred, Duration, Effect, Fiber, Latch, Layer, Schema } from "effect"
import { HttpServerRequest } from "effect/http"
import { HttpApiEndpoint } from "effect/http-api"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import * as IntakeHttp from "../../../src/access/requests/Intake.ts"
import { Intake } from "../../../src/contract/api/Requests.ts"
import { isDeadlinePassed, makeDeadlines } from "../../../src/edge/requests/Deadlines.ts"
import { withoutDeadline } from "../../../src/platform/postgres/driver/Deadline.ts"
import { Database, DatabaseProxy, holdLock } from "../../support/database/Database.ts"
import { assertAnswered, assertRefused, hold, untilReady } from "../../support/http/Http.ts"
import { makeMetered } from "../../support/http/IssuedLicenses.ts"
import { startServer, TestServer } from "../../support/http/TestServer.ts"
import { day } from "../../support/rules/Licenses.ts"
import { poll } from "../../support/rules/Poll.ts"

// Long enough for a request to a database that answers, on a busy machine.
const timeoutMillis = 3_000
/**
 * The deadline, the interval of the check, and the rest for a busy machine, on which a process stands still for seconds. Without
 * a deadline nothing is answered while the database hangs: its connections are given up after forty seconds only.
 */
const answeredMillisMax = timeoutMillis + 500 + 20_000

/** Requests that a busy machine may decide too late when the database continues. */
const lateMax = 3

const Hanging = TestServer.layerOver({ requestTimeoutSeconds: timeoutMillis / 1_000 }).pipe(
  Layer.provideMerge(DatabaseProxy.layer)
)

layer(Hanging, { excludeTestServices: true, timeout: 120_000 })("While the database hangs", (it) => {
  const consume = Effect.fnUntraced(function* (licenseKey: string, event_id: string, headers = {}) {
    const { send } = yield* TestServer
    const answer = send({
      method: "POST",
      path: "/api/v1/license/consume",
      headers: { authorization: `License ${licenseKey}`, ...headers },
      body: { fingerprint: "a machine", feature_code: "exports", event_id }
    })
    return { event_id, timed: yield* Effect.timed(answer) }
  })

  it.effect("consumptions are answered in time, and only those are counted that were told so", () =>
    Effect.gen(function* () {
      const { freeze, thaw } = yield* DatabaseProxy
      const sql = yield* SqlClient.SqlClient
      const licenses = [yield* makeMetered, yield* makeMetered, yield* makeMetered]
      // A license that no actor has loaded, and a key that was not seen yet.
      const cold = yield* makeMetered
      for (const { license_key } of licenses) assertAnswered((yield* consume(license_key, "before")).timed[1], 200)
      yield* freeze
      const calls = Array.from({ length: 20 }, (_, index) =>
        [...licenses, cold].map(({ license_key }) =>
          consume(license_key, `during-${index}`, index % 3 === 0 ? { "x-framework": "1", expect: "" } : {})
        )
      ).flat()
      let answered = 0
      let isHanging = true
      const running = yield* Effect.forkChild(
        Effect.all(
          calls.map((call) =>
            Effect.tap(call, ({ timed: [took, answer] }) =>
              Effect.sync(() => {
                if (!isHanging) return
                answered++
                assertRefused(answer, 503, "NOT_READY")
                assert.strictEqual(answer.headers["retry-after"], "1")
                assert.isBelow(Duration.toMillis(took), answeredMillisMax)
              })
            )
          ),
          { concurrency: "unbounded" }
        )
      )
      // All but the group that was handed to the database.
      const { send } = yield* TestServer
      yield* poll(send({ path: "/health" }), () => answered >= calls.length - 3)
      yield* thaw
      isHanging = false
      const answers = yield* Fiber.join(running)
      for (const { license_key } of [...licenses, cold])
        assertAnswered((yield* consume(license_key, "after")).timed[1], 200)
      const counted = answers.filter(({ timed: [, { status }] }) => status === 200).length
      const [row] = yield* sql<{ count: number }>`
        SELECT count(*) AS count FROM usage_ledger WHERE event_id LIKE 'during-%'`
      // On a busy machine a commit that was sent is waited for too short.
      const unknown = answers.filter(({ timed: [, { text }] }) => text.includes("it is not known")).length
      assert.isAtLeast(row!.count, counted)
      assert.isAtMost(row!.count, counted + unknown)
      assert.isAtMost(counted, 3)
    })
  )

  it.effect("management requests are answered in time, and nothing of them is done later", () =>
    Effect.gen(function* () {
      const { freeze, thaw } = yield* DatabaseProxy
      const { client, send } = yield* TestServer
      const { license } = yield* makeMetered
      yield* freeze
      const requests = [
        ...Array.from({ length: 20 }, (_, index) => ({
          method: "POST",
          path: "/api/v1/products",
          body: { name: "P", code: `given-up-${index}` },
          headers: index % 2 === 0 ? { "idempotency-key": `given-up-${index}` } : {}
        })),
        { path: "/api/v1/products" },
        { method: "POST", path: `/api/v1/licenses/${license.id}/suspend` }
      ]
      const answers = yield* Effect.all(
        requests.slice(0, -1).map((request) => Effect.timed(send(request))),
        { concurrency: "unbounded" }
      )
      for (const [took, answer] of answers) {
        assertRefused(answer, 503, "NOT_READY")
        assert.isBelow(Duration.toMillis(took), answeredMillisMax)
      }
      yield* thaw
      yield* poll(send({ path: "/readyz" }), ({ status }) => status === 200)
      const { items } = yield* client.products.list({ query: { limit: 200 } })
      assert.deepStrictEqual(
        items.filter(({ code }) => code.startsWith("given-up")),
        []
      )
      // The same requests succeed now, those with a key, too. Single ones may take a busy machine too long.
      let refused = 0
      for (const request of requests) {
        const counted = Effect.tap(send(request), ({ status }) =>
          Effect.sync(() => (refused += status === 503 ? 1 : 0))
        )
        assert.isBelow((yield* untilReady(counted)).status, 300)
      }
      assert.isAtMost(refused, lateMax)
    })
  )
})

it.live(
  "A service stops although the body of a request never ends",
  () =>
    Effect.gen(function* () {
      const { adminToken, port, send } = yield* TestServer
      const begun = `POST /api/v1/products HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${adminToken}\r\n`
      yield* hold(port, `${begun}Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{`)
      // The service has received what was sent before.
      assertAnswered(yield* send({ path: "/api/v1/products" }), 200)
    }).pipe(Effect.provide(TestServer.layerWith({ requestTimeoutSeconds: 300 }))),
  120_000
)

it.effect(
  "A request is not given up while it waits for something that has a limit of its own, as a document that is made",
  () =>
    Effect.gen(function* () {
      const underDeadline = yield* makeDeadlines
      const made = Latch.makeUnsafe(false)
      const request = HttpServerRequest.fromWeb(new Request("http://localhost/openapi.json"))
      const handled = <A>(handler: Effect.Effect<A>) =>
        Effect.forkChild(
          Effect.exit(Effect.provideService(underDeadline(handler), HttpServerRequest.HttpServerRequest, request)),
          { startImmediately: true }
        )
      const [document, other, after] = [
        yield* handled(withoutDeadline(Effect.as(made.await, "made"))),
        yield* handled(made.await),
        yield* handled(Effect.andThen(withoutDeadline(made.await), Effect.never))
      ]
      yield* TestClock.adjust("1 minute")
      const passed = yield* Fiber.join(other)
      assert.isTrue(
        passed._tag === "Failure" &&
          passed.cause.reasons.some((one) => one._tag === "Die" && isDeadlinePassed(one.defect))
      )
      yield* made.open
      const exit = yield* Fiber.join(document)
      assert.isTrue(exit._tag === "Success" && exit.value === "made")
      yield* TestClock.adjust("1 second")
      assert.strictEqual((yield* Fiber.join(after))._tag, "Failure")
    })
)

it.effect("The time of a request begins when its body has arrived", () =>
  Effect.gen(function* () {
    const underDeadline = yield* makeDeadlines
    const intake = yield* Intake
    const endpoint = HttpApiEndpoint.post("create", "/things", { payload: Schema.Struct({}) })
    const read = yield* Deferred.make<string>()
    const handler = Effect.andThen(
      Effect.flatMap(Effect.flatMap(HttpServerRequest.HttpServerRequest, IntakeHttp.bytesOf), (bytes) =>
        Deferred.succeed(read, String(bytes))
      ),
      Effect.never
    )
    const upload = new TransformStream<Uint8Array, Uint8Array>()
    const body = upload.writable.getWriter()
    const init = { method: "POST", body: upload.readable, duplex: "half" } as const
    const request = HttpServerRequest.fromWeb(new Request("http://localhost/things", init))
    const taken = intake(handler as never, { endpoint } as never) as typeof handler
    const running = yield* Effect.forkChild(
      Effect.provideService(underDeadline(taken), HttpServerRequest.HttpServerRequest, request),
      { startImmediately: true }
    )
    yield* TestClock.adjust("25 seconds")
    assert.isUndefined(running.pollUnsafe())
    yield* Effect.promise(() => Promise.all([body.write(Buffer.from("{}")), body.close()]))
    assert.strictEqual(yield* Deferred.await(read), "{}")
    yield* TestClock.adjust("9 seconds")
    assert.isUndefined(running.pollUnsafe())
    yield* TestClock.adjust("2 seconds")
    assert.isDefined(running.pollUnsafe())
  }).pipe(Effect.provide(IntakeHttp.layer))
)

it.effect("A jump of the time of day neither ends nor prolongs a request", () =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock
    let offset = 0
    const jumping = { ...clock, currentTimeMillisUnsafe: () => clock.currentTimeMillisUnsafe() + offset }
    const underDeadline = yield* Effect.provideService(makeDeadlines, Clock.Clock, jumping)
    const request = HttpServerRequest.fromWeb(new Request("http://localhost/health"))
    const hanging = Effect.provideService(underDeadline(Effect.never), HttpServerRequest.HttpServerRequest, request)
    const running = yield* Effect.forkChild(hanging, { startImmediately: true })
    offset = day
    yield* TestClock.adjust("9 seconds")
    assert.isUndefined(running.pollUnsafe())
    offset = -day
    yield* TestClock.adjust("2 seconds")
    assert.isDefined(running.pollUnsafe())
  })
)

layer(TestServer.layer.pipe(Layer.provideMerge(Database.layer)), { excludeTestServices: true, timeout: 120_000 })(
  "A list of a license's own devices",
  (it) => {
    it.effect("is given up at its deadline, also after the license's actor has decided it", () =>
      Effect.gen(function* () {
        const { license_key } = yield* makeMetered
        const { send } = yield* startServer({ requestTimeoutSeconds: 1 })
        const headers = { authorization: `License ${license_key}` }
        const list = send({ path: "/api/v1/license/devices", headers })
        assertAnswered(yield* untilReady(list), 200)
        // The license is in memory. A statement waits for a lock for four seconds.
        const { release } = yield* holdLock((sql) => sql`LOCK TABLE devices IN ACCESS EXCLUSIVE MODE`)
        const refused = yield* list
        yield* release
        assertRefused(refused, 503, "NOT_READY")
        assert.include(refused.error.message, "in time")
      })
    )
  }
)
