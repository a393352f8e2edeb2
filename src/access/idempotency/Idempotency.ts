/**
 * The contract half of Idempotency-Key: optional on every operation that changes something, required on operations annotated
 * with `KeyRequired`. The first response is stored for 24 hours and replayed byte for byte, with `Idempotency-Replayed: true`.
 */
import { Context } from "effect"
import { HttpApiMiddleware } from "effect/http-api"
import { failures } from "../../contract/api/Failure.ts"

/** Characters of the longest Idempotency-Key. */
export const idempotencyKeyMax = 255
/** How long a response is stored; that of a renewal stays. */
export const retentionMillis = 86_400_000
/** The header of a response that was stored. */
export const replayedHeader = "idempotency-replayed"

/** Marks operations that require a key. Such a key belongs to the license in the path, whichever credential sends it. */
export const KeyRequired = Context.Reference<boolean>("licensing/access/idempotency/KeyRequired", {
  defaultValue: () => false
})

export class Idempotency extends HttpApiMiddleware.Service<Idempotency>()("licensing/access/idempotency/Idempotency", {
  error: failures("BAD_REQUEST", "IDEMPOTENCY_KEY_REQUIRED", "IDEMPOTENCY_IN_PROGRESS", "IDEMPOTENCY_KEY_REUSED")
}) {}
