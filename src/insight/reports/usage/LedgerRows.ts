/**
 * The SQL that usage reports share: rows of the ledger joined with their license and feature. A row belongs to the customer, order
 * and subscription that its license is linked to now.
 *
 * Sums are returned as text, because PostgreSQL sums int64 without bounds. A sum that is not exact as a JSON number is refused.
 */
import { Effect, Schema } from "effect"
import type { SqlClient } from "effect/sql"
import { Count } from "../../../contract/api/Int64.ts"
import { columns } from "../../../platform/postgres/driver/Parameters.ts"
import { decodeRows, equals, within } from "../../../platform/postgres/queries/Sql.ts"
import type { Period, Scope } from "../model/Filter.ts"
import type { Usage, UsageBalance } from "../model/Report.ts"
import { sumTooLarge } from "../model/RequestChecks.ts"

export const ledgerTables = (sql: SqlClient.SqlClient) =>
  sql.literal("usage_ledger u JOIN licenses l ON l.id = u.license_id LEFT JOIN features f ON f.id = u.feature_id")

/** For queries that need only the license's id. The product is the feature's product. */
export const ledgerTablesWithoutLicenses = (sql: SqlClient.SqlClient) =>
  sql.literal("usage_ledger u LEFT JOIN features f ON f.id = u.feature_id")
/** If the feature is deleted, the product is the license's product. */
export const productWithoutLicenses =
  "coalesce(f.product_id, (SELECT product_id FROM licenses WHERE id = u.license_id))"

export interface LedgerFilter extends Scope, Period {
  readonly action?: string
}

export const ledgerCondition = (sql: SqlClient.SqlClient, filter: LedgerFilter, product = "l.product_id") => {
  const { product_id, customer_id, license_id, order_id, subscription_id, feature_code, action, products } = filter
  return sql.and([
    product_id === undefined ? sql`TRUE` : sql`${sql.literal(product)} = ${product_id}`,
    products === undefined ? sql`TRUE` : sql`${sql.literal(product)} = ANY(${columns.text(products)}::text[])`,
    equals(sql, {
      "l.customer_id": customer_id,
      "u.license_id": license_id,
      "l.order_id": order_id,
      "l.subscription_id": subscription_id,
      "f.code": feature_code,
      "u.action": action
    }),
    within(sql, "u.occurred_at", filter)
  ])
}

/** Any midnight of UTC. */
const origin = "timestamptz '2000-01-01 00:00:00+00'"
/** `date_bin` divides, while `date_trunc` looks up the time zone for each row. */
export const startOf = (unit: "hour" | "day", time: string): string => `date_bin('1 ${unit}', ${time}, ${origin})`

/** The sums of amounts, which PostgreSQL returns as text. */
export const sumNames = ["consumed", "reversed", "reset", "topped_up", "credits_used", "overage"] as const

export const Sums = Schema.Struct({
  consumed: Schema.String,
  consumptions: Count,
  reversed: Schema.String,
  reset: Schema.String,
  topped_up: Schema.String,
  credits_used: Schema.String,
  overage: Schema.String
})
export type Sums = typeof Sums.Type

/** Actions whose amount is not a change of the counter. */
export const isChange = "NOT IN ('top_up', 'set_limit')"

export const sums = (sql: SqlClient.SqlClient, type: "text" | "numeric" = "text") =>
  sql.literal(`coalesce(sum(u.amount) FILTER (WHERE u.action = 'consume'), 0)::${type} AS consumed,
    count(*) FILTER (WHERE u.action = 'consume') AS consumptions,
    coalesce(-sum(u.amount) FILTER (WHERE u.action = 'reverse'), 0)::${type} AS reversed,
    coalesce(sum(u.amount) FILTER (WHERE u.action IN ('reset', 'period_reset')), 0)::${type} AS reset,
    coalesce(sum(u.amount) FILTER (WHERE u.action = 'top_up'), 0)::${type} AS topped_up,
    coalesce(-sum(u.credits) FILTER (WHERE u.action IN ('consume', 'reverse')), 0)::${type} AS credits_used,
    coalesce(sum(u.overage), 0)::${type} AS overage`)

export const usageOf = ({ consumptions, ...sums }: Sums) => {
  const usage: Usage = {
    consumed: Number(sums.consumed),
    consumptions,
    reversed: Number(sums.reversed),
    reset: Number(sums.reset),
    topped_up: Number(sums.topped_up),
    credits_used: Number(sums.credits_used),
    overage: Number(sums.overage)
  }
  return Object.values(usage).every(Number.isSafeInteger) ? Effect.succeed(usage) : Effect.fail(sumTooLarge)
}

export const totalOf = (rows: ReadonlyArray<Sums>) => {
  const sum = (field: (typeof sumNames)[number]) =>
    rows.reduce((total, row) => total + BigInt(row[field]), 0n).toString()
  return usageOf({
    consumed: sum("consumed"),
    consumptions: rows.reduce((total, { consumptions }) => total + consumptions, 0),
    reversed: sum("reversed"),
    reset: sum("reset"),
    topped_up: sum("topped_up"),
    credits_used: sum("credits_used"),
    overage: sum("overage")
  })
}

const BalanceRow = Schema.Struct({
  ...Sums.fields,
  license_id: Schema.String,
  feature_id: Schema.String,
  feature_code: Schema.optionalKey(Schema.String),
  opening_balance: Schema.Number,
  closing_balance: Schema.Number,
  max_after: Schema.optionalKey(Schema.Number)
})
const decodeBalances = decodeRows(BalanceRow)

/** The first and last ledger row of each assignment are found by their sequence numbers. */
export const balanceRows = (sql: SqlClient.SqlClient, filter: LedgerFilter, rowsMax: number) =>
  decodeBalances(sql`
  WITH totals AS (
    SELECT u.license_id, u.feature_id, f.code AS feature_code, min(u.sequence) AS first_sequence,
      max(u.sequence) AS last_sequence, ${sums(sql)}
    FROM ${ledgerTables(sql)} WHERE ${ledgerCondition(sql, filter)}
    GROUP BY u.license_id, u.feature_id, f.code
  )
  SELECT totals.license_id, totals.feature_id, feature_code, consumed, consumptions, reversed, reset, topped_up,
    credits_used, totals.overage, first.balance_after - CASE WHEN first.action ${sql.literal(isChange)} THEN first.amount ELSE 0 END AS opening_balance,
    last.balance_after AS closing_balance, last.max_after
  FROM totals JOIN usage_ledger first ON first.sequence = first_sequence JOIN usage_ledger last ON last.sequence = last_sequence
  ORDER BY totals.license_id, feature_code, totals.feature_id LIMIT ${rowsMax + 1}`)

export const balanceOf = (row: typeof BalanceRow.Type) =>
  Effect.map(usageOf(row), (usage): UsageBalance => {
    const { license_id, feature_id, feature_code, opening_balance, closing_balance, max_after } = row
    return {
      license_id,
      feature_id,
      ...(feature_code === undefined ? undefined : { feature_code }),
      opening_balance,
      ...usage,
      restarted: closing_balance - opening_balance - usage.consumed + usage.reversed - usage.reset,
      closing_balance,
      ...(max_after === undefined ? undefined : { max_after })
    }
  })
