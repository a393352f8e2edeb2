/** Sums usage, grouped by records and, if requested, by hours or days of a time zone. */
import { Effect, Schema } from "effect"
import type { SqlClient, SqlError } from "effect/sql"
import { refuse } from "../../../contract/api/Failure.ts"
import { Count } from "../../../contract/api/Int64.ts"
import { dayMillis, earliest, Timestamp } from "../../../contract/api/Timestamp.ts"
import { columns as arrays } from "../../../platform/postgres/driver/Parameters.ts"
import { decodeRows, equals, unionAll } from "../../../platform/postgres/queries/Sql.ts"
import type { Grouping, UsageSummaryFilter } from "../model/Filter.ts"
import { groupFields, type UsageSummary, type UsageSummaryRow } from "../model/Report.ts"
import { ledgerPeriodOf, tooManyRows } from "../model/RequestChecks.ts"
import {
  ledgerCondition,
  ledgerTables,
  ledgerTablesWithoutLicenses,
  productWithoutLicenses,
  Sums,
  startOf,
  sums,
  totalOf,
  usageOf
} from "./LedgerRows.ts"
import { inRanges, type Sources, sourcesOf, type TimeRange } from "./UsageSources.ts"

const daysDefault = 30

const columns: { readonly [K in Grouping]: string } = {
  product_id: "l.product_id",
  customer_id: "l.customer_id",
  license_id: "u.license_id",
  order_id: "l.order_id",
  subscription_id: "l.subscription_id",
  feature_code: "f.code"
}

const units = { "1h": "hour", "1d": "day" } as const

const SummaryRow = Schema.Struct({
  ...groupFields,
  bucket_start: Schema.optionalKey(Timestamp),
  ...Sums.fields,
  licenses: Count,
  /** Whether licenses may be counted twice. */
  is_ambiguous: Schema.Boolean
})
const decodeSummary = decodeRows(SummaryRow)

/** Refuses more rows than `rowsMax`: a summary is never truncated. */
export const usageSummary = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  filter: UsageSummaryFilter,
  now: number,
  rowsMax: number
) {
  const { group_by = ["feature_code"], bucket, tz = "UTC" } = filter
  const from = filter.from ?? Math.max(earliest, Math.min(filter.to ?? now, now) - daysDefault * dayMillis)
  const period = yield* ledgerPeriodOf(sql, { ...filter, from }, now)
  yield* refuseUnknownZone(sql, tz)
  const rows = yield* summaryRows(sql, { ...filter, group_by, from }, rowsMax)
  if (rows.length > rowsMax) return yield* tooManyRows(rowsMax)
  const presented = yield* Effect.forEach(rows, (row) => Effect.map(usageOf(row), (usage) => rowOf(row, usage)))
  const summary: UsageSummary = {
    period,
    group_by,
    ...(bucket === undefined ? undefined : { bucket }),
    tz,
    rows: presented,
    totals: yield* totalOf(rows)
  }
  return summary
})

type SummaryRequest = UsageSummaryFilter & { readonly from: number; readonly group_by: ReadonlyArray<Grouping> }

const summaryRows = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, filter: SummaryRequest, rowsMax: number) {
  const read = (sources: Sources) => {
    const positions = [...(filter.bucket === undefined ? [] : ["bucket_start"]), ...filter.group_by].map(
      (_, at) => at + 1
    )
    const parts = [
      ...(sources.rollup.length > 0 ? [rollupRows(sql, filter, sources.rollup, positions)] : []),
      ...(sources.ledger.length > 0 ? [ledgerRows(sql, filter, sources.ledger, positions)] : [])
    ]
    // No bucket is in both parts, so their groups need no merging.
    return decodeSummary(sql`
      SELECT * FROM (${unionAll(sql, parts)}) AS used ORDER BY ${sql.literal(positions.join(", "))} LIMIT ${rowsMax + 1}`)
  }
  const rows = yield* read(yield* sourcesOf(sql, filter))
  const ambiguous = rows.flatMap(({ bucket_start = 0, is_ambiguous }) => (is_ambiguous ? [dayOf(bucket_start)] : []))
  return ambiguous.length === 0 ? rows : yield* read(yield* sourcesOf(sql, filter, ambiguous))
})

const dayOf = (time: number) => Math.floor(time / dayMillis) * dayMillis

