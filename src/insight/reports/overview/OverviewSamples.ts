/**
 * Counts what no event tells once a minute, with the clock applied: active and expiring licenses, and taken seats. The numbers of
 * licenses at the beginning of each quarter of an hour are kept, and the most seats taken at once in it, by the times of the leases.
 * A product has a new row of licenses only if its numbers have changed; all products together have one in each sampled quarter.
 */
import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient, type SqlError, type Statement } from "effect/sql"
import { dayMillis } from "../../../contract/api/Timestamp.ts"
import { clockLag } from "../../../licensing/rows/LicenseRows.ts"
import { Settings } from "../../../platform/config/Config.ts"
import { instant } from "../../../platform/postgres/driver/Parameters.ts"
import { exclusively } from "../../../platform/workers/Exclusive.ts"
import { addCounts, allProducts, quarterMillis, quarterOf } from "./OverviewCounts.ts"

/** A license is expiring for so long before it expires. */
const expiringDays = 30
/** The time between two counts, of all nodes together: a little less than the time between two passes of a worker. */
const countMillis = 50_000
/** Leases are read again for so long: nodes commit them with the time before, and their clocks differ. */
const overlapMillis = 60_000
/** After an interruption, seats are counted for so long. */
const seatsMillisMax = dayMillis
/** Rows in one statement. */
const removedMax = 5_000

export class OverviewSamples extends Context.Service<
  OverviewSamples,
  {
    /** Counts, unless another node has done it within the last minute. The pass of a worker. */
    readonly pass: Effect.Effect<void, SqlError.SqlError>
  }
>()("licensing/insight/reports/overview/OverviewSamples") {
  static readonly layer = Layer.effect(
    OverviewSamples,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { validationRetentionDays } = yield* Settings

      const sampleLicenses = Effect.fnUntraced(function* (now: number, quarter: number) {
        // Clocks of nodes differ by less than a quarter of an hour, unless one was wrong.
        const aheadFrom = instant(quarter + quarterMillis)
        const [began] = yield* sql<{ readonly ahead: boolean | null }>`
          UPDATE overview_progress p SET sampled_at = ${instant(quarter)}, sampled_from = least(p.sampled_from, ${instant(quarter)})
          FROM overview_progress before
          WHERE before.sampled_at IS NULL OR before.sampled_at < ${instant(quarter)} OR before.sampled_at > ${aheadFrom}
          RETURNING before.sampled_at > ${aheadFrom} AS ahead`
        if (began === undefined) return
        if (began.ahead === true) yield* removeAhead(sql, quarter)
        yield* insertSamples(sql, quarter)
        yield* removeOld(sql, now - validationRetentionDays * dayMillis)
      })

      const sample = Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis
        const quarter = now - (now % quarterMillis)
        // Another node has counted already, unless its clock is far ahead.
        const [due] = yield* sql<{ readonly before: number | null }>`
          UPDATE overview_progress p SET counted_at = ${instant(now)} FROM overview_progress last
          WHERE last.counted_at IS NULL OR last.counted_at <= ${instant(now - countMillis)}
            OR last.counted_at > ${instant(now + countMillis)}
          RETURNING last.counted_at AS before`
        if (due === undefined) return
        yield* storeNumbers(sql, now)
        const from = Math.max(Math.min(due.before ?? now, now) - overlapMillis, now - seatsMillisMax)
        yield* addCounts(sql, seatPeaks(sql, from, now), "peak") as Statement.Statement<object>
        yield* sampleLicenses(now, quarter)
      })
      const pass = Effect.asVoid(exclusively(sql, "overview-samples")(sample))
      return OverviewSamples.of({ pass: Effect.withSpan(pass, "OverviewSamples.pass") })
    })
  )
}

/** The number of taken seats by product, with the clock applied. */
export const seatsNow = (sql: SqlClient.SqlClient, now: number): Statement.Fragment => sql`
  SELECT l.product_id, count(*) AS count FROM leases e JOIN licenses l ON l.id = e.license_id JOIN policies p ON p.id = l.policy_id
  WHERE e.status = 'live' AND e.expires_at > ${instant(now)}
    AND (l.expires_at IS NULL OR greatest(l.expires_at + make_interval(days => p.grace_period_days), e.borrowed_until) > ${instant(now)})
  GROUP BY l.product_id`

/**
 * Active and expiring licenses by product. Licenses that a clock ahead has recorded as in grace or expired are active, too; an index
 * finds these few. All others come from the index of active ones.
 */
export const licensesNow = (sql: SqlClient.SqlClient, now: number): Statement.Fragment => {
  const soon = instant(now + expiringDays * dayMillis)
  return sql`
    SELECT p.product_id, sum(active)::bigint AS active, sum(expiring)::bigint AS expiring FROM (
      SELECT policy_id, count(*) AS active, count(*) FILTER (WHERE expires_at <= ${soon}) AS expiring FROM license_states
      WHERE status = 'active' AND (expires_at IS NULL OR expires_at > ${instant(now)}) GROUP BY policy_id
      UNION ALL
      SELECT policy_id, count(*), count(*) FILTER (WHERE expires_at <= ${soon}) FROM license_states
      WHERE status IN ('grace_period', 'expired')
        AND CASE WHEN status IN ('grace_period', 'expired') THEN expires_at AT TIME ZONE 'UTC' END
          > (${instant(now)} AT TIME ZONE 'UTC') + ${sql.literal(clockLag)}
      GROUP BY policy_id
    ) AS counted JOIN policies p ON p.id = counted.policy_id GROUP BY p.product_id`
}

