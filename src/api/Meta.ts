/** The `meta` member of every envelope (contract, section "Envelopes"). */
import { Clock, Effect, Schema } from "effect"
import { RequestContext } from "./RequestContext.ts"
import { formatTimestamp } from "./Timestamp.ts"

export const Meta = Schema.Struct({
  request_id: Schema.String,
  timestamp: Schema.String.annotate({ format: "date-time" })
}).annotate({ identifier: "Meta" })

export const currentMeta: Effect.Effect<typeof Meta.Type> = Effect.withFiber((fiber) =>
  Effect.succeed({
    request_id: fiber.getRef(RequestContext).requestId,
    timestamp: formatTimestamp(fiber.getRef(Clock.Clock).currentTimeMillisUnsafe())
  })
)
