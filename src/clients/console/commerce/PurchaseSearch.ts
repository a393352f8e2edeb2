/** What the addresses of lists of orders and subscriptions name, and the period that a settlement is for. */
import { Schema } from "effect"
import { OrderStatus } from "../../../vendor/commerce/Order.ts"
import { SubscriptionStatus } from "../../../vendor/commerce/Subscription.ts"

const text = Schema.optionalKey(Schema.String)

const filters = { product_id: text, external_id: text, external_system: text, customer_id: text, cursor: text }

export const OrderSearch = Schema.Struct({
  ...filters,
  subscription_id: text,
  status: Schema.optionalKey(OrderStatus),
  sort: Schema.optionalKey(Schema.Literals(["created_at", "-created_at"]))
})
export type OrderSearch = typeof OrderSearch.Type

export const SubscriptionSearch = Schema.Struct({
  ...filters,
  status: Schema.optionalKey(SubscriptionStatus),
  sort: Schema.optionalKey(Schema.Literals(["created_at", "-created_at", "current_period_end", "-current_period_end"]))
})
export type SubscriptionSearch = typeof SubscriptionSearch.Type

const day = Schema.optionalKey(Schema.String.check(Schema.isPattern(/^\d{4}-\d\d-\d\d$/)))

/** The first and the last day of a period, in the reader's zone. */
export const PeriodSearch = Schema.Struct({ from: day, to: day })
export type PeriodSearch = typeof PeriodSearch.Type
