/** The `meta` member of every envelope (docs/API.md, "Envelopes"). */
import { Clock, Effect, Schema } from "effect"
import { RequestContext } from "./RequestContext.ts"
import { formatTimestamp } from "./Timestamp.ts"

export const Meta = Schema.Struct({
  request_id: Schema.String,
  timestamp: Schema.String.annotate({ format: "date-time" }).annotate({ description: "When the response was sent." })
}).annotate({ identifier: "Meta", description: "The request's id, and when it was answered." })

export const metaOf = (requestId: string, nowMillis: number): typeof Meta.Type => ({
  request_id: requestId,
  timestamp: formatTimestamp(nowMillis)
})

export const currentMeta: Effect.Effect<typeof Meta.Type> = Effect.withFiber((fiber) =>
  Effect.succeed(metaOf(fiber.getRef(RequestContext).requestId, fiber.getRef(Clock.Clock).currentTimeMillisUnsafe()))
)
