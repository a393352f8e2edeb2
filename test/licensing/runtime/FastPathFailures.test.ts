/** Plain requests when a part of the service is missing or full: they end as on the framework path. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Logger } from "effect"
import { RequestContext } from "../../../src/contract/api/RequestContext.ts"
import { openSession } from "../../../src/platform/postgres/driver/Postgres.ts"
import { Database, DatabaseProxy } from "../../support/database/Database.ts"
import { contentTypes, RuntimePaths, runtimePaths } from "../../support/http/FastPath.ts"
import { assertAnswered, assertRefused, hold } from "../../support/http/Http.ts"
import { issue, makeMetered } from "../../support/http/IssuedLicenses.ts"
import { TestServer } from "../../support/http/TestServer.ts"
import { poll } from "../../support/rules/Poll.ts"

const machine = { fingerprint: "m" }

const records: Array<readonly [level: string, text: string, requestId: string]> = []
const capturing = Logger.layer([
  Logger.make(({ fiber, logLevel, message }) => {
    const text = JSON.stringify(message, (name, value) => (name === "waited_ms" ? typeof value : value))
    records.push([logLevel, text, fiber.getRef(RequestContext).requestId])
  })
])

const Cuttable = RuntimePaths.layer.pipe(
  Layer.provideMerge(TestServer.layerOver({ logLevel: "Info" }).pipe(Layer.provide(capturing))),
  Layer.provideMerge(DatabaseProxy.layer)
)

layer(Cuttable, { timeout: 60_000 })("Without its database", (it) => {
  it.effect("a plain request is answered and told of as any other is, and again when the database is back", () =>
    Effect.gen(function* () {
      const { asked, faceOf, remember } = yield* RuntimePaths
      const wire = yield* DatabaseProxy
      const license = yield* issue()
      yield* remember(license)
      const call = (way: (typeof runtimePaths)[number]) =>
        asked(way, license.license_key, "activate", machine, { "x-request-id": "without-database" })
      yield* wire.disconnect
      // The first commit breaks off, so its outcome is unknown; for the others no connection is opened.
      assertRefused(yield* call("fast"), 503, "NOT_READY")
      records.length = 0
      const seen = yield* Effect.forEach(runtimePaths, (way) =>
        Effect.gen(function* () {
          const answer = yield* call(way)
          assertRefused(answer, 503, "NOT_READY")
          assert.strictEqual(answer.headers["retry-after"], "1")
          const told = records.splice(0).filter(([, text]) => text.includes("A request was turned away."))
          return { face: yield* faceOf(answer), told }
        })
      )
      assert.strictEqual(seen[0]?.told.length, 1)
      assert.strictEqual(seen[0]?.told[0]?.[2], "without-database")
      assert.deepStrictEqual(seen[0], seen[1])
      yield* wire.reconnect
      yield* poll(call("fast"), ({ status }) => status === 200)
      assertAnswered(yield* call("fast"), 200)
    })
  )
})

layer(RuntimePaths.layerWith(), { timeout: 60_000 })("A license of which too much is asked", (it) => {
  it.effect("refuses plain requests like others, and completes all accepted ones", () =>
    Effect.gen(function* () {
      const { ask, asked, faceOf, taken } = yield* RuntimePaths
      const { client, port } = yield* TestServer
      const { license, license_key } = yield* makeMetered
      yield* client.licenses.resetUsage({
        params: { id: license.id },
        payload: { feature_code: "exports", max_consumptions: 100_000 }
      })
      const body = (event_id: string) => JSON.stringify({ fingerprint: "a machine", feature_code: "exports", event_id })
      assertAnswered(yield* ask("framework", license_key, "consume", body("first")), 200)
      yield* taken
      const request = (event_id: string, last: boolean) =>
        [
          "POST /api/v1/license/consume HTTP/1.1",
          "Host: x",
          `Authorization: License ${license_key}`,
          `Content-Type: ${contentTypes.fast}`,
          `Content-Length: ${body(event_id).length}`,
          ...(last ? ["Connection: close"] : []),
          "",
          body(event_id)
        ].join("\r\n")
      const rows = Array.from({ length: 40 }, (_, row) =>
        Array.from({ length: 40 }, (_, at) => request(`${row}-${at}`, at === 39)).join("")
      )
      // Nothing is committed while somebody else holds the license.
      const operator = yield* openSession((yield* Database).url)
      yield* operator.values("BEGIN")
      yield* operator.values("SELECT id FROM licenses WHERE id = $1 FOR UPDATE", [license.id])
      const held = yield* Effect.ensuring(
        Effect.gen(function* () {
          const held = yield* Effect.forEach(rows, (row) => hold(port, row), { concurrency: 40 })
          const fast = yield* poll(ask("fast", license_key, "validate", machine), ({ status }) => status === 503)
          const faces = yield* Effect.forEach(
            runtimePaths,
            (way) =>
              Effect.gen(function* () {
                const answer = yield* ask(way, license_key, "check", machine, { "x-request-id": "one-too-many" })
                assertRefused(answer, 503, "NOT_READY")
                return yield* faceOf(answer)
              }),
            { concurrency: 2 }
          )
          assert.deepStrictEqual(faces[0], faces[1])
          assert.strictEqual(fast.headers["retry-after"], "1")
          return held
        }),
        Effect.orDie(operator.values("ROLLBACK"))
      )
      let done = 0
      for (const { answer } of held) {
        const { text, status } = yield* answer
        // The first answer's status line was taken off.
        done += (status === 200 ? 1 : 0) + Array.from(text.matchAll(/HTTP\/1\.1 200/g)).length
      }
      const { total_consumptions } = yield* client.licenses.get({ params: { id: license.id } })
      assert.strictEqual(total_consumptions, done + 1)
      // Those that were decided while the license was locked may have been refused.
      assert.isAbove(done, 0)
      assert.isBelow(done, 1_600)
      assert.strictEqual((yield* asked("fast", license_key, "consume", body("last"))).status, 200)
    })
  )
})
