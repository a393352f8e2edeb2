/**
 * The usage under a subscription or an order in a period: a line for each license and feature, with opening balance, changes and
 * closing balance. The billing system adds the prices.
 */
import { Effect, Schema } from "effect"
import type { SqlClient } from "effect/sql"
import { refuse } from "../../../contract/api/Failure.ts"
import { decodeRows } from "../../../platform/postgres/queries/Sql.ts"
import { Order } from "../../../vendor/commerce/Order.ts"
import { Subscription } from "../../../vendor/commerce/Subscription.ts"
import type { Period, SettlementFilter } from "../model/Filter.ts"
import type { SubscriptionSettlement } from "../model/Report.ts"
import { ledgerPeriodOf, notReceived, tooManyRows } from "../model/RequestChecks.ts"
import { balanceOf, balanceRows, ledgerCondition, ledgerTables, Sums, sums, totalOf, usageOf } from "./LedgerRows.ts"

const decodeOrders = decodeRows(Order)
const decodeSubscriptions = decodeRows(Subscription)
const decodeFeatures = decodeRows(Schema.Struct({ ...Sums.fields, feature_code: Schema.optionalKey(Schema.String) }))

export const settlement = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  filter: SettlementFilter,
  now: number,
  rowsMax: number
) {
  const { order, subscription } = yield* settledRecords(sql, filter)
  const requested = yield* settledPeriod(filter, order, subscription)
  const period = yield* ledgerPeriodOf(sql, requested, now)
  const scope = order === undefined ? { subscription_id: subscription!.id } : { order_id: order.id }
  const balances = yield* balanceRows(sql, { ...scope, ...requested }, rowsMax)
  if (balances.length > rowsMax) return yield* tooManyRows(rowsMax)
  const features = yield* decodeFeatures(sql`
    SELECT f.code AS feature_code, ${sums(sql)} FROM ${ledgerTables(sql)} WHERE ${ledgerCondition(sql, { ...scope, ...requested })}
    GROUP BY f.code ORDER BY f.code`)
  const report: SubscriptionSettlement = {
    period,
    ...(subscription === undefined ? undefined : { subscription }),
    ...(order === undefined ? undefined : { order }),
    lines: yield* Effect.forEach(balances, balanceOf),
    by_feature: yield* Effect.forEach(features, ({ feature_code, ...row }) =>
      Effect.map(usageOf(row), (usage) => ({
        ...(feature_code === undefined ? undefined : { feature_code }),
        ...usage
      }))
    ),
    totals: yield* totalOf(features)
  }
  return report
})

const settledRecords = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  { order_id, subscription_id }: SettlementFilter
) {
  if (order_id === undefined && subscription_id === undefined) {
    return yield* refuse(
      "INVALID_QUERY",
      "The report needs a subscription or an order: give subscription_id or order_id.",
      "subscription_id"
    )
  }
  const [order] = order_id === undefined ? [] : yield* orderRow(sql, order_id)
  if (order_id !== undefined && order === undefined) return yield* notReceived
  const linked = order?.subscription_id
  if (order_id !== undefined && subscription_id !== undefined && linked !== subscription_id) {
    return yield* refuse(
      "INVALID_QUERY",
      "The order does not belong to the subscription: give only one of them.",
      "order_id"
    )
  }
  const subscriptionId = subscription_id ?? linked
  const [subscription] = subscriptionId === undefined ? [] : yield* subscriptionRow(sql, subscriptionId)
  if (subscriptionId !== undefined && subscription === undefined) return yield* notReceived
  return { order, subscription }
})

const settledPeriod = ({ from, to }: SettlementFilter, order?: Order, subscription?: Subscription) => {
  if (from !== undefined || to !== undefined) {
    const period: Period = {
      ...(from === undefined ? undefined : { from }),
      ...(to === undefined ? undefined : { to })
    }
    return Effect.succeed(period)
  }
  if (order?.period_start !== undefined && order.period_end !== undefined) {
    const period = { from: order.period_start, to: order.period_end }
    return period.from < period.to ? Effect.succeed(period) : Effect.fail(emptyOrderPeriod)
  }
  return subscription === undefined
    ? Effect.fail(refuse("INVALID_QUERY", "The order has no period and no subscription: give from and to.", "from"))
    : Effect.succeed({ from: subscription.current_period_start, to: subscription.current_period_end })
}

/** Orders are stored as another system has them. A settlement without usage could be taken for one with nothing to bill. */
const emptyOrderPeriod = refuse(
  "INVALID_QUERY",
  "The order's period_end is not after its period_start: correct the order, or give from and to.",
  "order_id"
)

const orderRow = (sql: SqlClient.SqlClient, id: string) =>
  decodeOrders(sql`
  SELECT id, product_id, external_system, external_id, status, metadata, created_at, updated_at, customer_id,
    subscription_id, period_start, period_end
  FROM orders WHERE id = ${id}`)

const subscriptionRow = (sql: SqlClient.SqlClient, id: string) =>
  decodeSubscriptions(sql`
  SELECT id, product_id, external_system, external_id, status, current_period_start, current_period_end,
    cancel_at_period_end, metadata, created_at, updated_at, customer_id, canceled_at, observed_at
  FROM subscriptions WHERE id = ${id}`)
