/** How webhook deliveries go, in all and for each endpoint. */
import { Schema } from "effect"
import { Count } from "../api/Int64.ts"
import { Timestamp } from "../api/Timestamp.ts"

const Deliveries = {
  pending: Count.annotate({ description: "Waiting for an attempt. Of one endpoint at most 100,000 are counted." }),
  retrying: Count.annotate({ description: "Those of them that have failed before." }),
  delivered_24h: Count.annotate({ description: "The last 24 hours, to ten minutes." }),
  failed_24h: Count.annotate({ description: "Attempts that failed, the last ones of exhausted deliveries included." }),
  exhausted_24h: Count.annotate({ description: "Deliveries given up." })
}

const SuccessRate = Schema.Number.annotate({
  description: "Share of the attempts of 24 hours that succeeded, 0 to 1; absent where there was none."
})

const moments = {
  oldest_pending_at: Schema.optionalKey(Timestamp),
  oldest_pending_age_seconds: Schema.optionalKey(Count),
  success_rate_24h: Schema.optionalKey(SuccessRate),
  last_success_at: Schema.optionalKey(Timestamp),
  last_failure_at: Schema.optionalKey(Timestamp)
}

const EndpointHealth = Schema.Struct({
  webhook_id: Schema.String,
  name: Schema.String,
  is_active: Schema.Boolean,
  disabled_reason: Schema.optionalKey(
    Schema.Literals(["gone", "exhausted"]).annotate({ description: "Why the service has switched it off." })
  ),
  ...Deliveries,
  ...moments,
  last_failure_reason: Schema.optionalKey(
    Schema.String.annotate({ description: "status_<n>, timeout, connection_failed, tls_failed, address_refused, …" })
  )
}).annotate({ identifier: "WebhookEndpointHealth" })

export const WebhookHealth = Schema.Struct({
  status: Schema.Literals(["healthy", "degraded", "failing"]).annotate({
    description:
      "degraded: something is being retried, waits for 5 minutes, was given up within 24 hours, or was switched off by the " +
      "service. failing: something waits for an hour, or most attempts of 24 hours failed."
  }),
  endpoints: Schema.Struct({ total: Count, active: Count, disabled: Count }),
  deliveries: Schema.Struct(Deliveries).annotate({ description: "pending and retrying: of active endpoints." }),
  ...moments,
  per_endpoint: Schema.Array(EndpointHealth).annotate({ description: "The newest first, at most 1,000." })
}).annotate({ identifier: "WebhookHealth" })
export type WebhookHealth = typeof WebhookHealth.Type
export type WebhookEndpointHealth = typeof EndpointHealth.Type
