/** What was used, grouped by records and, where asked for, by hours or days of a time zone. */
import { Effect } from "effect"
import type { SqlClient, SqlError } from "effect/sql"
import { refuse } from "../../api/Failure.ts"
import { equals } from "../../postgres/Sql.ts"
import type { Grouping, UsageSummaryFilter } from "../model/Filter.ts"
import type { UsageSummary, UsageSummaryRow } from "../model/Report.ts"
import { periodOf, tooMany } from "../model/RequestChecks.ts"
import {
  ledgerTables,
  ledgerTablesUnlinked,
  narrowed,
  productUnlinked,
  type Sums,
  startOf,
  sums,
  totalOf,
  usageOf
} from "./LedgerRows.ts"
import { inRanges, type Sources, sourcesOf, type TimeRange } from "./UsageSources.ts"

/** Days that are summed up where no period is given. */
const daysDefault = 30
const dayMillis = 86_400_000

/** The columns of the ledger with the tables that it is read with. */
const columns: { readonly [K in Grouping]: string } = {
  product_id: "l.product_id",
  customer_id: "l.customer_id",
  license_id: "u.license_id",
  order_id: "l.order_id",
  subscription_id: "l.subscription_id",
  feature_code: "f.code"
}

const units = { "1h": "hour", "1d": "day" } as const

type SummaryRow = Sums & { readonly [K in Grouping]?: string | null } & {
  readonly bucket_start?: number
  readonly licenses: number
  /** Licenses may be counted twice. */
  readonly unsure: boolean
}

/** Reads the summary. More rows than `rowsMax` are refused: half a summary is none. */
export const usageSummary = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  filter: UsageSummaryFilter,
  now: number,
  rowsMax: number
) {
  const { group_by = ["feature_code"], bucket, tz = "UTC" } = filter
  const from = filter.from ?? Math.min(filter.to ?? now, now) - daysDefault * dayMillis
  const period = yield* periodOf({ ...filter, from }, now)
  if (filter.tz !== undefined) yield* unknownZone(sql`SELECT date_trunc('day', to_timestamp(0), ${tz}::text)`)
  const rows = yield* summaryRows(sql, { ...filter, group_by, from }, rowsMax)
  if (rows.length > rowsMax) return yield* tooMany(rowsMax)
  const shown = yield* Effect.forEach(rows, (row) => Effect.map(usageOf(row), (usage) => rowOf(row, usage)))
  const summary: UsageSummary = {
    period,
    group_by,
    ...(bucket === undefined ? undefined : { bucket }),
    tz,
    rows: shown,
    totals: yield* totalOf(rows)
  }
  return summary
})

type Asked = UsageSummaryFilter & { readonly from: number; readonly group_by: ReadonlyArray<Grouping> }

const summaryRows = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, filter: Asked, rowsMax: number) {
  const read = (sources: Sources) => {
    const places = [...(filter.bucket === undefined ? [] : ["bucket_start"]), ...filter.group_by].map((_, at) => at + 1)
    const parts = [
      ...(sources.rolled.length > 0 ? [rolledRows(sql, filter, sources.rolled, places)] : []),
      ...(sources.ledger.length > 0 ? [ledgerRows(sql, filter, sources.ledger, places)] : [])
    ]
    // No bucket is in both parts, so what each of them has grouped stands as it is.
    const union = parts.slice(1).reduce((all, one) => sql`${all} UNION ALL ${one}`, parts[0]!)
    return sql<SummaryRow>`
      SELECT * FROM (${union}) AS used ORDER BY ${sql.literal(places.join(", "))} LIMIT ${rowsMax + 1}`
  }
  const rows = yield* read(yield* sourcesOf(sql, filter))
  const unsure = rows.flatMap(({ bucket_start = 0, unsure }) => (unsure ? [dayOf(bucket_start)] : []))
  return unsure.length === 0 ? rows : yield* read(yield* sourcesOf(sql, filter, unsure))
})

const dayOf = (time: number) => Math.floor(time / dayMillis) * dayMillis

