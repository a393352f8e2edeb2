/** A webhook endpoint. Only the response that creates or rotates its secret contains it. */
import { Schema } from "effect"
import { isMinCharacters, Name, publishedAs, Text } from "../../contract/api/Text.ts"
import { Instant, Timestamp } from "../../contract/api/Timestamp.ts"
import { eventTypes } from "../events/EventType.ts"

/** The maximum length of a URL, and the lengths of a chosen secret. */
const urlLengthMax = 2_048
export const secretLength = { min: 16, max: 256 }

const patterns: ReadonlySet<string> = new Set(eventTypes.map((type) => `${type.split(".", 1)[0]}.*`))
const names: ReadonlySet<string> = new Set(eventTypes)

const EventTypePattern = Schema.String.check(
  Schema.makeFilter(
    (text) =>
      names.has(text) ||
      patterns.has(text) ||
      "Expected the name of an event, as license.activated, or license.* for all of a noun"
  ),
  publishedAs({ enum: [...names, ...patterns] })
).annotate({ identifier: "WebhookEventType", description: "The name of an event, or license.* for all of a noun." })

const eventTypesMax = names.size + patterns.size
const EventTypes = Schema.Array(EventTypePattern)
  .check(Schema.isMaxLength(eventTypesMax, { expected: `at most ${eventTypesMax} event types` }))
  .annotate({ description: "Names of events, or license.* for all of a noun. Empty = all." })

const Url = Text(urlLengthMax)
  .check(isMinCharacters(1))
  .annotate({ format: "uri", description: "https, with a public address." })

const Secret = Text(secretLength.max)
  .check(isMinCharacters(secretLength.min))
  .annotate({ description: "A secret that you choose; no response contains it later." })

export const WebhookEndpoint = Schema.Struct({
  id: Schema.String,
  name: Schema.String,
  url: Schema.String.annotate({ format: "uri" }).annotate({ description: "The address that events are delivered to." }),
  secret_prefix: Schema.String.annotate({ description: "The beginning of the current secret." }),
  event_types: Schema.Array(Schema.String).annotate({
    description: "The types that are delivered, patterns such as license.* included; empty: all."
  }),
  is_active: Schema.Boolean.annotate({ description: "Whether events are delivered to it." }),
  created_at: Timestamp,
  updated_at: Timestamp,
  last_delivery_at: Schema.optionalKey(Instant("The time of the last successful delivery."))
}).annotate({ identifier: "WebhookEndpoint", description: "An address that receives events." })
export type WebhookEndpoint = typeof WebhookEndpoint.Type

export const webhookSorts = { created_at: "instant" } as const

export const WebhookEndpointCreate = Schema.Struct({
  name: Name,
  url: Url,
  event_types: Schema.optionalKey(EventTypes),
  secret: Schema.optionalKey(Secret),
  is_active: Schema.optionalKey(Schema.Boolean.annotate({ default: true }))
}).annotate({ identifier: "WebhookEndpointCreateRequest" })

export const WebhookEndpointUpdate = Schema.Struct({
  name: Schema.optionalKey(Name),
  url: Schema.optionalKey(Url),
  event_types: Schema.optionalKey(EventTypes),
  secret: Schema.optionalKey(Secret),
  rotate_secret: Schema.optionalKey(
    Schema.Boolean.annotate({
      description: "Generates a new secret, which the response contains; not together with secret."
    })
  ),
  is_active: Schema.optionalKey(
    Schema.Boolean.annotate({ description: "true also reactivates an endpoint that the service has disabled." })
  )
}).annotate({ identifier: "WebhookEndpointUpdateRequest" })

/** The response to a create and to a rotation: the only ones with the secret. */
export const WebhookEndpointWithSecret = Schema.Struct({
  webhook: WebhookEndpoint,
  secret: Schema.String.annotate({ description: "The full secret. No other response contains it: store it." })
}).annotate({
  identifier: "WebhookEndpointWithSecret",
  description: "A webhook endpoint with its secret, which only this response shows."
})
export type WebhookEndpointWithSecret = typeof WebhookEndpointWithSecret.Type
