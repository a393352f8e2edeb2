/** The deliveries that webhook endpoints receive, one for each type of event (docs/WEBHOOKS.md). */
import type { JsonSchema } from "effect"
import { type EventType, eventTypes } from "../../ledger/events/EventType.ts"
import { eventCatalogue } from "./EventCatalogue.ts"
import type { Delivery, Examples } from "./Examples.ts"

type Json = JsonSchema.JsonSchema

export const webhookEventSchema: Json = {
  type: "object",
  description: "An event as webhook endpoints receive it.",
  properties: {
    id: { type: "string", description: "The event's id, the same as in the event feed." },
    type: { type: "string", description: "The type of the event, such as license.created." },
    sequence: { type: "integer", format: "int64", description: "The event's position in the history." },
    created_at: { type: "string", format: "date-time", description: "When the event was recorded." },
    data: {
      type: "object",
      description: "Who changed which record.",
      properties: {
        actor_type: { $ref: "#/components/schemas/AuditActorType" },
        actor_id: { type: "string" },
        actor_name: { type: "string", description: "The name of the API key or person at that time; absent: none." },
        resource_type: { type: "string" },
        resource_id: { type: "string" },
        metadata: { type: "object", additionalProperties: true }
      },
      required: ["actor_type", "actor_id", "resource_type", "resource_id", "metadata"]
    }
  },
  required: ["id", "type", "sequence", "created_at", "data"]
}

const header = (name: string, description: string, type = "string") => ({
  name,
  in: "header",
  required: true,
  description,
  schema: { type }
})

const headers = [
  header("X-Service-Event-Type", "The type of the event."),
  header("X-Service-Event-Sequence", "The event's position in the history.", "integer"),
  header("X-Service-Delivery-ID", "The delivery's id, the same in each attempt."),
  header(
    "X-Service-Signature",
    "`t=<unix seconds>,v1=<hex HMAC-SHA256 of the secret over <t>.<delivery id>.<body>>`; two `v1` for a day after a rotation."
  ),
  header("webhook-id", "The delivery's id (Standard Webhooks)."),
  header("webhook-timestamp", "The unix seconds of the attempt (Standard Webhooks).", "integer"),
  header("webhook-signature", "`v1,<base64>` for each valid secret (Standard Webhooks).")
]

const headersWith = (delivery: Delivery | undefined) =>
  headers.map((described) => {
    const value = delivery?.headers[described.name.toLowerCase()]
    if (value === undefined) return described
    return { ...described, example: described.schema.type === "integer" ? Number(value) : value }
  })

const operationIdOf = (type: string): string =>
  `on${type.replaceAll(/(?:^|[._])([a-z])/g, (_, letter: string) => letter.toUpperCase())}`

export const webhooks = ({ byType, secret }: Examples["deliveries"]) =>
  Object.fromEntries(eventTypes.map((type) => [type, { post: operation(type, byType[type], secret) }]))

const operation = (type: EventType, delivery: Delivery | undefined, secret: string) => ({
  operationId: operationIdOf(type),
  tags: ["webhooks"],
  summary: `Event ${type}`,
  description:
    `${eventCatalogue[type]} Sent to the endpoints that take this type. Any status from 200 to 299 accepts it; the service repeats ` +
    `other deliveries. The example's signatures use the secret \`${secret}\` and cover its body as JSON without spaces.`,
  security: [],
  parameters: headersWith(delivery),
  requestBody: {
    required: true,
    content: {
      "application/json": {
        schema: {
          allOf: [
            { $ref: "#/components/schemas/WebhookEvent" },
            { type: "object", properties: { type: { const: type } } }
          ]
        },
        // A new type has no example until `npm run examples`.
        ...(delivery && { example: delivery.body })
      }
    }
  },
  responses: {
    "2XX": { description: "Accepted." },
    "4XX": { description: "Not accepted; 410 disables the endpoint." }
  }
})
