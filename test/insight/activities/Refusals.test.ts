/** Which refusals appear in the feed, and what happens when there are too many. */
import { assert, layer } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { SqlClient } from "effect/sql"
import type { RequestContext } from "../../../src/contract/api/RequestContext.ts"
import { Refusals } from "../../../src/insight/activities/Refusals.ts"
import { refusalsDropped } from "../../../src/platform/telemetry/Metrics.ts"
import {
  type ActivityJson,
  layerActivities,
  listActivities,
  requestActivities,
  startActivitiesNode
} from "../../support/http/Activities.ts"
import { contentTypes } from "../../support/http/FastPath.ts"
import { assertRefused } from "../../support/http/Http.ts"
import { issue } from "../../support/http/IssuedLicenses.ts"
import { TestServer } from "../../support/http/TestServer.ts"

const dropped = Effect.map(Effect.context<never>(), (context) => refusalsDropped.valueUnsafe(context).count)

/** A refused validation of a license, as it is recorded. */
const refused = (licenseId: string, index: number): RequestContext => ({
  requestId: `req_${licenseId}_${index}`,
  clientAddress: "192.0.2.1",
  runtimeCall: { licenseId, operation: "validate" }
})

const newest = Effect.map(
  requestActivities("?limit=1"),
  ({ json }) => (json as { readonly data: [ActivityJson] }).data[0].sequence
)

layer(layerActivities({ rateRuntime: 6 }), { timeout: 60_000 })("Refused calls", (it) => {
  it.effect("are shown if a license was called, and a reached limit once, as its event", () =>
    Effect.gen(function* () {
      const { pass } = yield* Refusals
      const { send } = yield* TestServer
      const { id, license_key } = yield* issue({ max_activations: 1 })
      const call = (operation: string, body: unknown, more: object = {}) =>
        send({
          method: "POST",
          path: `/api/v1/license/${operation}`,
          headers: { authorization: `License ${license_key}`, ...more },
          body
        })
      const wrong = `${license_key.slice(0, -1)}${license_key.endsWith("0") ? "1" : "0"}`
      assertRefused(yield* call("validate", {}, { authorization: `License ${wrong}` }), 401, "LICENSE_KEY_INVALID")
      assert.strictEqual((yield* call("activate", { fingerprint: "a" })).status, 200)
      const full = yield* call("activate", { fingerprint: "b" })
      assertRefused(full, 403, "ACTIVATION_LIMIT_REACHED")
      assertRefused(yield* call("validate", { fingerprint: "b" }), 404, "DEVICE_NOT_FOUND")
      assert.strictEqual((yield* call("check", { fingerprint: "a" })).status, 200)
      assertRefused(yield* call("validate", { fingerprint: 1 }), 400, "INVALID_JSON")
      assertRefused(yield* call("validate", {}), 422, "VALIDATION_ERROR")
      assertRefused(yield* call("validate", {}), 429, "RATE_LIMITED")
      yield* pass
      const rows = yield* listActivities({ license_id: id, source: "runtime" })
      assert.deepStrictEqual(
        rows.map(({ code, event_sequence, status_code }) => [status_code, code, event_sequence !== undefined]),
        [
          [422, "VALIDATION_ERROR", false],
          [400, "INVALID_JSON", false],
          [404, "DEVICE_NOT_FOUND", false],
          [403, "ACTIVATION_LIMIT_REACHED", true],
          [200, undefined, true]
        ]
      )
    })
  )

  it.effect("are not shown if it was a management call", () =>
    Effect.gen(function* () {
      const { pass } = yield* Refusals
      const { send } = yield* TestServer
      const before = yield* listActivities({ result_class: "refused" })
      assertRefused(yield* send({ path: "/api/v1/licenses/none" }), 404, "NOT_FOUND")
      yield* pass
      assert.deepStrictEqual(yield* listActivities({ result_class: "refused" }), before)
    })
  )

  it.effect("are written in several batches when there are many, and dropped and counted above the limit", () =>
    Effect.gen(function* () {
      const { note, pass } = yield* Refusals
      const before = yield* dropped
      const last = yield* newest
      for (let index = 0; index < 10_300; index++) note(refused("lic_many", index), "LICENSE_EXPIRED", index)
      assert.strictEqual((yield* dropped) - before, 300)
      yield* pass
      const rows = yield* listActivities({ license_id: "lic_many" })
      assert.deepStrictEqual(
        rows.map(({ request_id, sequence }) => `${sequence} ${request_id}`),
        Array.from({ length: 10_000 }, (_, index) => `${last + 10_000 - index} req_lic_many_${9_999 - index}`)
      )
      note(refused("lic_many", 0), "LICENSE_EXPIRED", 0)
      yield* pass
      assert.strictEqual(yield* newest, last + 10_001, "there is room again")
    })
  )

  it.effect("trigger a pass when many are pending", () =>
    Effect.gen(function* () {
      const { note, pass, passWhenLarge } = yield* Refusals
      yield* pass
      for (let index = 0; index < 2_000; index++) note(refused("lic_called", index), "LICENSE_EXPIRED", index)
      yield* Effect.flip(passWhenLarge(Effect.fail("called") as never))
      yield* pass
    })
  )

  it.effect("recorded while a node shuts down are written before it stops", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const scope = yield* Scope.make()
      const { refusals } = yield* Scope.provide(startActivitiesNode(), scope)
      refusals.note(refused("lic_stopped", 1), "LICENSE_EXPIRED", 1)
      const count = sql`SELECT FROM refusals WHERE license_id = 'lic_stopped'`
      assert.isEmpty(yield* count)
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual((yield* count).length, 1)
    })
  )
})