const storeNumbers = (sql: SqlClient.SqlClient, now: number) => sql`
  WITH counted AS MATERIALIZED (${licensesNow(sql, now)}), taken AS MATERIALIZED (${seatsNow(sql, now)}), numbers AS (
    SELECT p.id AS product_id, coalesce(l.active, 0) AS active, coalesce(l.expiring, 0) AS expiring, coalesce(s.count, 0) AS seats
    FROM products p LEFT JOIN counted l ON l.product_id = p.id LEFT JOIN taken s ON s.product_id = p.id
    UNION ALL
    SELECT ${allProducts}, (SELECT coalesce(sum(active), 0)::bigint FROM counted),
      (SELECT coalesce(sum(expiring), 0)::bigint FROM counted), (SELECT coalesce(sum(count), 0)::bigint FROM taken)
  )
  INSERT INTO license_numbers AS n (product_id, active, expiring, seats) SELECT * FROM numbers
  ON CONFLICT (product_id) DO UPDATE SET active = excluded.active, expiring = excluded.expiring, seats = excluded.seats
  WHERE (n.active, n.expiring, n.seats) <> (excluded.active, excluded.expiring, excluded.seats)`

/**
 * The most seats taken at once in each quarter of a time until now, by product and of all products. Reads the live leases and those
 * that ended in this time.
 */
const seatPeaks = (sql: SqlClient.SqlClient, from: number, now: number): Statement.Fragment => sql`
  WITH held AS MATERIALIZED (
    SELECT l.product_id, greatest(e.checked_out_at, ${instant(from)}) AS since,
      least(e.ended_at, e.expires_at, CASE WHEN l.expires_at IS NOT NULL THEN
        greatest(l.expires_at + make_interval(days => p.grace_period_days), e.borrowed_until) END) AS until
    FROM (
      SELECT license_id, checked_out_at, ended_at, expires_at, borrowed_until FROM leases WHERE status = 'live'
      UNION ALL
      SELECT license_id, checked_out_at, ended_at, expires_at, borrowed_until FROM leases WHERE ended_at > ${instant(from)}
    ) AS e JOIN licenses l ON l.id = e.license_id JOIN policies p ON p.id = l.policy_id
  ), changes AS (
    SELECT product.id, change.at, sum(change.seats) AS seats
    FROM held CROSS JOIN LATERAL (VALUES (since, 1), (until, -1)) AS change (at, seats)
      CROSS JOIN LATERAL (VALUES (product_id), (${allProducts})) AS product (id)
    WHERE since < until AND change.at <= ${instant(now)} GROUP BY 1, 2
    UNION ALL
    -- Each quarter begins with the seats of the one before.
    SELECT product.id, quarter.at, 0
    FROM (SELECT DISTINCT product_id FROM held UNION ALL SELECT ${allProducts}) AS product (id)
      CROSS JOIN generate_series(${instant(from - (from % quarterMillis) + quarterMillis)}, ${instant(now)}, '15 minutes') AS quarter (at)
  ), counted AS (SELECT id, at, sum(seats) OVER (PARTITION BY id ORDER BY at) AS seats FROM changes)
  SELECT id AS product_id, ${sql.literal(quarterOf("at"))} AS bucket_start, 'seats'::text AS kind, ''::text AS code,
    max(seats)::bigint AS count
  FROM counted GROUP BY 1, 2 HAVING max(seats) > 0`

const insertSamples = (sql: SqlClient.SqlClient, quarter: number) => sql`
  INSERT INTO license_samples (product_id, at, active, expiring)
  SELECT n.product_id, ${instant(quarter)}, n.active, n.expiring FROM license_numbers n LEFT JOIN LATERAL (
    SELECT s.active, s.expiring FROM license_samples s WHERE s.product_id = n.product_id ORDER BY s.at DESC LIMIT 1
  ) AS last ON TRUE
  WHERE n.product_id = ${allProducts}
    OR (n.active, n.expiring) <> (coalesce(last.active, 0), coalesce(last.expiring, 0))
  ON CONFLICT DO NOTHING`

/** What a clock that was ahead has recorded for later times. It would hide what is counted then. */
const removeAhead = (sql: SqlClient.SqlClient, quarter: number) =>
  Effect.all(
    [
      sql`DELETE FROM license_samples WHERE at > ${instant(quarter)}`,
      sql`DELETE FROM overview_counts WHERE unit IN ('quarter', 'day') AND bucket_start > ${instant(quarter)} AND kind = 'seats'`
    ],
    { discard: true }
  )

/** Days stay, and so does the last sample of a product. */
const removeOld = (sql: SqlClient.SqlClient, before: number) =>
  Effect.all(
    [
      sql`
        DELETE FROM overview_counts WHERE (product_id, unit, bucket_start, kind, code) IN (
          SELECT product_id, unit, bucket_start, kind, code FROM overview_counts
          WHERE unit = 'quarter' AND bucket_start < ${instant(before)} ORDER BY bucket_start LIMIT ${removedMax})`,
      sql`
        DELETE FROM license_samples s WHERE at < ${instant(before)} AND EXISTS (
          SELECT FROM license_samples later
          WHERE later.product_id = s.product_id AND later.at > s.at AND later.at <= ${instant(before)})`
    ],
    { discard: true }
  )
