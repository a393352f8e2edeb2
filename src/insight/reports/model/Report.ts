/**
 * The schemas of the reports. Amounts are whole numbers; a sum that is not exact is refused. Every balance satisfies
 * `opening_balance + consumed - reversed + reset + restarted = closing_balance`.
 */
import { Schema } from "effect"
import { Count, PositiveCount } from "../../../contract/api/Int64.ts"
import { Instant, Timestamp } from "../../../contract/api/Timestamp.ts"
import { ActorName, AuditActorType, Event } from "../../../ledger/events/Event.ts"
import { License, LicenseStatus } from "../../../licensing/model/License.ts"
import { LicenseFeature } from "../../../licensing/model/LicenseFeature.ts"
import { Order } from "../../../vendor/commerce/Order.ts"
import { Subscription } from "../../../vendor/commerce/Subscription.ts"
import { Customer } from "../../../vendor/customers/Customer.ts"
import { groupings, UsageAction } from "./Filter.ts"

const int64 = (description: string) => Schema.Number.check(Schema.isInt()).annotate({ format: "int64", description })

export const ReportPeriod = Schema.Struct({
  from: Schema.optionalKey(Instant("The start of the period, inclusive; absent: from the beginning.")),
  to: Instant("The end of the period, exclusive."),
  removed_until: Schema.optionalKey(
    Instant(
      "The time of the newest usage in the period that retention has removed. Only summaries by whole hours or days of UTC still have it."
    )
  ),
  events_removed_until: Schema.optionalKey(
    Instant("Of a license audit: the time of the newest event in the period that retention has removed.")
  )
}).annotate({ identifier: "ReportPeriod", description: "From `from` (inclusive) to `to` (exclusive)." })

const usage = {
  consumed: Count.annotate({ description: "The sum of the consumed amounts." }),
  consumptions: Count.annotate({ description: "The number of consumptions." }),
  reversed: Count.annotate({ description: "The sum of the amounts of consumptions that were taken back." }),
  reset: int64(
    "The sum of the changes of counters by resets and by the ends of periods; negative if they reduced counters."
  ),
  topped_up: Count.annotate({
    description: "The sum of the amounts added to maxima and to bought credits by top-ups."
  }),
  credits_used: int64("The sum of what consumptions took from bought credits, less what reversals gave back."),
  overage: int64(
    "The sum of what was consumed beyond quota and bought credits, less what reversals and resets by hand took back."
  )
}

export const groupFields = {
  product_id: Schema.optionalKey(Schema.String),
  customer_id: Schema.optionalKey(Schema.String),
  license_id: Schema.optionalKey(Schema.String),
  order_id: Schema.optionalKey(Schema.String),
  subscription_id: Schema.optionalKey(Schema.String),
  feature_code: Schema.optionalKey(Schema.String)
}

export const UsageSummaryRow = Schema.Struct({
  ...groupFields,
  bucket_start: Schema.optionalKey(Timestamp),
  ...usage,
  licenses: Count.annotate({ description: "The number of licenses in the row." })
}).annotate({ identifier: "UsageSummaryRow" })
export type UsageSummaryRow = typeof UsageSummaryRow.Type

export const UsageSummary = Schema.Struct({
  period: ReportPeriod,
  group_by: Schema.Array(Schema.Literals(groupings)).annotate({ description: "The fields by which rows are grouped." }),
  bucket: Schema.optionalKey(Schema.Literals(["1h", "1d"])),
  tz: Schema.String,
  rows: Schema.Array(UsageSummaryRow).annotate({ description: "The rows of the report." }),
  totals: Schema.Struct(usage)
}).annotate({ identifier: "UsageSummary", description: "Usage in a period, by group and interval." })
export type UsageSummary = typeof UsageSummary.Type

export const UsageLedgerRow = Schema.Struct({
  sequence: PositiveCount.annotate({
    description: "The position in the history: without gaps, in the order of the commits."
  }),
  occurred_at: Timestamp,
  action: UsageAction,
  event_id: Schema.optionalKey(
    Schema.String.annotate({
      description: "The application's id of a consumption, unique within the license permanently."
    })
  ),
  license_id: Schema.String,
  product_id: Schema.String,
  customer_id: Schema.optionalKey(Schema.String),
  order_id: Schema.optionalKey(Schema.String),
  subscription_id: Schema.optionalKey(Schema.String),
  feature_id: Schema.String,
  feature_code: Schema.optionalKey(Schema.String),
  amount: int64(
    "The consumed amount; the change of the counter by a reversal, a reset or the end of a period, negative if it was reduced; " +
      "the amount added to the maximum or to bought credits by a top-up; the new maximum."
  ),
  balance_before: Count.annotate({ description: "The counter before the change." }),
  balance_after: Count.annotate({ description: "The counter after the change." }),
  max_after: Schema.optionalKey(
    Count.annotate({ description: "The quota after the change, including what was rolled over; absent: unlimited." })
  ),
  device_id: Schema.optionalKey(Schema.String),
  actor_type: AuditActorType,
  actor_id: Schema.String,
  request_id: Schema.String,
  actor_name: ActorName,
  // The last ones: files of earlier versions do not have them.
  credits: Schema.optionalKey(int64("The change of the bought credits that are left; absent: none.")),
  overage: Schema.optionalKey(int64("The change of the consumption beyond quota and bought credits; absent: none.")),
  reverses: Schema.optionalKey(
    Schema.String.annotate({ description: "Of a reversal: the event_id of the consumption that it took back." })
  )
}).annotate({ identifier: "UsageLedgerRow" })
export type UsageLedgerRow = typeof UsageLedgerRow.Type

