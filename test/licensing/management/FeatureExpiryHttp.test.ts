/** A feature's expiry in every response that shows the entitlement version, before anything has written it. */
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { EventLog } from "../../../src/ledger/events/EventLog.ts"
import { FeatureExpirySweep } from "../../../src/licensing/sweeps/FeatureExpirySweep.ts"
import * as RehearsalClock from "../../../src/platform/telemetry/RehearsalClock.ts"
import { mailOff } from "../../support/database/MailOff.ts"
import { issue } from "../../support/http/IssuedLicenses.ts"
import { TestServer } from "../../support/http/TestServer.ts"

layer(TestServer.layer, { timeout: 60_000, excludeTestServices: true })("An expired feature", (it) => {
  it.effect("raises the version in every read at its instant, and its record changes no read", () =>
    Effect.gen(function* () {
      const { advance, client } = yield* TestServer
      const { id, product_id, runtime } = yield* issue({ max_activations: 2 })
      const params = { id }
      const { data: activated } = yield* runtime.activate({ payload: { fingerprint: "machine" } })
      for (const [code, minutes] of [
        ["soon", 60],
        ["later", 180]
      ] as const) {
        const feature = yield* client.features.create({ params: { id: product_id }, payload: { name: code, code } })
        const payload = { feature_id: feature.id, expires_at: activated.issued_at + minutes * 60_000 }
        yield* client.licenses.assignFeature({ params, payload })
      }
      const versions = Effect.gen(function* () {
        const listed = yield* client.licenses.list({ query: { product_id } })
        const active = yield* client.licenses.list({ query: { product_id, status: "active" } })
        const audit = yield* client.reports.licenseAudit({ query: { license_id: id } })
        const edited = yield* client.licenses.update({ params, payload: {} })
        const { data: checked } = yield* runtime.check({ payload: { fingerprint: "machine" } })
        const shown = [
          yield* client.licenses.get({ params }),
          listed.items[0]!,
          active.items[0]!,
          audit.license,
          edited,
          checked
        ]
        return [...new Set(shown.map(({ entitlement_version }) => entitlement_version))]
      })
      const [before] = yield* versions
      yield* advance(3_610)
      assert.deepStrictEqual(yield* versions, [before! + 1])
      const sql = yield* SqlClient.SqlClient
      const events = sql<{ code: string }>`
        SELECT metadata ->> 'feature_code' AS code FROM events
        WHERE resource_id = ${id} AND event_type = 'license.feature_expired' ORDER BY sequence`
      assert.deepStrictEqual(yield* events, [], "reads record nothing")
      const sweep = FeatureExpirySweep.layer.pipe(Layer.provide([EventLog.layer, mailOff]))
      const { pass } = Context.get(yield* Layer.build(Layer.fresh(sweep)), FeatureExpirySweep)
      yield* Effect.provide(
        pass,
        RehearsalClock.layer(() => 3_610_000)
      )
      assert.deepStrictEqual(yield* versions, [before! + 1])
      assert.deepStrictEqual(yield* events, [{ code: "soon" }])
      yield* advance(7_200)
      assert.deepStrictEqual(yield* versions, [before! + 2])
      // The next change of the license writes it.
      yield* runtime.activate({ payload: { fingerprint: "other machine" } })
      assert.deepStrictEqual(yield* events, [{ code: "soon" }, { code: "later" }])
      assert.deepStrictEqual(yield* versions, [before! + 2])
      const { items } = yield* client.events.list({ query: { event_type: "license.feature_expired", resource_id: id } })
      assert.deepInclude(items[0], { actor_type: "system", actor_id: "clock" })
    })
  )
})
