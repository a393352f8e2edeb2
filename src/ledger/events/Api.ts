/** The audit event feed. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Idempotency } from "../../access/idempotency/Idempotency.ts"
import { ManagementAuthorization, operation } from "../../access/Management.ts"
import { PagedBySequence } from "../../contract/api/Envelope.ts"
import { Limit, SequenceCursor } from "../../contract/api/Paging.ts"
import { Decoding } from "../../contract/api/Requests.ts"
import { AuditActorType, Event } from "./Event.ts"

export class EventsApi extends HttpApiGroup.make("events")
  .add(
    HttpApiEndpoint.get("list", "/events", {
      query: {
        cursor: Schema.optionalKey(SequenceCursor),
        limit: Schema.optionalKey(Limit),
        event_type: Schema.optionalKey(Schema.String),
        resource_type: Schema.optionalKey(Schema.String),
        resource_id: Schema.optionalKey(Schema.String),
        actor_type: Schema.optionalKey(AuditActorType)
      },
      success: PagedBySequence(Event)
    }).annotateMerge(
      operation({
        id: "listEvents",
        summary: "List events",
        description: "The audit history of all changes with their actors, newest first.",
        scopes: ["event:read"],
        reach: "rows"
      })
    )
  )
  .middleware(Decoding)
  .middleware(Idempotency)
  .middleware(ManagementAuthorization)
  .annotate(OpenApi.Description, "The audit history: all changes with their actors, in order.") {}
