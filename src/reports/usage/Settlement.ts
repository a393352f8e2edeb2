/**
 * What was used under a subscription or an order in a period: a line for each license and feature, whose opening balance and
 * movements make its closing balance. What it costs is for the system that bills to say.
 */
import { Effect } from "effect"
import type { SqlClient } from "effect/sql"
import { refuse } from "../../api/Failure.ts"
import type { Order } from "../../commerce/Order.ts"
import type { Subscription } from "../../commerce/Subscription.ts"
import { present, type Row } from "../../postgres/Sql.ts"
import type { Period, SettlementFilter } from "../model/Filter.ts"
import type { SubscriptionSettlement } from "../model/Report.ts"
import { periodOf, tooMany } from "../model/RequestChecks.ts"
import { balanceOf, balanceRows, ledgerTables, narrowed, type Sums, sums, totalOf, usageOf } from "./LedgerRows.ts"

export const settlement = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  filter: SettlementFilter,
  now: number,
  rowsMax: number
) {
  const { order, subscription } = yield* settled(sql, filter)
  const asked = yield* settledPeriod(filter, order, subscription)
  const period = yield* periodOf(asked, now)
  const scope = order === undefined ? { subscription_id: subscription!.id } : { order_id: order.id }
  const balances = yield* balanceRows(sql, { ...scope, ...asked }, rowsMax)
  if (balances.length > rowsMax) return yield* tooMany(rowsMax)
  const features = yield* sql<Sums & { readonly feature_code: string | null }>`
    SELECT f.code AS feature_code, ${sums(sql)} FROM ${ledgerTables(sql)} WHERE ${narrowed(sql, { ...scope, ...asked })}
    GROUP BY f.code ORDER BY f.code`
  const report: SubscriptionSettlement = {
    period,
    ...(subscription === undefined ? undefined : { subscription }),
    ...(order === undefined ? undefined : { order }),
    lines: yield* Effect.forEach(balances, balanceOf),
    by_feature: yield* Effect.forEach(features, ({ feature_code, ...row }) =>
      Effect.map(usageOf(row), (usage) => ({ ...(feature_code === null ? undefined : { feature_code }), ...usage }))
    ),
    totals: yield* totalOf(features)
  }
  return report
})

/** The records that are settled. Both may be named where the order is the subscription's. */
const settled = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  { order_id, subscription_id }: SettlementFilter
) {
  if (order_id === undefined && subscription_id === undefined) {
    return yield* refuse("INVALID_QUERY", "Name what is to be settled: subscription_id or order_id.", "subscription_id")
  }
  const [order] = order_id === undefined ? [] : yield* orderRow(sql, order_id)
  const linked = order?.subscription_id ?? undefined
  if (order_id !== undefined && subscription_id !== undefined && linked !== subscription_id) {
    return yield* refuse(
      "INVALID_QUERY",
      "The order does not belong to the subscription: name one of them.",
      "order_id"
    )
  }
  const wanted = subscription_id ?? linked
  const [subscription] = wanted === undefined ? [] : yield* subscriptionRow(sql, wanted)
  return {
    order: order === undefined ? undefined : present<Order>(order),
    subscription: subscription === undefined ? undefined : present<Subscription>(subscription)
  }
})

/** The period that is asked for, else the order's own, else the subscription's current one. */
const settledPeriod = ({ from, to }: SettlementFilter, order?: Order, subscription?: Subscription) => {
  if (from !== undefined || to !== undefined) {
    const period: Period = {
      ...(from === undefined ? undefined : { from }),
      ...(to === undefined ? undefined : { to })
    }
    return Effect.succeed(period)
  }
  if (order?.period_start !== undefined && order.period_end !== undefined) {
    return Effect.succeed({ from: order.period_start, to: order.period_end })
  }
  return subscription === undefined
    ? Effect.fail(
        refuse("INVALID_QUERY", "The order has no period and no subscription: give the period to settle.", "from")
      )
    : Effect.succeed({ from: subscription.current_period_start, to: subscription.current_period_end })
}

const orderRow = (sql: SqlClient.SqlClient, id: string) => sql<Row<Order>>`
  SELECT id, product_id, external_system, external_id, status, metadata, created_at, updated_at, customer_id,
    subscription_id, period_start, period_end
  FROM orders WHERE id = ${id}`

const subscriptionRow = (sql: SqlClient.SqlClient, id: string) => sql<Row<Subscription>>`
  SELECT id, product_id, external_system, external_id, status, current_period_start, current_period_end,
    cancel_at_period_end, metadata, created_at, updated_at, customer_id, canceled_at
  FROM subscriptions WHERE id = ${id}`
