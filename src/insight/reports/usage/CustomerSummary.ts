/** A customer's licenses, orders and subscriptions, and their usage. */
import { Effect, Schema } from "effect"
import type { SqlClient } from "effect/sql"
import { ownedBy } from "../../../access/productLimits/OwnedRows.ts"
import { Count } from "../../../contract/api/Int64.ts"
import { clockLagMillisMax } from "../../../licensing/model/ClockLag.ts"
import { lapsedCount } from "../../../licensing/rows/DeviceStatusSql.ts"
import { instant } from "../../../platform/postgres/driver/Parameters.ts"
import { decodeRows } from "../../../platform/postgres/queries/Sql.ts"
import { Customer } from "../../../vendor/customers/Customer.ts"
import type { CustomerSummaryFilter } from "../model/Filter.ts"
import type { CustomerSummary } from "../model/Report.ts"
import { ledgerPeriodOf, notReceived } from "../model/RequestChecks.ts"
import { usageSummary } from "./UsageSummary.ts"
import { customerValidations } from "./ValidationCounts.ts"

const StatusCount = Schema.Struct({ status: Schema.String, count: Count })

const decodeCustomers = decodeRows(Customer)
const decodeStatusCounts = decodeRows(StatusCount)
const decodeUse = decodeRows(Schema.Struct({ devices: Count, leases: Count }))

export const customerSummary = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  filter: CustomerSummaryFilter,
  now: number,
  rowsMax: number
) {
  const { customer_id } = filter
  const period = yield* ledgerPeriodOf(sql, filter, now)
  const [customer] = yield* decodeCustomers(sql`
    SELECT id, name, code, metadata, created_at, updated_at, email, erased_at FROM customers WHERE id = ${customer_id}`)
  if (customer === undefined) return yield* notReceived
  const licenses = yield* licenseStatusCounts(sql, filter, now)
  const [inUse] = yield* currentUse(sql, filter, now)
  const orders = yield* statusCounts(sql, "orders", filter)
  const subscriptions = yield* statusCounts(sql, "subscriptions", filter)
  const { rows, totals } = yield* usageSummary(
    sql,
    { from: 0, ...filter, group_by: ["product_id", "feature_code"] },
    now,
    rowsMax
  )
  const summary: CustomerSummary = {
    period,
    customer,
    licenses: totalsOf(licenses),
    active_devices: inUse?.devices ?? 0,
    live_leases: inUse?.leases ?? 0,
    validations: yield* customerValidations(sql, filter),
    orders: totalsOf(orders),
    subscriptions: totalsOf(subscriptions),
    usage: rows,
    totals
  }
  return summary
})

const totalsOf = (rows: ReadonlyArray<typeof StatusCount.Type>) => ({
  total: rows.reduce((total, { count }) => total + count, 0),
  by_status: Object.fromEntries(rows.map(({ status, count }) => [status, count]))
})

const statusCounts = (sql: SqlClient.SqlClient, table: "orders" | "subscriptions", filter: CustomerSummaryFilter) =>
  decodeStatusCounts(sql`
  SELECT status, count(*) AS count FROM ${sql(table)} AS named
  WHERE customer_id = ${filter.customer_id} AND ${ownedBy(sql, table, "named", filter.products)} GROUP BY status ORDER BY status`)

/** By the status at this time, as `statusAt` decides it. */
const licenseStatusCounts = (sql: SqlClient.SqlClient, filter: CustomerSummaryFilter, now: number) => {
  const ahead = instant(now + clockLagMillisMax)
  return decodeStatusCounts(sql`
  SELECT CASE
      WHEN l.status IN ('suspended', 'revoked') THEN l.status
      WHEN l.expires_at IS NULL OR l.expires_at > CASE l.status WHEN 'active' THEN ${instant(now)} ELSE ${ahead} END THEN 'active'
      WHEN l.expires_at + make_interval(days => p.grace_period_days)
        > CASE l.status WHEN 'expired' THEN ${ahead} ELSE ${instant(now)} END THEN 'grace_period'
      ELSE 'expired'
    END AS status, count(*) AS count
  FROM licenses l JOIN policies p ON p.id = l.policy_id 
  WHERE l.customer_id = ${filter.customer_id} AND ${ownedBy(sql, "licenses", "l", filter.products)} GROUP BY 1 ORDER BY 1`)
}

/** With the clock applied, as in the lists of devices and leases. */
const currentUse = (sql: SqlClient.SqlClient, { customer_id, products }: CustomerSummaryFilter, now: number) =>
  decodeUse(sql`
  SELECT coalesce(sum(l.active_device_count - ${lapsedCount(sql, now)}), 0)::bigint AS devices,
    (SELECT count(*) FROM leases e JOIN licenses o ON o.id = e.license_id JOIN policies q ON q.id = o.policy_id
      WHERE o.customer_id = ${customer_id} AND ${ownedBy(sql, "licenses", "o", products)} AND e.status = 'live' AND e.expires_at > ${instant(now)}
        AND (o.expires_at IS NULL OR greatest(o.expires_at + make_interval(days => q.grace_period_days), e.borrowed_until) > ${instant(now)})) AS leases
  FROM licenses l JOIN policies p ON p.id = l.policy_id
  WHERE l.customer_id = ${customer_id} AND ${ownedBy(sql, "licenses", "l", products)}`)
