/** The interface of operations on the fast path. */
import type { Effect } from "effect"
import type { Refusal } from "../../contract/api/Failure.ts"
import type { RequestContext } from "../../contract/api/RequestContext.ts"
import type { RequestHead } from "../../contract/api/RequestHead.ts"

/** A response's JSON and its length in UTF-8 bytes: counting the bytes of a long concatenated string would copy it. */
export interface Body {
  readonly text: string
  readonly bytes: number
  /** The signed refusal that this body contains. */
  readonly refused?: Refusal
}

/** A body, whose JSON is made when it is sent, or an unsigned refusal. An effect that is not an `Exit` is run first. */
export type Outcome = Effect.Effect<() => Body, Refusal>

/** Runs the operation; calls back once. */
export type StartedOperation = (respond: (outcome: Outcome) => void) => void

/** Decodes a body synchronously. If it fails, it has counted nothing, and the framework path handles the request. */
export type AdmittedRequest = (body: Buffer, context: RequestContext) => Effect.Effect<StartedOperation, unknown>

export interface FastOperation {
  /** Checks the credential; undefined if the framework path has to check it. */
  readonly admit: (head: RequestHead) => AdmittedRequest | undefined
}
