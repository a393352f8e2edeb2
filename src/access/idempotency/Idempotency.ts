/**
 * The contract half of Idempotency-Key. The key is optional for every operation that changes records, and required for operations
 * with the annotation `KeyRequired`. The first response is stored for 24 hours and replayed byte for byte, with
 * `Idempotency-Replayed: true`.
 */
import { Context } from "effect"
import { HttpApiMiddleware } from "effect/http-api"
import { failures } from "../../contract/api/Failure.ts"

/** Characters of the longest Idempotency-Key. */
export const idempotencyKeyMax = 255
/** The time for which a response is stored. Responses to successful renewals are stored permanently. */
export const retentionMillis = 86_400_000
/** The header of a replayed response. */
export const replayedHeader = "idempotency-replayed"

/** Marks operations that require a key. Such a key belongs to the license in the path, for all credentials. */
export const KeyRequired = Context.Reference<boolean>("licensing/access/idempotency/KeyRequired", {
  defaultValue: () => false
})

export class Idempotency extends HttpApiMiddleware.Service<Idempotency>()("licensing/access/idempotency/Idempotency", {
  error: failures("BAD_REQUEST", "IDEMPOTENCY_KEY_REQUIRED", "IDEMPOTENCY_IN_PROGRESS", "IDEMPOTENCY_KEY_REUSED")
}) {}
