/** A copy of another system's order. Periods are stored as provided. Any status may follow any other. */
import { Schema } from "effect"
import { Metadata } from "../../contract/api/Metadata.ts"
import { Reference } from "../../contract/api/Text.ts"
import { Instant, Timestamp } from "../../contract/api/Timestamp.ts"
import { expandedCustomer, Link } from "./PurchaseLink.ts"
import { External } from "./Subscription.ts"

export const OrderStatus = Schema.Literals(["pending", "paid", "fulfilled", "canceled", "refunded"]).annotate({
  identifier: "OrderStatus",
  description: "The state of the order in the other system."
})
export type OrderStatus = typeof OrderStatus.Type

export const Order = Schema.Struct({
  id: Schema.String,
  product_id: Schema.String,
  external_system: Schema.String,
  external_id: Schema.String,
  status: OrderStatus,
  metadata: Metadata,
  created_at: Timestamp,
  updated_at: Timestamp,
  customer_id: Schema.optionalKey(Schema.String),
  subscription_id: Schema.optionalKey(Schema.String),
  period_start: Schema.optionalKey(Instant("The start of the ordered period.")),
  period_end: Schema.optionalKey(Instant("The end of the ordered period.")),
  ...expandedCustomer
}).annotate({ identifier: "Order", description: "An order of another system, as it was recorded." })
export type Order = typeof Order.Type

const periodStart = "The start of the ordered period; only together with its end."
const periodEnd = "The end of the ordered period; only together with its start."

export const orderSorts = { created_at: "instant" } as const

export const orderFilters = {
  external_system: Schema.optionalKey(Schema.String),
  external_id: Schema.optionalKey(Schema.String),
  status: Schema.optionalKey(OrderStatus),
  customer_id: Schema.optionalKey(Schema.String),
  subscription_id: Schema.optionalKey(Schema.String)
}

export const OrderCreate = Schema.Struct({
  external_system: External,
  external_id: External,
  status: OrderStatus,
  customer_id: Schema.optionalKey(Reference),
  subscription_id: Schema.optionalKey(Reference),
  period_start: Schema.optionalKey(Instant(periodStart)),
  period_end: Schema.optionalKey(Instant(periodEnd)),
  metadata: Schema.optionalKey(Metadata)
}).annotate({ identifier: "OrderCreateRequest" })

export const OrderUpdate = Schema.Struct({
  customer_id: Schema.optionalKey(Link),
  subscription_id: Schema.optionalKey(Link),
  external_system: Schema.optionalKey(External),
  external_id: Schema.optionalKey(External),
  status: Schema.optionalKey(OrderStatus),
  period_start: Schema.optionalKey(Schema.NullOr(Timestamp).annotate({ description: periodStart })),
  period_end: Schema.optionalKey(Schema.NullOr(Timestamp).annotate({ description: periodEnd })),
  metadata: Schema.optionalKey(Metadata)
}).annotate({ identifier: "OrderUpdateRequest" })