/** What was summed up beforehand. A product's features have different codes, and its licenses no other product. */
const rolledRows = (
  sql: SqlClient.SqlClient,
  { bucket, feature_code, group_by, product_id }: Asked,
  stretches: ReadonlyArray<TimeRange>,
  places: ReadonlyArray<number>
) => {
  const byFeature = group_by.includes("feature_code") || feature_code !== undefined
  const keys = group_by.map((field) => (field === "feature_code" ? "f.code AS feature_code" : `r.${field}`))
  // Features that are deleted have no code any more: several of a product make one row, and a license may have used them all.
  const nameless = "FILTER (WHERE f.id IS NULL)"
  const unsure = byFeature ? `count(*) ${nameless} > count(DISTINCT r.product_id) ${nameless}` : "false"
  return sql`
    SELECT ${sql.literal(["r.bucket_start", ...keys].join(", "))}, sum(r.consumed)::text AS consumed,
      sum(r.consumptions)::bigint AS consumptions, sum(r.reset)::text AS reset, sum(r.topped_up)::text AS topped_up,
      sum(r.licenses)::bigint AS licenses, ${sql.literal(unsure)} AS unsure
    FROM usage_rollup r ${sql.literal(byFeature ? "LEFT JOIN features f ON f.id = r.feature_id" : "")}
    WHERE ${equals(sql, { "r.unit": units[bucket!], "r.product_id": product_id, "f.code": feature_code })}
      AND ${inRanges(sql, "r.bucket_start", stretches)} AND ${sql.literal(`(r.feature_id = '') = ${!byFeature}`)}
    GROUP BY ${sql.literal(places.join(", "))}`
}

const ledgerRows = (
  sql: SqlClient.SqlClient,
  { from: _, to: __, ...filter }: Asked,
  stretches: ReadonlyArray<TimeRange>,
  places: ReadonlyArray<number>
) => {
  const { bucket, group_by, tz = "UTC" } = filter
  const linked = (["customer_id", "order_id", "subscription_id"] as const).some(
    (field) => group_by.includes(field) || filter[field] !== undefined
  )
  const product = linked ? columns.product_id : productUnlinked
  const keys = group_by.map((field) => `${field === "product_id" ? product : columns[field]} AS ${field}`)
  const start =
    bucket === undefined
      ? []
      : tz === "UTC"
        ? [sql`${sql.literal(startOf(units[bucket], "u.occurred_at"))} AS bucket_start`]
        : [sql`date_trunc(${units[bucket]}, u.occurred_at, ${tz}::text) AS bucket_start`]
  // Ids are told apart by their bytes, whatever the database sorts texts by.
  return sql`
    SELECT ${sql.csv([...start, ...keys.map((key) => sql.literal(key) as never)])}, ${sums(sql)},
      count(DISTINCT u.license_id COLLATE "C") AS licenses, false AS unsure
    FROM ${linked ? ledgerTables(sql) : ledgerTablesUnlinked(sql)}
    WHERE ${narrowed(sql, filter, product)} AND ${inRanges(sql, "u.occurred_at", stretches)}
    GROUP BY ${sql.literal(places.join(", "))}`
}

const rowOf = ({ unsure: _, ...row }: SummaryRow, usage: Pick<UsageSummaryRow, keyof Sums>): UsageSummaryRow => {
  const fields = Object.entries(row).filter(([, value]) => value !== null)
  return { ...(Object.fromEntries(fields) as object), ...usage, licenses: row.licenses }
}

/** A zone that has the form of a name and is none is known to be so by the database, which holds the zones. */
const unknownZone = <A, R>(read: Effect.Effect<A, SqlError.SqlError, R>) =>
  Effect.catch(read, (error) =>
    Effect.fail(
      stateOf(error) === "22023"
        ? refuse("INVALID_QUERY", "The time zone is not known: name one of the IANA database, as Europe/Zurich.", "tz")
        : error
    )
  )

const stateOf = ({ reason }: SqlError.SqlError) => (reason.cause as { readonly code?: string } | undefined)?.code
