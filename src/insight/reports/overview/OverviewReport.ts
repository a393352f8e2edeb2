/**
 * The overview: what happened in each hour or day, of some products or of all. It reads sums only, and what was recorded since they
 * were made, so its time depends on the number of buckets and not on the number of licenses; the current numbers of
 * licenses and seats come from the last count of the worker.
 */
import { Effect, Schema } from "effect"
import type { SqlClient } from "effect/sql"
import { refuse } from "../../../contract/api/Failure.ts"
import { Count } from "../../../contract/api/Int64.ts"
import { dayMillis, earliest, hourMillis, Timestamp } from "../../../contract/api/Timestamp.ts"
import { columns, instant } from "../../../platform/postgres/driver/Parameters.ts"
import { decodeRows } from "../../../platform/postgres/queries/Sql.ts"
import type { Overview, OverviewFigures, OverviewFilter } from "../model/Overview.ts"
import { ledgerPeriodOf } from "../model/RequestChecks.ts"
import { ledgerTablesWithoutLicenses, productWithoutLicenses, Sums, sums, usageOf } from "../usage/LedgerRows.ts"
import { inRanges, sourcesOf } from "../usage/UsageSources.ts"
import { refuseUnknownZone } from "../usage/UsageSummary.ts"
import { allProducts, uncounted } from "./OverviewCounts.ts"
import { licensesNow, seatsNow } from "./OverviewSamples.ts"

const daysDefault = 30
const bucketsMax = 1_000
const ageMillisMax = 120_000
const units = { "1h": hourMillis, "1d": dayMillis } as const

/** The products of a report: all of them if undefined. */
type Products = ReadonlyArray<string> | undefined

interface Range {
  readonly from: number
  readonly to: number
}

const decodeStarts = decodeRows(Schema.Struct({ bucket_start: Timestamp }))
const CountRow = Schema.Struct({ bucket: Count, kind: Schema.String, code: Schema.String, count: Count })
const decodeCounts = decodeRows(CountRow)
const SampleRow = Schema.Struct({ bucket: Count, active: Count, expiring: Count })
const decodeSamples = decodeRows(SampleRow)
const decodeNow = decodeRows(Schema.Struct({ active: Count, expiring: Count, seats: Count }))
const Progress = Schema.Struct({
  counted_at: Schema.optionalKey(Timestamp),
  sampled_from: Schema.optionalKey(Timestamp)
})
type Progress = typeof Progress.Type
const decodeProgress = decodeRows(Progress)
const ConsumptionRow = Schema.Struct({
  ...Sums.fields,
  bucket: Count,
  feature_code: Schema.optionalKey(Schema.String)
})
const decodeConsumption = decodeRows(ConsumptionRow)

/** Reads the overview of these products, or of all. */
export const overview = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  filter: OverviewFilter,
  products: Products,
  now: number
) {
  const { bucket = "1d", product_id, tz = "UTC" } = filter
  const from = filter.from ?? Math.max(earliest, Math.min(filter.to ?? now, now) - daysDefault * units["1d"])
  const { to, ...period } = yield* ledgerPeriodOf(sql, { ...filter, from }, now)
  const range = { from, to }
  if ((to - from) / units[bucket] > bucketsMax) return yield* tooManyBuckets
  yield* refuseUnknownZone(sql, tz)
  const starts = yield* startsOf(sql, range, bucket, tz)
  const counts = yield* countsOf(sql, range, starts, products)
  const ends = starts.map((_, index) => Math.min(starts[index + 1] ?? to, now))
  const [progress = {}] = yield* decodeProgress(sql`SELECT counted_at, sampled_from FROM overview_progress`)
  const samples = yield* samplesIn(sql, starts, ends, products)
  const isNow = (index: number) => starts[index]! <= now && ends[index] === now
  const current = starts.some((_, index) => isNow(index)) ? yield* numbersNow(sql, products, progress, now) : undefined
  const consumption = yield* consumptionOf(sql, range, starts, products)
  const result: Overview = {
    period: { ...period, to },
    bucket,
    tz,
    ...(product_id === undefined ? undefined : { product_id }),
    ...(progress.sampled_from === undefined ? undefined : { counted_from: progress.sampled_from }),
    buckets: yield* Effect.forEach(starts, (bucket_start, index) => {
      const rows = counts.get(index + 1) ?? []
      const sample = samples.get(index + 1)
      const numbers = isNow(index) ? current : sample
      return bucketOf(bucket_start, rows, consumption.get(index + 1) ?? [], numbers && { seats: 0, ...numbers })
    })
  }
  return result
})

const tooManyBuckets = refuse(
  "INVALID_QUERY",
  `The report has more than ${bucketsMax} buckets: choose a shorter period or larger buckets.`,
  "bucket"
)

