/**
 * Sums the usage ledger by hours and days of UTC, in the background. It scans the ledger in the order of its sequence numbers and
 * counts the rows of each day; days that are over are summed, the newest first. What must stay true: if the sums of a day include
 * all its counted rows, they include all its rows up to the end of the scan. A late row raises the count, so its day is summed
 * again, and until then the sums of that day are not used.
 */
import { Clock, Context, Effect, Layer, Option } from "effect"
import { SqlClient } from "effect/sql"
import { dayMillis } from "../../../contract/api/Timestamp.ts"
import { ledgerRemovedAt } from "../../../ledger/partitions/Removed.ts"
import { instant } from "../../../platform/postgres/driver/Parameters.ts"
import { Postgres } from "../../../platform/postgres/driver/Postgres.ts"
import { exclusively } from "../../../platform/workers/Exclusive.ts"
import { patiently } from "../../../platform/workers/PassHeartbeat.ts"
import { ledgerTablesWithoutLicenses, productWithoutLicenses, startOf, sums } from "./LedgerRows.ts"

/** Scanning this many rows takes some tens of milliseconds. */
const scanRowsMax = 50_000
/** Days with more rows are not summed, but read from the ledger. */
export const dayRowsMax = 200_000_000
/** A statement sums this many rows within its time limit: 411,000 rows took 2.3 s. */
const quickRowsMax = 2_000_000
const limits = { scanRowsMax, dayRowsMax, quickRowsMax }

/** After this delay a day is over by the clocks of all nodes, and a day with late rows is summed again. */
const settleMillis = 600_000

export class UsageRollup extends Context.Service<
  UsageRollup,
  {
    readonly pass: Effect.Effect<void, unknown>
    /** Scans a batch of rows and, after the last batch, sums one day. False if nothing is left, or another node runs it. */
    readonly step: Effect.Effect<boolean, unknown>
  }
>()("licensing/insight/reports/usage/UsageRollup") {
  static readonly layer = UsageRollup.layerWith({})

  static layerWith(given: Partial<typeof limits>) {
    const { dayRowsMax, quickRowsMax, scanRowsMax } = { ...limits, ...given }
    return Layer.effect(
      UsageRollup,
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const { url } = yield* Postgres
        const exclusive = (client: SqlClient.SqlClient) => exclusively(client, "usage-rollup")
        const rollUp = (client: SqlClient.SqlClient) => exclusive(client)(rollUpDay(client, dayRowsMax))

        // A connection without a time limit.
        const rollUpLong = Effect.scoped(
          Effect.flatMap(
            Layer.build(Layer.fresh(Postgres.layer({ url, maxConnections: 1, statementTimeoutMillis: 0 }))),
            (context) => patiently(rollUp(Context.get(context, SqlClient.SqlClient)))
          )
        )

        const step = Effect.gen(function* () {
          const scanned = yield* exclusive(sql)(scanLedger(sql, scanRowsMax))
          // Until the scan is complete, a day may get more rows and would have to be summed again.
          if (Option.isNone(scanned) || scanned.value === scanRowsMax) return Option.isSome(scanned)
          const pending = yield* pendingDay(sql, dayRowsMax)
          if (pending === undefined) return false
          return Option.contains(yield* pending.rows > quickRowsMax ? rollUpLong : rollUp(sql), true)
        })
        const pass = Effect.gen(function* () {
          while (yield* step);
        })
        return UsageRollup.of({ step, pass: Effect.withSpan(pass, "UsageRollup.pass") })
      })
    )
  }
}

const scanLedger = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, scanRowsMax: number) {
  const now = yield* Clock.currentTimeMillis
  const [scan] = yield* sql<{ readonly rows: number }>`
    WITH batch AS MATERIALIZED (
      SELECT sequence AS first, least(sequence + ${scanRowsMax}::int8, ledger_last) AS last
      FROM usage_rollup_progress, event_sequence
    ), days AS (
      SELECT ${sql.literal(startOf("day", "occurred_at"))} AS day, count(*) AS rows
      FROM batch CROSS JOIN LATERAL (
        SELECT occurred_at FROM usage_ledger WHERE sequence > batch.first AND sequence <= batch.last
      ) AS used
      GROUP BY 1
    ), counted AS (
      INSERT INTO usage_rollup_days AS stored (day, ledger_rows, seen_at) SELECT day, rows, ${instant(now)} FROM days
      ON CONFLICT (day) DO UPDATE SET ledger_rows = stored.ledger_rows + excluded.ledger_rows, seen_at = excluded.seen_at
    )
    UPDATE usage_rollup_progress SET sequence = batch.last FROM batch WHERE batch.last > batch.first
    RETURNING batch.last - batch.first AS rows`
  return scan?.rows ?? 0
})

/** The newest day that is over and not summed. A day with removed rows keeps its sums, even if a late row follows. */
const pendingDay = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, dayRowsMax: number) {
  const settledBefore = (yield* Clock.currentTimeMillis) - settleMillis
  const [pending] = yield* sql<{ readonly day: number; readonly rows: number }>`
    SELECT day, ledger_rows AS rows FROM usage_rollup_days
    WHERE rolled_rows <> ledger_rows AND ledger_rows <= ${dayRowsMax} AND day <= ${instant(settledBefore - dayMillis)}
      AND (rolled_rows = 0 OR seen_at <= ${instant(settledBefore)}) AND day > ${ledgerRemovedAt(sql)}
    ORDER BY day DESC LIMIT 1`
  return pending
})

const rollUpDay = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, dayRowsMax: number) {
  const pending = yield* pendingDay(sql, dayRowsMax)
  if (pending === undefined) return false
  const from = instant(pending.day)
  const to = instant(pending.day + dayMillis)
  yield* sql`DELETE FROM usage_rollup WHERE unit IN ('hour', 'day') AND bucket_start >= ${from} AND bucket_start < ${to}`
  // The service's connections are tuned for index look-ups. This statement reads a whole day, and sorts it in memory if it fits.
  yield* sql`
    SELECT set_config(name, value, true)
    FROM (VALUES ('enable_seqscan', 'on'), ('enable_hashjoin', 'on'), ('plan_cache_mode', 'force_custom_plan'),
      ('work_mem', '64MB')) AS planned (name, value)`
  yield* sql`
    INSERT INTO usage_rollup
      (unit, bucket_start, product_id, feature_id, consumed, consumptions, reversed, reset, topped_up, credits_used, overage,
        licenses)
    SELECT CASE WHEN grouping(hour) = 0 THEN 'hour' ELSE 'day' END, coalesce(hour, ${from}), product_id,
      CASE WHEN grouping(feature_id) = 0 THEN feature_id ELSE '' END,
      sum(consumed), sum(consumptions), sum(reversed), sum(reset), sum(topped_up), sum(credits_used), sum(overage), count(DISTINCT license_id COLLATE "C")
    FROM (
      SELECT ${sql.literal(startOf("hour", "u.occurred_at"))} AS hour, ${sql.literal(productWithoutLicenses)} AS product_id,
        u.feature_id, u.license_id, ${sums(sql, "numeric")}
      FROM ${ledgerTablesWithoutLicenses(sql)}
      WHERE u.occurred_at >= ${from} AND u.occurred_at < ${to}
        AND u.sequence <= (SELECT sequence FROM usage_rollup_progress)
      GROUP BY 1, 2, 3, 4
    ) AS used
    GROUP BY GROUPING SETS ((hour, product_id, feature_id), (hour, product_id), (product_id, feature_id), (product_id))`
  yield* sql`UPDATE usage_rollup_days SET rolled_rows = ledger_rows WHERE day = ${from}`
  return true
})
