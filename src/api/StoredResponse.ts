/**
 * The answer of a request with an Idempotency-Key, on its way into the transaction of the change that it answers for. Set by
 * the idempotency middleware; whoever commits a change outside the request's own transaction writes the row with it.
 */
import { Context, type Effect } from "effect"

export interface StoredResponseRow {
  readonly scope: Uint8Array
  readonly body_hash: Uint8Array
  readonly status: number
  readonly content_type: string | undefined
  /** As it is stored: sealed, unless it is kept for ever. */
  readonly body: Uint8Array
  readonly sealed: boolean
  /** Epoch milliseconds; undefined = kept for ever. */
  readonly expires_at: number | undefined
  readonly created_at: number
}

export interface ResponseRecorder {
  /** The row for what the operation's handler is going to return. */
  rowOf(result: unknown): Effect.Effect<StoredResponseRow>
  /** Tells that the row was committed together with the change. */
  committed(): void
}

export const StoredResponse = Context.Reference<ResponseRecorder | undefined>("licensing/api/StoredResponse", {
  defaultValue: () => undefined
})
