/** What is removed after the retention period, and that sequence numbers do not change. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { ActivityRetention } from "../../../src/insight/activities/ActivityRetention.ts"
import { Refusals } from "../../../src/insight/activities/Refusals.ts"
import { layerActivities, listActivities } from "../../support/http/Activities.ts"
import { issue } from "../../support/http/IssuedLicenses.ts"

const day = 86_400
const settings = { activityRetentionDays: 2, validationRetentionDays: 3 }

layer(ActivityRetention.layer.pipe(Layer.provideMerge(layerActivities(settings))))("Retention", (it) => {
  it.effect("removes old refusals and old counts, and changes no number", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { note, pass } = yield* Refusals
      const refuse = (id: string, at: number) =>
        note(
          { requestId: `req_${id}`, clientAddress: undefined, runtimeCall: { licenseId: "lic", operation: "check" } },
          "LICENSE_EXPIRED",
          at * 1_000
        )
      for (let index = 0; index < 6_000; index++) refuse(`old_${index}`, 8 * day)
      yield* pass
      yield* issue()
      refuse("young", 8 * day + 1)
      yield* pass
      yield* sql`
        INSERT INTO license_validations (license_id, hour, validations, refused)
        SELECT 'lic_' || n, to_timestamp(${7 * day}::int8), 1, 0 FROM generate_series(1, 6000) AS n
        UNION ALL SELECT 'lic', to_timestamp(${7 * day + 1}::int8), 1, 0`
      const before = yield* listActivities()
      yield* TestClock.setTime((10 * day + 1) * 1_000)
      yield* (yield* ActivityRetention).pass
      const after = yield* listActivities()
      assert.deepStrictEqual(
        after,
        before.filter(({ request_id }) => !(request_id ?? "").startsWith("req_old"))
      )
      assert.isTrue(after.some(({ request_id }) => request_id === "req_young"))
      assert.deepStrictEqual(yield* sql`SELECT license_id FROM license_validations`, [{ license_id: "lic" }])
    })
  )
})