/** Feature codes are unique within a product, and a license belongs to one product only. */
const rollupRows = (
  sql: SqlClient.SqlClient,
  { bucket, feature_code, group_by, product_id, products }: SummaryRequest,
  ranges: ReadonlyArray<TimeRange>,
  positions: ReadonlyArray<number>
) => {
  const byFeature = group_by.includes("feature_code") || feature_code !== undefined
  const keys = group_by.map((field) => (field === "feature_code" ? "f.code AS feature_code" : `r.${field}`))
  // Deleted features have no code: several of a product become one row, and one license may have used several of them.
  const nameless = "FILTER (WHERE f.id IS NULL)"
  const isAmbiguous = byFeature ? `count(*) ${nameless} > count(DISTINCT r.product_id) ${nameless}` : "false"
  return sql`
    SELECT ${sql.literal(["r.bucket_start", ...keys].join(", "))}, sum(r.consumed)::text AS consumed,
      sum(r.consumptions)::bigint AS consumptions, sum(r.reversed)::text AS reversed, sum(r.reset)::text AS reset,
      sum(r.topped_up)::text AS topped_up, sum(r.credits_used)::text AS credits_used, sum(r.overage)::text AS overage,
      sum(r.licenses)::bigint AS licenses, ${sql.literal(isAmbiguous)} AS is_ambiguous
    FROM usage_rollup r ${sql.literal(byFeature ? "LEFT JOIN features f ON f.id = r.feature_id" : "")}
    WHERE ${equals(sql, { "r.unit": units[bucket!], "r.product_id": product_id, "f.code": feature_code })}
      AND ${products === undefined ? sql`TRUE` : sql`r.product_id = ANY(${arrays.text(products)}::text[])`}
      AND ${inRanges(sql, "r.bucket_start", ranges)} AND ${sql.literal(`(r.feature_id = '') = ${!byFeature}`)}
    GROUP BY ${sql.literal(positions.join(", "))}`
}

const ledgerRows = (
  sql: SqlClient.SqlClient,
  { from: _, to: __, ...filter }: SummaryRequest,
  ranges: ReadonlyArray<TimeRange>,
  positions: ReadonlyArray<number>
) => {
  const { bucket, group_by, tz = "UTC" } = filter
  const linked = (["customer_id", "order_id", "subscription_id"] as const).some(
    (field) => group_by.includes(field) || filter[field] !== undefined
  )
  const product = linked ? columns.product_id : productWithoutLicenses
  const keys = group_by.map((field) => `${field === "product_id" ? product : columns[field]} AS ${field}`)
  const start =
    bucket === undefined
      ? []
      : tz === "UTC"
        ? [sql`${sql.literal(startOf(units[bucket], "u.occurred_at"))} AS bucket_start`]
        : [sql`date_trunc(${units[bucket]}, u.occurred_at, ${tz}::text) AS bucket_start`]
  // Compares ids by their bytes, independent of the database's collation.
  return sql`
    SELECT ${sql.csv([...start, ...keys.map((key) => sql.literal(key) as never)])}, ${sums(sql)},
      count(DISTINCT u.license_id COLLATE "C") AS licenses, false AS is_ambiguous
    FROM ${linked ? ledgerTables(sql) : ledgerTablesWithoutLicenses(sql)}
    WHERE ${ledgerCondition(sql, filter, product)} AND ${inRanges(sql, "u.occurred_at", ranges)}
    GROUP BY ${sql.literal(positions.join(", "))}`
}

const rowOf = (
  { is_ambiguous: _, ...row }: typeof SummaryRow.Type,
  usage: Pick<UsageSummaryRow, keyof Sums>
): UsageSummaryRow => ({ ...row, ...usage })

/** A name of the IANA database, or of no zone: nothing else has a slash and no digits. */
const zoneName = /^[a-z_-]+(\/[a-z_-]+)+$/i

/**
 * Refuses an unknown time zone. The database decides, because it has the list of zones. It also takes abbreviations, and texts
 * with a digit such as UTC+3, which to it is three hours behind UTC: for these it reads the list, which takes some milliseconds.
 */
export const refuseUnknownZone = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, tz: string) {
  if (tz === "UTC") return
  const known = sql`
    SELECT date_trunc('day', to_timestamp(0), ${tz}::text)
    WHERE ${zoneName.test(tz)}::boolean OR EXISTS (SELECT FROM pg_timezone_names WHERE lower(name) = lower(${tz}))`
  const rows = yield* Effect.catch(known, (error) =>
    stateOf(error) === "22023" ? Effect.succeed([]) : Effect.fail(error)
  )
  if (rows.length > 0) return
  return yield* refuse(
    "INVALID_QUERY",
    "The time zone is unknown: use a name of the IANA database, such as Europe/Zurich.",
    "tz"
  )
})

const stateOf = ({ reason }: SqlError.SqlError) => (reason.cause as { readonly code?: string } | undefined)?.code
