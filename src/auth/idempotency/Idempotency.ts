/**
 * The contract half of Idempotency-Key: optional on every operation that changes something, required where an operation says
 * so. The first answer is kept for 24 hours and replayed byte for byte, with `Idempotency-Replayed: true`.
 */
import { Context } from "effect"
import { HttpApiMiddleware } from "effect/http-api"
import { failures } from "../../api/Failure.ts"

/** Characters of the longest Idempotency-Key. */
export const idempotencyKeyMax = 255

/** On operations that refuse to run without a key; their keys belong to the license that the path names, whoever asks. */
export const KeyRequired = Context.Reference<boolean>("licensing/auth/idempotency/KeyRequired", {
  defaultValue: () => false
})

export class Idempotency extends HttpApiMiddleware.Service<Idempotency>()("licensing/auth/idempotency/Idempotency", {
  error: failures("BAD_REQUEST", "IDEMPOTENCY_KEY_REQUIRED", "IDEMPOTENCY_IN_PROGRESS", "IDEMPOTENCY_KEY_REUSED")
}) {}