/** The starts of all hours or days of a time zone that the period touches, the earliest first. */
const startsOf = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  { from, to }: Range,
  bucket: "1h" | "1d",
  tz: string
) {
  const last = instant(to - 1)
  const rows = yield* decodeStarts(
    bucket === "1h"
      ? sql`SELECT generate_series(date_trunc('hour', ${instant(from)}, ${tz}::text), ${last}, '1 hour') AS bucket_start`
      : sql`
          SELECT day AT TIME ZONE ${tz}::text AS bucket_start
          FROM generate_series(date_trunc('day', ${instant(from)} AT TIME ZONE ${tz}::text),
            ${last} AT TIME ZONE ${tz}::text, '1 day') AS day`
  )
  return rows.map(({ bucket_start }) => bucket_start)
})

/** Whole days of UTC are counted by the day, if buckets are such days; all else is counted by quarters of an hour. */
const countsOf = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  range: Range,
  starts: ReadonlyArray<number>,
  products: Products
) {
  const day = units["1d"]
  const days = { from: Math.ceil(range.from / day) * day, to: Math.floor(range.to / day) * day }
  const byDay = starts.every((start) => start % day === 0) && days.from < days.to
  const within = (unit: "quarter" | "day", { from, to }: Range) => sql`
    (unit = ${unit} AND bucket_start >= ${instant(from)} AND bucket_start < ${instant(to)})`
  const ranges = byDay
    ? sql.or([
        within("day", days),
        within("quarter", { from: range.from, to: days.from }),
        within("quarter", { from: days.to, to: range.to })
      ])
    : within("quarter", range)
  const rows = yield* decodeCounts(sql`
    SELECT width_bucket(bucket_start, ${columns.timestamptz(starts)}) AS bucket, kind, code,
      (CASE kind WHEN 'seats' THEN max(count) ELSE sum(count) END)::bigint AS count
    FROM (
      SELECT bucket_start, kind, code, sum(count) AS count FROM overview_counts
      WHERE product_id = ANY(${columns.text(products ?? [allProducts])}) AND ${ranges} GROUP BY 1, 2, 3
      UNION ALL
      SELECT bucket_start, kind, code, sum(count) FROM (${uncounted(sql)}) AS recent
      WHERE bucket_start >= ${instant(range.from)} AND bucket_start < ${instant(range.to)}
        AND ${products === undefined ? sql`TRUE` : sql`product_id = ANY(${columns.text(products)})`} GROUP BY 1, 2, 3
    ) AS counted GROUP BY 1, 2, 3`)
  return Map.groupBy(rows, ({ bucket }) => bucket)
})

/** The last sample of each bucket that has one. Of all products together each sample has a row. */
const samplesIn = (
  sql: SqlClient.SqlClient,
  starts: ReadonlyArray<number>,
  ends: ReadonlyArray<number>,
  products: Products
) =>
  Effect.map(
    decodeSamples(sql`
      SELECT b.ordinal AS bucket, coalesce(sum(s.active), 0)::bigint AS active, coalesce(sum(s.expiring), 0)::bigint AS expiring
      FROM unnest(${columns.timestamptz(starts)}::timestamptz[], ${columns.timestamptz(ends)}::timestamptz[])
          WITH ORDINALITY AS b (start, at, ordinal)
        CROSS JOIN unnest(${columns.text(products ?? [allProducts])}::text[]) AS product (id)
        LEFT JOIN LATERAL (
          SELECT active, expiring FROM license_samples WHERE product_id = product.id AND at <= b.at ORDER BY at DESC LIMIT 1
        ) AS s ON TRUE
      WHERE EXISTS (
        SELECT FROM license_samples WHERE product_id = ${allProducts} AND at > b.start AND at <= b.at OFFSET 0
      )
      GROUP BY b.ordinal`),
    (rows) => new Map(rows.map((row) => [row.bucket, row]))
  )

/** The last count, if the worker has made it within two minutes. Counting a million licenses takes some 100 ms. */
const numbersNow = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  products: Products,
  { counted_at }: Progress,
  now: number
) {
  if (counted_at === undefined || now - counted_at > ageMillisMax || counted_at > now)
    return yield* countNow(sql, products, now)
  const [row] = yield* decodeNow(sql`
    SELECT coalesce(sum(active), 0)::bigint AS active, coalesce(sum(expiring), 0)::bigint AS expiring,
      coalesce(sum(seats), 0)::bigint AS seats
    FROM license_numbers WHERE product_id = ANY(${columns.text(products ?? [allProducts])})`)
  return row
})

