/**
 * Removes refused calls and validation counts past their retention, in bounded batches. The remaining activities keep their
 * numbers.
 */
import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { Settings } from "../../platform/config/Config.ts"
import { instant } from "../../platform/postgres/driver/Parameters.ts"
import { exclusivelyUntilDone } from "../../platform/workers/Exclusive.ts"

const batchMax = 5_000
const dayMillis = 86_400_000

export class ActivityRetention extends Context.Service<
  ActivityRetention,
  { readonly pass: Effect.Effect<void, unknown> }
>()("licensing/insight/activities/ActivityRetention") {
  static readonly layer = Layer.effect(
    ActivityRetention,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { activityRetentionDays, validationRetentionDays } = yield* Settings

      const removeRefusals = Effect.gen(function* () {
        const before = (yield* Clock.currentTimeMillis) - activityRetentionDays * dayMillis
        const removed = yield* sql`
          DELETE FROM refusals WHERE activity_sequence IN (
            SELECT activity_sequence FROM refusals WHERE occurred_at < ${instant(before)}
            ORDER BY occurred_at LIMIT ${batchMax}
          ) RETURNING activity_sequence`
        return removed.length
      })

      const removeValidations = Effect.gen(function* () {
        const before = (yield* Clock.currentTimeMillis) - validationRetentionDays * dayMillis
        const removed = yield* sql`
          DELETE FROM license_validations WHERE (license_id, hour) IN (
            SELECT license_id, hour FROM license_validations WHERE hour < ${instant(before)} ORDER BY hour LIMIT ${batchMax}
          ) RETURNING hour`
        return removed.length
      })

      const untilDone = <E>(batch: Effect.Effect<number, E>) =>
        exclusivelyUntilDone(sql, "activity-retention", batchMax, batch)
      const pass = Effect.andThen(untilDone(removeRefusals), untilDone(removeValidations))
      return ActivityRetention.of({ pass: Effect.withSpan(pass, "ActivityRetention.pass") })
    })
  )
}
