/** The health of webhook deliveries, in total and by endpoint. */
import { Schema } from "effect"
import { Count } from "../../contract/api/Int64.ts"
import { Instant, Timestamp } from "../../contract/api/Timestamp.ts"

const Deliveries = {
  pending: Count.annotate({
    description: "Deliveries that wait for an attempt. At most 100,000 are counted for one endpoint."
  }),
  retrying: Count.annotate({ description: "Pending deliveries that have failed before." }),
  delivered_24h: Count.annotate({ description: "Successful deliveries of the last 24 hours, to ten minutes." }),
  failed_24h: Count.annotate({ description: "Failed attempts, including the last ones of exhausted deliveries." }),
  exhausted_24h: Count.annotate({ description: "Deliveries that failed after the last retry." })
}

const SuccessRate = Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 })).annotate({
  description: "Share of successful attempts of the last 24 hours, 0 to 1; absent without attempts."
})

const times = {
  oldest_pending_at: Schema.optionalKey(Timestamp),
  oldest_pending_age_seconds: Schema.optionalKey(Count),
  success_rate_24h: Schema.optionalKey(SuccessRate),
  last_success_at: Schema.optionalKey(Timestamp),
  last_failure_at: Schema.optionalKey(Timestamp)
}

export const WebhookEndpointHealth = Schema.Struct({
  webhook_id: Schema.String.annotate({ description: "The id of the webhook endpoint." }),
  name: Schema.String,
  is_active: Schema.Boolean,
  disabled_reason: Schema.optionalKey(
    Schema.Literals(["gone", "exhausted"]).annotate({ description: "Why the service has disabled it." })
  ),
  ...Deliveries,
  ...times,
  next_attempt_at: Schema.optionalKey(
    Instant("When the next attempt of a pending delivery is due; an inactive endpoint has none.")
  ),
  last_failure_reason: Schema.optionalKey(
    Schema.String.annotate({ description: "status_<n>, timeout, connection_failed, tls_failed, address_refused, …" })
  )
}).annotate({ identifier: "WebhookEndpointHealth" })

export const WebhookHealth = Schema.Struct({
  status: Schema.Literals(["healthy", "degraded", "failing"]).annotate({
    description:
      "degraded: a delivery is being retried, waits for 5 minutes or was exhausted within 24 hours, or the service has disabled " +
      "an endpoint. failing: a delivery waits for an hour, or most attempts of the last 24 hours failed."
  }),
  endpoints: Schema.Struct({
    total: Count,
    active: Count.annotate({ description: "How many are active." }),
    disabled: Count.annotate({ description: "How many are disabled." })
  }).annotate({ description: "The webhook endpoints by state." }),
  deliveries: Schema.Struct(Deliveries).annotate({ description: "pending and retrying: of active endpoints only." }),
  ...times,
  per_endpoint: Schema.Array(WebhookEndpointHealth).annotate({
    description: "Newest first, at most 1,000; the totals are of all."
  })
}).annotate({
  identifier: "WebhookHealth",
  description: "How deliveries to webhook endpoints go: how many are pending, delivered and failed."
})
export type WebhookHealth = typeof WebhookHealth.Type
export type WebhookEndpointHealth = typeof WebhookEndpointHealth.Type