const countNow = (sql: SqlClient.SqlClient, products: Products, now: number) => {
  const selected = products === undefined ? sql`TRUE` : sql`product_id = ANY(${columns.text(products)})`
  return Effect.map(
    decodeNow(sql`
      SELECT coalesce(sum(active), 0)::bigint AS active, coalesce(sum(expiring), 0)::bigint AS expiring,
        (SELECT coalesce(sum(count), 0)::bigint FROM (${seatsNow(sql, now)}) AS taken WHERE ${selected}) AS seats
      FROM (${licensesNow(sql, now)}) AS licenses WHERE ${selected}`),
    ([row]) => row
  )
}

/** By feature: whole hours from the rollup, if buckets begin with an hour of UTC; all else from the ledger. */
const consumptionOf = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  { from, to }: Range,
  starts: ReadonlyArray<number>,
  products: Products
) {
  const unit = (["1d", "1h"] as const).find((unit) => starts.every((start) => start % units[unit] === 0))
  const { ledger, rollup } =
    unit === undefined
      ? { ledger: [{ from, to }], rollup: [] }
      : yield* sourcesOf(sql, { from, to, bucket: unit, group_by: ["feature_code"] })
  const selected = (column: string) =>
    products === undefined ? sql`TRUE` : sql`${sql.literal(column)} = ANY(${columns.text(products)})`
  const bucketOf = (column: string) =>
    sql`width_bucket(${sql.literal(column)}, ${columns.timestamptz(starts)}) AS bucket`
  const rolled = sql`
    SELECT ${bucketOf("r.bucket_start")}, f.code AS feature_code, sum(r.consumed) AS consumed,
      sum(r.consumptions)::bigint AS consumptions
    FROM usage_rollup r LEFT JOIN features f ON f.id = r.feature_id
    WHERE r.unit = ${unit === "1d" ? "day" : "hour"} AND r.feature_id <> '' AND ${selected("r.product_id")}
      AND ${inRanges(sql, "r.bucket_start", rollup)} GROUP BY 1, 2`
  const used = sql`
    SELECT ${bucketOf("u.occurred_at")}, f.code AS feature_code, ${sums(sql, "numeric")}
    FROM ${ledgerTablesWithoutLicenses(sql)}
    WHERE u.action = 'consume' AND ${selected(productWithoutLicenses)} AND ${inRanges(sql, "u.occurred_at", ledger)}
    GROUP BY 1, 2`
  const parts = [
    ...(rollup.length > 0 ? [rolled] : []),
    ...(ledger.length > 0 ? [sql`SELECT bucket, feature_code, consumed, consumptions FROM (${used}) AS used`] : [])
  ]
  if (parts.length === 0) return new Map<number, ReadonlyArray<typeof ConsumptionRow.Type>>()
  const union = parts.slice(1).reduce((all, one) => sql`${all} UNION ALL ${one}`, parts[0]!)
  const rows = yield* decodeConsumption(sql`
    SELECT bucket, feature_code, sum(consumed)::text AS consumed, sum(consumptions)::bigint AS consumptions, '0' AS reversed,
      '0' AS reset, '0' AS topped_up, '0' AS credits_used, '0' AS overage
    FROM (${union}) AS consumption GROUP BY 1, 2 HAVING sum(consumptions) > 0 ORDER BY 1, 2`)
  return Map.groupBy(rows, ({ bucket }) => bucket)
})

interface Numbers {
  readonly active: number
  readonly expiring: number
  /** The seats taken at least. */
  readonly seats: number
}

const bucketOf = Effect.fnUntraced(function* (
  bucket_start: number,
  rows: ReadonlyArray<typeof CountRow.Type>,
  consumption: ReadonlyArray<typeof ConsumptionRow.Type>,
  numbers: Numbers | undefined
) {
  const countOf = (kind: string) => rows.find((row) => row.kind === kind)?.count ?? 0
  const used = yield* Effect.forEach(consumption, (row) =>
    Effect.map(usageOf(row), ({ consumed, consumptions }) => ({
      ...(row.feature_code === undefined ? undefined : { feature_code: row.feature_code }),
      consumed,
      consumptions
    }))
  )
  const bucket: OverviewFigures = {
    bucket_start,
    licenses_created: countOf("created"),
    licenses_expired: countOf("expired"),
    maintenance_renewed: countOf("maintenance_renewed"),
    maintenance_expired: countOf("maintenance_expired"),
    activations: countOf("activated"),
    ...(numbers && {
      licenses_active: numbers.active,
      licenses_expiring: numbers.expiring,
      seats_peak: Math.max(numbers.seats, countOf("seats"))
    }),
    consumption: used,
    refusals: Object.fromEntries(
      rows.flatMap(({ code, count, kind }) => (kind === "refused" ? [[code, count] as const] : []))
    )
  }
  return bucket
})
