/** A copy of a subscription that another system bills. Any status may follow any other. */
import { Schema } from "effect"
import { Metadata } from "../../contract/api/Metadata.ts"
import { isMinCharacters, Reference, Text } from "../../contract/api/Text.ts"
import { Instant, Timestamp } from "../../contract/api/Timestamp.ts"
import { expandedCustomer, Link } from "./PurchaseLink.ts"

export const SubscriptionStatus = Schema.Literals(["trialing", "active", "past_due", "paused", "canceled"]).annotate({
  identifier: "SubscriptionStatus",
  description: "The state of the subscription in the other system."
})
export type SubscriptionStatus = typeof SubscriptionStatus.Type

export const External = Text(255).check(isMinCharacters(1))

export const Subscription = Schema.Struct({
  id: Schema.String,
  product_id: Schema.String,
  external_system: Schema.String,
  external_id: Schema.String,
  status: SubscriptionStatus,
  current_period_start: Timestamp,
  current_period_end: Timestamp,
  cancel_at_period_end: Schema.Boolean,
  metadata: Metadata,
  created_at: Timestamp,
  updated_at: Timestamp,
  customer_id: Schema.optionalKey(Schema.String),
  canceled_at: Schema.optionalKey(Timestamp),
  observed_at: Schema.optionalKey(Instant("When the other system had these facts.")),
  ...expandedCustomer
}).annotate({ identifier: "Subscription", description: "A subscription of another system, as it was recorded." })
export type Subscription = typeof Subscription.Type

export const subscriptionSorts = { created_at: "instant", current_period_end: "instant" } as const

export const subscriptionFilters = {
  external_system: Schema.optionalKey(Schema.String),
  external_id: Schema.optionalKey(Schema.String),
  status: Schema.optionalKey(SubscriptionStatus),
  customer_id: Schema.optionalKey(Schema.String)
}

export const SubscriptionCreate = Schema.Struct({
  external_system: External,
  external_id: External,
  status: SubscriptionStatus,
  current_period_start: Timestamp,
  current_period_end: Timestamp,
  customer_id: Schema.optionalKey(Reference),
  cancel_at_period_end: Schema.optionalKey(Schema.Boolean.annotate({ default: false })),
  canceled_at: Schema.optionalKey(
    Instant("When it was canceled. Only with the status canceled; then the time of the request if absent.")
  ),
  observed_at: Schema.optionalKey(Instant("When the other system had the facts of this request.")),
  metadata: Schema.optionalKey(Metadata)
}).annotate({ identifier: "SubscriptionCreateRequest" })

export const SubscriptionUpdate = Schema.Struct({
  customer_id: Schema.optionalKey(Link),
  external_system: Schema.optionalKey(External),
  external_id: Schema.optionalKey(External),
  status: Schema.optionalKey(SubscriptionStatus),
  current_period_start: Schema.optionalKey(Timestamp),
  current_period_end: Schema.optionalKey(Timestamp),
  cancel_at_period_end: Schema.optionalKey(Schema.Boolean),
  canceled_at: Schema.optionalKey(Schema.NullOr(Timestamp)),
  observed_at: Schema.optionalKey(
    Schema.NullOr(Timestamp).annotate({
      description:
        "When the other system had the facts of this request. If it is earlier than the stored time, the request changes nothing, and the response is the stored subscription."
    })
  ),
  metadata: Schema.optionalKey(Metadata)
}).annotate({ identifier: "SubscriptionUpdateRequest" })
