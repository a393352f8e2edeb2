/** The `meta` member of every envelope (contract, section "Envelopes"). */
import { Clock, DateTime, Effect, Schema } from "effect"
import { RequestContext } from "./RequestContext.ts"

export const Meta = Schema.Struct({
  request_id: Schema.String,
  timestamp: Schema.String.annotate({ format: "date-time" })
}).annotate({ identifier: "Meta" })

export const currentMeta = Effect.gen(function* () {
  const { requestId } = yield* RequestContext
  const now = yield* Clock.currentTimeMillis
  return { request_id: requestId, timestamp: DateTime.formatIso(DateTime.makeUnsafe(now)) }
})
