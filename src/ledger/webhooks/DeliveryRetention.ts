/**
 * Deletes deliveries: finished ones and those of disabled endpoints after 30 days, those of deleted endpoints at the
 * next pass. A pass reads only the oldest rows of each endpoint, so its cost does not depend on the number of rows.
 */
import { Clock, Context, Effect, Layer, Option } from "effect"
import { SqlClient } from "effect/sql"
import { dayMillis } from "../../contract/api/Timestamp.ts"
import { instant } from "../../platform/postgres/driver/Parameters.ts"
import { exclusively } from "../../platform/workers/Exclusive.ts"

const retentionMillis = 30 * dayMillis
/** Longer than the day that reports read. */
const countsRetentionMillis = 2 * dayMillis
/** Rows that a batch reads for one endpoint, and rows that it removes in total. */
const oldestMax = 1_000
const batchMax = 5_000

export class DeliveryRetention extends Context.Service<DeliveryRetention, { readonly pass: Effect.Effect<void> }>()(
  "licensing/ledger/webhooks/DeliveryRetention"
) {
  static readonly layer = Layer.effect(
    DeliveryRetention,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient

      // The recursive part reads the primary key from one endpoint id to the next, including deleted endpoints. The
      // oldest rows of an endpoint are adjacent in the key. Pending deliveries of active endpoints are not removed.
      const removeOld = (before: number) => sql`
        WITH RECURSIVE owner AS (
          (SELECT endpoint_id FROM webhook_deliveries ORDER BY endpoint_id LIMIT 1)
          UNION ALL
          SELECT (SELECT d.endpoint_id FROM webhook_deliveries d WHERE d.endpoint_id > owner.endpoint_id ORDER BY d.endpoint_id LIMIT 1)
          FROM owner WHERE owner.endpoint_id IS NOT NULL
        ), old AS MATERIALIZED (
          SELECT oldest.endpoint_id, oldest.sequence
          FROM owner LEFT JOIN webhook_endpoints e ON e.id = owner.endpoint_id CROSS JOIN LATERAL (
            SELECT endpoint_id, sequence, status, created_at FROM webhook_deliveries d
            WHERE d.endpoint_id = owner.endpoint_id ORDER BY sequence LIMIT ${oldestMax}
          ) AS oldest
          WHERE e.id IS NULL
            OR oldest.created_at < ${instant(before)} AND (oldest.status <> 'pending' OR NOT e.is_active)
          LIMIT ${batchMax}
        )
        DELETE FROM webhook_deliveries d USING old WHERE d.endpoint_id = old.endpoint_id AND d.sequence = old.sequence
        RETURNING d.sequence`

      const removeCounts = (before: number) => sql`
        DELETE FROM webhook_delivery_counts c
        WHERE c.period < ${instant(before)} OR NOT EXISTS (SELECT FROM webhook_endpoints e WHERE e.id = c.endpoint_id)`

      const batch = Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis
        const removed = yield* removeOld(now - retentionMillis)
        if (removed.length === 0) yield* removeCounts(now - countsRetentionMillis)
        return removed.length
      })

      const pass = Effect.gen(function* () {
        while (true) {
          const removed = yield* exclusively(sql, "webhook-retention")(batch)
          if (Option.isNone(removed) || removed.value === 0) return
        }
      })
      return DeliveryRetention.of({ pass: Effect.orDie(Effect.withSpan(pass, "DeliveryRetention.pass")) })
    })
  )
}
