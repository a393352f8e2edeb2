/** What a customer has and has used. */
import { Effect } from "effect"
import type { SqlClient } from "effect/sql"
import type { Customer } from "../../customers/Customer.ts"
import { instant } from "../../postgres/Parameters.ts"
import { present, type Row } from "../../postgres/Sql.ts"
import type { CustomerSummaryFilter } from "../model/Filter.ts"
import type { CustomerSummary } from "../model/Report.ts"
import { periodOf } from "../model/RequestChecks.ts"
import { usageSummary } from "./UsageSummary.ts"
import { customerValidations } from "./ValidationCounts.ts"

interface Tally {
  readonly status: string
  readonly count: number
}

/** Reads the summary of a customer who is there. */
export const customerSummary = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  filter: CustomerSummaryFilter,
  now: number,
  rowsMax: number
) {
  const { customer_id } = filter
  const period = yield* periodOf(filter, now)
  const [customer] = yield* sql<Row<Customer>>`
    SELECT id, name, code, metadata, created_at, updated_at, email FROM customers WHERE id = ${customer_id}`
  const licenses = yield* licenseTallies(sql, customer_id, now)
  const [held] = yield* heldNow(sql, customer_id, now)
  const orders = yield* tallies(sql, "orders", customer_id)
  const subscriptions = yield* tallies(sql, "subscriptions", customer_id)
  const { rows, totals } = yield* usageSummary(
    sql,
    { from: 0, ...filter, group_by: ["product_id", "feature_code"] },
    now,
    rowsMax
  )
  const summary: CustomerSummary = {
    period,
    customer: present<Customer>(customer!),
    licenses: tallied(licenses),
    active_devices: held?.devices ?? 0,
    live_leases: held?.leases ?? 0,
    validations: yield* customerValidations(sql, filter),
    orders: tallied(orders),
    subscriptions: tallied(subscriptions),
    usage: rows,
    totals
  }
  return summary
})

const tallied = (rows: ReadonlyArray<Tally>) => ({
  total: rows.reduce((total, { count }) => total + count, 0),
  by_status: Object.fromEntries(rows.map(({ status, count }) => [status, count]))
})

const tallies = (sql: SqlClient.SqlClient, table: "orders" | "subscriptions", customerId: string) => sql<Tally>`
  SELECT status, count(*) AS count FROM ${sql(table)} WHERE customer_id = ${customerId} GROUP BY status ORDER BY status`

/** Under the status that the clock gives, as everywhere. */
const licenseTallies = (sql: SqlClient.SqlClient, customerId: string, now: number) => sql<Tally>`
  SELECT CASE
      WHEN l.status IN ('suspended', 'revoked') THEN l.status
      WHEN l.expires_at IS NULL OR l.expires_at > ${instant(now)} THEN 'active'
      WHEN l.expires_at + make_interval(days => p.grace_period_days) > ${instant(now)} THEN 'grace_period'
      ELSE 'expired'
    END AS status, count(*) AS count
  FROM licenses l JOIN policies p ON p.id = l.policy_id WHERE l.customer_id = ${customerId} GROUP BY 1 ORDER BY 1`

const heldNow = (sql: SqlClient.SqlClient, customerId: string, now: number) => sql<{
  readonly devices: number
  readonly leases: number
}>`
  SELECT coalesce(sum(l.active_device_count), 0)::bigint AS devices,
    (SELECT count(*) FROM leases e JOIN licenses o ON o.id = e.license_id
      WHERE o.customer_id = ${customerId} AND e.status = 'live' AND e.expires_at > ${instant(now)}) AS leases
  FROM licenses l WHERE l.customer_id = ${customerId}`
