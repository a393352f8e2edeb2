/**
 * What all usage reports read: rows of the ledger with the records that they hang on. A row belongs to the customer, order and
 * subscription that its license is linked to now.
 *
 * Sums arrive as text, because PostgreSQL sums int64 without bounds; what a JSON number cannot hold exactly is refused.
 */
import { Effect } from "effect"
import type { SqlClient } from "effect/sql"
import { instant } from "../../postgres/Parameters.ts"
import { equals } from "../../postgres/Sql.ts"
import type { Period, Scope } from "../model/Filter.ts"
import type { Usage, UsageBalance } from "../model/Report.ts"
import { tooLarge } from "../model/RequestChecks.ts"

export const ledgerTables = (sql: SqlClient.SqlClient) =>
  sql.literal("usage_ledger u JOIN licenses l ON l.id = u.license_id LEFT JOIN features f ON f.id = u.feature_id")

/** The same where nothing is asked about a license but which one it is: its product is its features'. */
export const ledgerTablesUnlinked = (sql: SqlClient.SqlClient) =>
  sql.literal("usage_ledger u LEFT JOIN features f ON f.id = u.feature_id")
/** The product of a row of these tables; of a feature that is deleted, its license tells. */
export const productUnlinked = "coalesce(f.product_id, (SELECT product_id FROM licenses WHERE id = u.license_id))"

export interface Narrowed extends Scope, Period {
  readonly action?: string
}

export const narrowed = (sql: SqlClient.SqlClient, filter: Narrowed, product = "l.product_id") => {
  const { product_id, customer_id, license_id, order_id, subscription_id, feature_code, action, from, to } = filter
  return sql.and([
    product_id === undefined ? sql`TRUE` : sql`${sql.literal(product)} = ${product_id}`,
    equals(sql, {
      "l.customer_id": customer_id,
      "u.license_id": license_id,
      "l.order_id": order_id,
      "l.subscription_id": subscription_id,
      "f.code": feature_code,
      "u.action": action
    }),
    from === undefined ? sql`TRUE` : sql`u.occurred_at >= ${instant(from)}`,
    to === undefined ? sql`TRUE` : sql`u.occurred_at < ${instant(to)}`
  ])
}

/** Where hours and days are counted from: any midnight of UTC. */
const origin = "timestamptz '2000-01-01 00:00:00+00'"
/** The beginning of the hour or day of UTC that a time lies in: a division, where date_trunc looks the zone up for each row. */
export const startOf = (unit: "hour" | "day", time: string): string => `date_bin('1 ${unit}', ${time}, ${origin})`

/** Sums as they arrive. */
export interface Sums {
  readonly consumed: string
  readonly consumptions: number
  readonly reset: string
  readonly topped_up: string
}

export const sums = (sql: SqlClient.SqlClient, type: "text" | "numeric" = "text") =>
  sql.literal(`coalesce(sum(u.amount) FILTER (WHERE u.action = 'consume'), 0)::${type} AS consumed,
    count(*) FILTER (WHERE u.action = 'consume') AS consumptions,
    coalesce(sum(u.amount) FILTER (WHERE u.action = 'reset'), 0)::${type} AS reset,
    coalesce(sum(u.amount) FILTER (WHERE u.action = 'top_up'), 0)::${type} AS topped_up`)

/** Sums as numbers, or a refusal where one of them has no exact number. */
export const usageOf = ({ consumed, consumptions, reset, topped_up }: Sums) => {
  const usage: Usage = {
    consumed: Number(consumed),
    consumptions,
    reset: Number(reset),
    topped_up: Number(topped_up)
  }
  return Object.values(usage).every(Number.isSafeInteger) ? Effect.succeed(usage) : Effect.fail(tooLarge)
}

/** The sum over rows. */
export const totalOf = (rows: ReadonlyArray<Sums>) => {
  const sum = (field: "consumed" | "reset" | "topped_up") =>
    rows.reduce((total, row) => total + BigInt(row[field]), 0n).toString()
  return usageOf({
    consumed: sum("consumed"),
    consumptions: rows.reduce((total, { consumptions }) => total + consumptions, 0),
    reset: sum("reset"),
    topped_up: sum("topped_up")
  })
}

type BalanceRow = Sums & {
  readonly license_id: string
  readonly feature_id: string
  readonly feature_code: string | null
  readonly opening_balance: number
  readonly closing_balance: number
  readonly max_after: number | null
}

/** The balances of all assignments that something was written of. Their first and last rows are found by sequence number. */
export const balanceRows = (sql: SqlClient.SqlClient, filter: Narrowed, rowsMax: number) => sql<BalanceRow>`
  WITH totals AS (
    SELECT u.license_id, u.feature_id, f.code AS feature_code, min(u.sequence) AS first_sequence,
      max(u.sequence) AS last_sequence, ${sums(sql)}
    FROM ${ledgerTables(sql)} WHERE ${narrowed(sql, filter)}
    GROUP BY u.license_id, u.feature_id, f.code
  )
  SELECT totals.license_id, totals.feature_id, feature_code, consumed, consumptions, reset, topped_up,
    first.balance_after - CASE WHEN first.action IN ('consume', 'reset') THEN first.amount ELSE 0 END AS opening_balance,
    last.balance_after AS closing_balance, last.max_after
  FROM totals JOIN usage_ledger first ON first.sequence = first_sequence JOIN usage_ledger last ON last.sequence = last_sequence
  ORDER BY totals.license_id, feature_code, totals.feature_id LIMIT ${rowsMax + 1}`

export const balanceOf = (row: BalanceRow) =>
  Effect.map(usageOf(row), (usage): UsageBalance => {
    const { license_id, feature_id, feature_code, opening_balance, closing_balance, max_after } = row
    return {
      license_id,
      feature_id,
      ...(feature_code === null ? undefined : { feature_code }),
      opening_balance,
      ...usage,
      restarted: closing_balance - opening_balance - usage.consumed - usage.reset,
      closing_balance,
      ...(max_after === null ? undefined : { max_after })
    }
  })
