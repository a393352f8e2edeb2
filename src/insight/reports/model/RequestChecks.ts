/** Checks a request before the report is read: missing records, periods that end before they begin. */
import { Effect, Schema } from "effect"
import type { SqlClient } from "effect/sql"
import { ownedBy } from "../../../access/productLimits/OwnedRows.ts"
import { isRefusal, type Refusal, refuse, refuseUnknownId } from "../../../contract/api/Failure.ts"
import { Timestamp } from "../../../contract/api/Timestamp.ts"
import { ledgerRemovedAt } from "../../../ledger/partitions/Removed.ts"
import { decodeRows } from "../../../platform/postgres/queries/Sql.ts"
import type { Period, Scope } from "./Filter.ts"

export type ReportRefusal = Refusal<"INVALID_QUERY" | "NOT_FOUND" | "NOT_READY">

const tables = {
  product_id: "products",
  customer_id: "customers",
  license_id: "licenses",
  order_id: "orders",
  subscription_id: "subscriptions"
} as const

/** Refuses ids of records that do not exist or that the token does not reach. */
export const checkScope = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, scope: Scope) {
  for (const field of Object.keys(tables) as ReadonlyArray<keyof typeof tables>) {
    const table = tables[field]
    const id = scope[field]
    if (id === undefined) continue
    const rows = yield* Effect.orDie(sql`
      SELECT FROM ${sql(table)} AS named WHERE id = ${id} AND ${ownedBy(sql, table, "named", scope.products)}`)
    if (rows.length === 0) {
      return yield* refuseUnknownId(field.slice(0, -"_id".length), id, field)
    }
  }
})

/** The primary database has the record: see `checkScope`. */
export const notReceived = refuse(
  "NOT_READY",
  "The reports' replica has not received this record yet: try again in a moment.",
  undefined,
  { isTemporary: true }
)

export const refuseEmptyPeriod = ({ from, to }: Period) =>
  from !== undefined && to !== undefined && from >= to
    ? refuse("INVALID_QUERY", "The period is empty: from must be before to.", "to")
    : undefined

/** The period shown in a report. Without `to` it ends now. */
export const periodOf = (period: Period, now: number) => {
  const { from, to } = period
  const empty = refuseEmptyPeriod(period)
  if (empty !== undefined) return Effect.fail(empty)
  const end = to ?? Math.max(now, from ?? now)
  return Effect.succeed(from === undefined ? { to: end } : { from, to: end })
}

const decodeRemoved = decodeRows(Schema.Struct({ at: Schema.optionalKey(Timestamp) }))

/** Adds the time until which the ledger's rows were removed, if the period begins before it. */
export const ledgerPeriodOf = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, period: Period, now: number) {
  const shown = yield* periodOf(period, now)
  const removed_until = yield* removedUntil(sql, ledgerRemovedAt, period)
  return removed_until === undefined ? shown : { ...shown, removed_until }
})

/** The time until which rows of the period were removed; undefined if none were. */
export const removedUntil = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  removedAt: typeof ledgerRemovedAt,
  { from = 0 }: Period
) {
  const [removed] = yield* decodeRemoved(sql`SELECT nullif(${removedAt(sql)}, '-infinity') AS at`)
  return removed?.at === undefined || removed.at < from ? undefined : removed.at
})

export const sumTooLarge = refuse(
  "INVALID_QUERY",
  `A sum exceeds ${Number.MAX_SAFE_INTEGER}, the maximum: narrow the report.`
)

/** A report is never truncated. The detail lets exports, which have a higher limit, recognise this refusal. */
export const tooManyRows = (rowsMax: number) =>
  refuse(
    "INVALID_QUERY",
    `The report has more than ${rowsMax} rows: narrow it, group by less, or export it.`,
    tooManyRowsDetail
  )
const tooManyRowsDetail = "rows"

export const isTooManyRows = (error: unknown): boolean => isRefusal(error) && error.detail === tooManyRowsDetail
