/** An event of the audit feed. Values that identify machines are redacted before they are stored. */
import { Schema } from "effect"
import { PositiveCount } from "../../contract/api/Int64.ts"
import { Timestamp } from "../../contract/api/Timestamp.ts"

export const AuditActorType = Schema.Literals(["api_key", "license", "oidc_subject", "system"]).annotate({
  identifier: "AuditActorType",
  description:
    "Who did it: an API key, a licensed application, a person with an account at the OIDC provider, the service."
})
export type AuditActorType = typeof AuditActorType.Type

export const ActorName = Schema.optionalKey(
  Schema.String.annotate({ description: "The name of the API key or person at that time." })
)

export const Event = Schema.Struct({
  sequence: PositiveCount.annotate({ description: "Gapless and in commit order." }),
  event_type: Schema.String.annotate({ description: "What happened, such as license.created." }),
  actor_type: AuditActorType,
  actor_id: Schema.String,
  resource_type: Schema.String,
  metadata: Schema.Record(Schema.String, Schema.Json),
  created_at: Timestamp,
  // Optional in the contract only: all recorded events have it.
  resource_id: Schema.optionalKey(Schema.String),
  ip_address: Schema.optionalKey(Schema.String),
  actor_name: ActorName
}).annotate({ identifier: "Event" })
export type Event = typeof Event.Type
