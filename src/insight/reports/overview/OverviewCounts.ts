/**
 * Counts what the overview shows by quarters of an hour: licenses created and expired, maintenance, activations, refusals by code. A worker scans
 * events and refusals in the order of their numbers and stores the place that it has reached with the counts, so each is counted
 * once. What a change costs does not grow by it: no request writes a count. A quarter of an hour fits the hours and days of every
 * time zone.
 */
import { Context, Effect, Layer, Option } from "effect"
import { SqlClient, type SqlError, type Statement } from "effect/sql"
import { exclusively } from "../../../platform/workers/Exclusive.ts"
import { sendHeartbeat } from "../../../platform/workers/PassHeartbeat.ts"

/** Events or refusals in one transaction: about 100 ms. */
const scannedMax = 20_000

export const quarterMillis = 900_000
const origin = "timestamptz '2000-01-01 00:00:00+00'"
export const quarterOf = (time: string) => `date_bin('15 minutes', ${time}, ${origin})`

/** Of all products together, counts have this product_id. */
export const allProducts = ""

export class OverviewCounts extends Context.Service<
  OverviewCounts,
  {
    /** Counts all that is recorded. The pass of a worker. */
    readonly pass: Effect.Effect<void, SqlError.SqlError>
  }
>()("licensing/insight/reports/overview/OverviewCounts") {
  static readonly layer = Layer.effect(
    OverviewCounts,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const exclusive = exclusively(sql, "overview-counts")

      const untilDone = Effect.fnUntraced(function* (batch: Effect.Effect<number, SqlError.SqlError>) {
        while (true) {
          const scanned = yield* exclusive(batch)
          yield* sendHeartbeat
          if (Option.isNone(scanned) || scanned.value < scannedMax) return
        }
      })
      const pass = Effect.andThen(
        untilDone(count(sql, newEvents(sql), "event_sequence")),
        untilDone(count(sql, newRefusals(sql), "activity_sequence"))
      )
      return OverviewCounts.of({ pass: Effect.withSpan(pass, "OverviewCounts.pass") })
    })
  )
}

/** The events after the last one that was counted; the kind of those that are not counted is null. */
const newEvents = (sql: SqlClient.SqlClient) => sql`
  SELECT sequence, resource_id AS license_id, created_at AS at,
    CASE event_type WHEN 'license.created' THEN 'created' WHEN 'license.expired' THEN 'expired'
      WHEN 'license.activated' THEN 'activated' WHEN 'license.maintenance_renewed' THEN 'maintenance_renewed'
      WHEN 'license.maintenance_expired' THEN 'maintenance_expired' WHEN 'license.activation_limit_reached' THEN 'refused' END AS kind,
    CASE event_type WHEN 'license.activation_limit_reached' THEN coalesce(metadata ->> 'code', '') ELSE '' END AS code
  FROM event_log WHERE sequence > (SELECT event_sequence FROM overview_progress) ORDER BY sequence LIMIT ${scannedMax}`

const newRefusals = (sql: SqlClient.SqlClient) => sql`
  SELECT activity_sequence AS sequence, license_id, occurred_at AS at, 'refused'::text AS kind, code
  FROM refusals WHERE activity_sequence > (SELECT activity_sequence FROM overview_progress)
  ORDER BY activity_sequence LIMIT ${scannedMax}`

// OFFSET keeps the look-up by id apart: as a join it was planned while the tables were new, and read the batch for each license,
// which took a fifth of PostgreSQL's time for an import.
const sumsOf = (sql: SqlClient.SqlClient, batch: string) =>
  sql.literal(`
  SELECT l.product_id, ${quarterOf("b.at")} AS bucket_start, b.kind, b.code, count(*) AS count
  FROM ${batch} b CROSS JOIN LATERAL (SELECT product_id FROM licenses WHERE id = b.license_id OFFSET 0) l
  WHERE b.kind IS NOT NULL GROUP BY 1, 2, 3, 4`)

/** Counts that are not stored yet. A report adds them, so that it lacks nothing while the worker keeps up. */
export const uncounted = (sql: SqlClient.SqlClient): Statement.Fragment => sql`
  SELECT * FROM (
    WITH events AS MATERIALIZED (${newEvents(sql)}), refused AS MATERIALIZED (${newRefusals(sql)})
    ${sumsOf(sql, "events")} UNION ALL ${sumsOf(sql, "refused")}
  ) AS recent`

const merges = {
  sum: { group: "sum(count)", products: "(counted.product_id), ('')", stored: "stored.count + excluded.count" },
  peak: { group: "max(count)", products: "(counted.product_id)", stored: "greatest(stored.count, excluded.count)" }
} as const

/**
 * Adds rows (product_id, bucket_start, kind, code, count) of quarters, by quarter and by day. Sums are also added up for all
 * products; the peak of all products is a row of its own.
 */
export const addCounts = (
  sql: SqlClient.SqlClient,
  rows: Statement.Fragment,
  merge: keyof typeof merges
): Statement.Fragment => {
  const { group, products, stored } = merges[merge]
  return sql`
  INSERT INTO overview_counts AS stored (product_id, unit, bucket_start, kind, code, count)
  SELECT product.id, unit.name, CASE unit.name WHEN 'day' THEN date_bin('1 day', bucket_start, ${sql.literal(origin)})
    ELSE bucket_start END, kind, code, ${sql.literal(group)}
  FROM (${rows}) AS counted CROSS JOIN LATERAL (VALUES ${sql.literal(products)}) AS product (id)
    CROSS JOIN (VALUES ('quarter'), ('day')) AS unit (name)
  GROUP BY 1, 2, 3, 4, 5
  ON CONFLICT (product_id, unit, bucket_start, kind, code) DO UPDATE SET count = ${sql.literal(stored)}`
}

const count = (sql: SqlClient.SqlClient, batch: Statement.Fragment, progress: "event_sequence" | "activity_sequence") =>
  Effect.map(
    sql<{ readonly scanned: number }>`
      WITH batch AS MATERIALIZED (${batch}), counted AS (${addCounts(sql, sumsOf(sql, "batch"), "sum")}), moved AS (
        UPDATE overview_progress SET ${sql(progress)} = (SELECT max(sequence) FROM batch) WHERE EXISTS (SELECT FROM batch)
      )
      SELECT count(*)::int4 AS scanned FROM batch`,
    ([row]) => row?.scanned ?? 0
  )
