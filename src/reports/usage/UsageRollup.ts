/**
 * Keeps sums of the usage ledger by hours and days of UTC, behind the ledger. It looks through the ledger in the order of its
 * numbers and notes which days the rows lie in; days that are over are summed up, the newest first. What must stay true: the sums
 * of a day whose noted rows are all in them are those of all its rows up to where the ledger has been looked through. So a row
 * that comes late makes its day one to sum up again, and nobody takes sums that lack it for the truth.
 */
import { Clock, Context, Effect, Layer, Option } from "effect"
import { SqlClient } from "effect/sql"
import { instant } from "../../postgres/Parameters.ts"
import { exclusively } from "../../workers/Exclusive.ts"
import { ledgerTablesUnlinked, productUnlinked, startOf, sums } from "./LedgerRows.ts"

/** Rows that are looked through in one transaction: some tens of milliseconds. */
const stretchRows = 50_000
/** Rows of a day that is summed up, in one statement: 2.3 s were measured for 411,000. Longer days stay with the ledger. */
export const dayRowsMax = 2_000_000
const limits = { stretchRows, dayRowsMax }

const dayMillis = 86_400_000
/** A day is over when the clocks of all nodes say so; one that gets late rows is left alone until they have stopped coming. */
const settleMillis = 600_000

export class UsageRollup extends Context.Service<
  UsageRollup,
  {
    /** Looks through what has come, and sums up all days that are over. */
    readonly pass: Effect.Effect<void, unknown>
    /** Looks through a stretch and, behind the last one, sums up a day. False where nothing is left, or another node is at it. */
    readonly step: Effect.Effect<boolean, unknown>
  }
>()("licensing/reports/usage/UsageRollup") {
  static readonly layer = UsageRollup.layerWith({})

  /** With other limits than the service's. */
  static layerWith(given: Partial<typeof limits>) {
    const { dayRowsMax, stretchRows } = { ...limits, ...given }
    return Layer.effect(
      UsageRollup,
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const alone = exclusively(sql, "usage-rollup")

        const step = Effect.gen(function* () {
          const looked = yield* alone(lookThrough(sql, stretchRows))
          // A day that more rows may turn up for is not worth summing up yet.
          if (Option.isNone(looked) || looked.value === stretchRows) return Option.isSome(looked)
          return Option.contains(yield* alone(sumUp(sql, dayRowsMax)), true)
        })
        const pass = Effect.gen(function* () {
          while (yield* step);
        })
        return UsageRollup.of({ step, pass: Effect.withSpan(pass, "UsageRollup.pass") })
      })
    )
  }
}

/** Notes the days of the next rows. Gives how many rows there were. */
const lookThrough = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, stretchRows: number) {
  const now = yield* Clock.currentTimeMillis
  const [stretch] = yield* sql<{ readonly rows: number }>`
    WITH stretch AS MATERIALIZED (
      SELECT sequence AS first, least(sequence + ${stretchRows}::int8, ledger_last) AS last
      FROM usage_rollup_progress, event_sequence
    ), held AS (
      SELECT ${sql.literal(startOf("day", "occurred_at"))} AS day, count(*) AS rows
      FROM stretch CROSS JOIN LATERAL (
        SELECT occurred_at FROM usage_ledger WHERE sequence > stretch.first AND sequence <= stretch.last
      ) AS used
      GROUP BY 1
    ), noted AS (
      INSERT INTO usage_rollup_days AS known (day, ledger_rows, seen_at) SELECT day, rows, ${instant(now)} FROM held
      ON CONFLICT (day) DO UPDATE SET ledger_rows = known.ledger_rows + excluded.ledger_rows, seen_at = excluded.seen_at
    )
    UPDATE usage_rollup_progress SET sequence = stretch.last FROM stretch WHERE stretch.last > stretch.first
    RETURNING stretch.last - stretch.first AS rows`
  return stretch?.rows ?? 0
})

/** Sums up the newest day that is over and not summed up. False where there was none. */
const sumUp = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, dayRowsMax: number) {
  const settled = (yield* Clock.currentTimeMillis) - settleMillis
  const [open] = yield* sql<{ readonly day: number }>`
    SELECT day FROM usage_rollup_days
    WHERE rolled_rows <> ledger_rows AND ledger_rows <= ${dayRowsMax} AND day <= ${instant(settled - dayMillis)}
      AND (rolled_rows = 0 OR seen_at <= ${instant(settled)})
    ORDER BY day DESC LIMIT 1`
  if (open === undefined) return false
  const from = instant(open.day)
  const to = instant(open.day + dayMillis)
  yield* sql`DELETE FROM usage_rollup WHERE unit IN ('hour', 'day') AND bucket_start >= ${from} AND bucket_start < ${to}`
  // The connections of the service are set for look-ups. This one statement reads a day, and sorts it in memory where it can.
  yield* sql`
    SELECT set_config(name, value, true)
    FROM (VALUES ('enable_seqscan', 'on'), ('enable_hashjoin', 'on'), ('plan_cache_mode', 'force_custom_plan'),
      ('work_mem', '64MB')) AS planned (name, value)`
  yield* sql`
    INSERT INTO usage_rollup
      (unit, bucket_start, product_id, feature_id, consumed, consumptions, reset, topped_up, licenses)
    SELECT CASE WHEN grouping(hour) = 0 THEN 'hour' ELSE 'day' END, coalesce(hour, ${from}), product_id,
      CASE WHEN grouping(feature_id) = 0 THEN feature_id ELSE '' END,
      sum(consumed), sum(consumptions), sum(reset), sum(topped_up), count(DISTINCT license_id COLLATE "C")
    FROM (
      SELECT ${sql.literal(startOf("hour", "u.occurred_at"))} AS hour, ${sql.literal(productUnlinked)} AS product_id,
        u.feature_id, u.license_id, ${sums(sql, "numeric")}
      FROM ${ledgerTablesUnlinked(sql)}
      WHERE u.occurred_at >= ${from} AND u.occurred_at < ${to}
        AND u.sequence <= (SELECT sequence FROM usage_rollup_progress)
      GROUP BY 1, 2, 3, 4
    ) AS used
    GROUP BY GROUPING SETS ((hour, product_id, feature_id), (hour, product_id), (product_id, feature_id), (product_id))`
  yield* sql`UPDATE usage_rollup_days SET rolled_rows = ledger_rows WHERE day = ${from}`
  return true
})
