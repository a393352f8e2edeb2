/**
 * The response to a request with an Idempotency-Key, stored in the same transaction as the request's change. The idempotency
 * middleware sets the recorder. Code that commits outside the request's own transaction writes the row there. Code with a response
 * that takes long to encode stores it before its events.
 */
import { Context, Effect } from "effect"
import type { HttpServerResponse } from "effect/http"
import type { SqlError } from "effect/sql"
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
  /** Encodes and stores the response for this result in the running transaction, before the event counter is locked. */
  store(result: unknown): Effect.Effect<void, Refusal<"IDEMPOTENCY_IN_PROGRESS"> | SqlError.SqlError>
  /** Marks the row as written or committed together with the change. */
  committed(): void
  /** The response whose row was written or committed; undefined before. */
  response(): HttpServerResponse.HttpServerResponse | undefined
}

export const StoredResponse = Context.Reference<ResponseRecorder | undefined>("licensing/contract/api/StoredResponse", {
  defaultValue: () => undefined
})

/**
 * Returns the stored response instead of an operation's result, if there is one, so that the framework does not encode the result
 * again. Encoding a thousand licenses takes tens of milliseconds, during which all nodes wait for the event counter.
 */
export const asStored = <A, E, R>(
  operation: Effect.Effect<A, E, R>
): Effect.Effect<A | HttpServerResponse.HttpServerResponse, E, R> =>
  Effect.flatMap(operation, (result) => Effect.map(StoredResponse, (recorder) => recorder?.response() ?? result))
