/**
 * The response to a request with an Idempotency-Key, stored in the same transaction as the request's change. The idempotency
 * middleware sets the recorder. Code that commits a change outside the request's own transaction writes the row there; code whose
 * response takes long to make stores it before its events.
 */
import { Context, type Effect } from "effect"
import type { Refusal } from "./Failure.ts"

export interface StoredResponseRow {
  readonly scope: Uint8Array
  readonly body_hash: Uint8Array
  readonly status: number
  readonly content_type: string | undefined
  /** The bytes as stored: encrypted if `sealed`. Permanently stored responses are not encrypted. */
  readonly body: Uint8Array
  readonly sealed: boolean
  /** Epoch milliseconds; undefined = stored permanently. */
  readonly expires_at: number | undefined
  readonly created_at: number
}

export interface ResponseRecorder {
  /** The row for the result that the operation's handler will return. */
  rowOf(result: unknown): Effect.Effect<StoredResponseRow>
  /** Makes and stores the response for this result within the running transaction, before it locks the event counter. */
  store(result: unknown): Effect.Effect<void, Refusal<"IDEMPOTENCY_IN_PROGRESS">>
  /** Called after the row was written or committed together with the change. */
  committed(): void
}

export const StoredResponse = Context.Reference<ResponseRecorder | undefined>("licensing/api/StoredResponse", {
  defaultValue: () => undefined
})