export const UsageBalance = Schema.Struct({
  license_id: Schema.String,
  feature_id: Schema.String,
  feature_code: Schema.optionalKey(Schema.String),
  opening_balance: Count.annotate({ description: "The counter at the start of the period." }),
  ...usage,
  restarted: int64(
    "The change of counters that restarted because the feature was removed from the license and assigned again."
  ),
  closing_balance: Count.annotate({ description: "The counter at the end of the period." }),
  max_after: Schema.optionalKey(Count.annotate({ description: "The maximum after the last change in the period." }))
}).annotate({ identifier: "UsageBalance" })
export type UsageBalance = typeof UsageBalance.Type

const validationCounts = {
  validations: Count.annotate({ description: "Validations with an entitlement in the response." }),
  refused: Count.annotate({
    description: "Refused validations, except those with a wrong key or over a rate limit."
  })
}

export const ValidationTotals = Schema.Struct(validationCounts).annotate({
  identifier: "ValidationTotals",
  description: "Counts of granted and refused validations."
})
export type ValidationTotals = typeof ValidationTotals.Type

export const ValidationBuckets = Schema.Struct({
  ...validationCounts,
  bucket: Schema.Literals(["1h", "1d"]),
  buckets: Schema.Array(Schema.Struct({ bucket_start: Timestamp, ...validationCounts })).annotate({
    description: "The earliest first, in UTC, without buckets that have no validation."
  })
}).annotate({ identifier: "ValidationBuckets", description: "Counted by the hour, a few seconds late." })
export type ValidationBuckets = typeof ValidationBuckets.Type

export const LicenseAudit = Schema.Struct({
  period: ReportPeriod,
  license: License,
  features: Schema.Array(LicenseFeature),
  usage: Schema.Array(UsageBalance).annotate({ description: "The usage of each feature." }),
  validations: ValidationBuckets,
  events: Schema.Array(Event).annotate({ description: "A page of events, the newest first." }),
  next_cursor: Schema.NullOr(Schema.Number.check(Schema.isInt()).annotate({ format: "int64" }))
}).annotate({
  identifier: "LicenseAudit",
  description: "A license with its features, usage, validations and events in a period."
})
export type LicenseAudit = typeof LicenseAudit.Type

const tally = Schema.Record(Schema.String, Count)

export const CustomerSummary = Schema.Struct({
  period: ReportPeriod,
  customer: Customer,
  licenses: Schema.Struct({ total: Count, by_status: tally }).annotate({
    description: `By the status at the time of the report: ${LicenseStatus.literals.join(", ")}.`
  }),
  active_devices: Count.annotate({ description: "The active devices of all the customer's licenses." }),
  live_leases: Count.annotate({ description: "The live floating leases of all the customer's licenses." }),
  validations: ValidationTotals,
  orders: Schema.Struct({ total: Count, by_status: tally }).annotate({ description: "The customer's orders." }),
  subscriptions: Schema.Struct({ total: Count, by_status: tally }).annotate({
    description: "The customer's subscriptions."
  }),
  usage: Schema.Array(UsageSummaryRow).annotate({ description: "By product and feature." }),
  totals: Schema.Struct(usage)
}).annotate({
  identifier: "CustomerSummary",
  description: "A customer's licenses, devices, orders, subscriptions and usage."
})
export type CustomerSummary = typeof CustomerSummary.Type

export const SubscriptionSettlement = Schema.Struct({
  period: ReportPeriod,
  subscription: Schema.optionalKey(Subscription),
  order: Schema.optionalKey(Order),
  lines: Schema.Array(UsageBalance).annotate({ description: "A line for each license and feature that was used." }),
  by_feature: Schema.Array(Schema.Struct({ feature_code: Schema.optionalKey(Schema.String), ...usage })).annotate({
    description: "The sums of each feature."
  }),
  totals: Schema.Struct(usage)
}).annotate({
  identifier: "SubscriptionSettlement",
  description: "The licenses and usage that an order or a subscription paid for."
})
export type SubscriptionSettlement = typeof SubscriptionSettlement.Type

export type Usage = Schema.Struct.Type<typeof usage>