layer(layerActivities({ webhookAllowLocal: true }), { timeout: 60_000 })("Activations refused by a limit", (it) => {
  it.effect("are one event an hour and one delivery of it, on all nodes together, and each is one activity", () =>
    Effect.gen(function* () {
      const { pass } = yield* Refusals
      const { advance, client, send } = yield* TestServer
      const sql = yield* SqlClient.SqlClient
      const scope = yield* Effect.scope
      const { refusals, server } = yield* Scope.provide(startActivitiesNode(), scope)
      yield* client.webhooks.create({ payload: { name: "all", url: "http://127.0.0.1:9/" } })
      const { id, license_key } = yield* issue({ max_activations: 1 })
      const activate = (fingerprint: string, to = send, type: string = contentTypes.fast) =>
        to({
          method: "POST",
          path: "/api/v1/license/activate",
          headers: { authorization: `License ${license_key}`, "content-type": type },
          body: { fingerprint }
        })
      const counts = Effect.gen(function* () {
        yield* pass
        yield* refusals.pass
        const [row] = yield* sql<{ events: number; deliveries: number }>`
          SELECT count(*) AS events, count(d.sequence) AS deliveries
          FROM events e LEFT JOIN webhook_deliveries d ON d.sequence = e.sequence
          WHERE e.event_type = 'license.activation_limit_reached' AND e.resource_id = ${id}`
        const activities = (yield* listActivities({ license_id: id, result_class: "refused" })).map(
          ({ action, code, request_id, status_code }) => {
            assert.deepStrictEqual([action, code, status_code], ["license.activate", "ACTIVATION_LIMIT_REACHED", 403])
            return request_id
          }
        )
        assert.strictEqual(new Set(activities).size, activities.length)
        return { ...row!, activities: activities.length }
      })
      assert.strictEqual((yield* activate("machine")).status, 200)
      // Both nodes and both paths, at the same time.
      const answers = yield* Effect.forEach(
        Array.from({ length: 20 }, (_, index) => index),
        (index) =>
          activate(
            `other ${index}`,
            index % 2 === 0 ? send : server.send,
            index % 4 < 2 ? contentTypes.fast : contentTypes.framework
          ),
        { concurrency: "unbounded" }
      )
      for (const answer of answers) assertRefused(answer, 403, "ACTIVATION_LIMIT_REACHED")
      assert.deepStrictEqual(yield* counts, { events: 1, deliveries: 1, activities: 20 })
      // The requests take time, too.
      yield* advance(3_500)
      assertRefused(yield* activate("other"), 403, "ACTIVATION_LIMIT_REACHED")
      assert.deepStrictEqual(yield* counts, { events: 1, deliveries: 1, activities: 21 })
      yield* advance(110)
      for (const type of [contentTypes.framework, contentTypes.fast])
        assertRefused(yield* activate("other", send, type), 403, "ACTIVATION_LIMIT_REACHED")
      assert.deepStrictEqual(yield* counts, { events: 2, deliveries: 2, activities: 23 })
      // A node that starts later knows of the event.
      const later = yield* Scope.provide(startActivitiesNode(), scope)
      yield* later.server.advance(3_700)
      assertRefused(yield* activate("other", later.server.send), 403, "ACTIVATION_LIMIT_REACHED")
      yield* later.refusals.pass
      assert.deepStrictEqual(yield* counts, { events: 2, deliveries: 2, activities: 24 })
    })
  )
})
