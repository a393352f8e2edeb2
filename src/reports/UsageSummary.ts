/** What was used, grouped by records and, where asked for, by hours or days of a time zone. */
import { Effect } from "effect"
import type { SqlClient, SqlError } from "effect/sql"
import { refuse } from "../api/Failure.ts"
import { periodOf, tooMany } from "./Asked.ts"
import type { Grouping, UsageSummaryFilter } from "./Filter.ts"
import { ledgerTables, narrowed, type Sums, sums, totalOf, usageOf } from "./LedgerRows.ts"
import type { UsageSummary, UsageSummaryRow } from "./Report.ts"

/** Days that are summed up where no period is given. */
const daysDefault = 30
const dayMillis = 86_400_000

const columns: { readonly [K in Grouping]: string } = {
  product_id: "l.product_id",
  customer_id: "l.customer_id",
  license_id: "u.license_id",
  order_id: "l.order_id",
  subscription_id: "l.subscription_id",
  feature_code: "f.code"
}

const units = { "1h": "hour", "1d": "day" } as const

type SummaryRow = Sums & { readonly [K in Grouping | "bucket_start"]?: string | number | null } & {
  readonly licenses: number
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
  const keys = group_by.map((field) => `${columns[field]} AS ${field}`)
  const start =
    bucket === undefined ? [] : [sql`date_trunc(${units[bucket]}, u.occurred_at, ${tz}::text) AS bucket_start`]
  const places = [...start, ...keys].map((_, index) => index + 1).join(", ")
  const rows = yield* sql<SummaryRow>`
    SELECT ${sql.csv([...start, ...keys.map((key) => sql.literal(key) as never)])}, ${sums(sql)},
      count(DISTINCT u.license_id) AS licenses
    FROM ${ledgerTables(sql)} WHERE ${narrowed(sql, { ...filter, from })}
    GROUP BY ${sql.literal(places)} ORDER BY ${sql.literal(places)} LIMIT ${rowsMax + 1}`
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

const rowOf = (row: SummaryRow, usage: Pick<UsageSummaryRow, keyof Sums>): UsageSummaryRow => {
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
