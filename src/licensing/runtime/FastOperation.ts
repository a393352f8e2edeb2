/** What the fast path needs of an operation. It is declared here, below the path that runs it. */
import type { Effect } from "effect"
import type { Refusal } from "../../contract/api/Failure.ts"
import type { RequestContext } from "../../contract/api/RequestContext.ts"
import type { RequestHead } from "../../contract/api/RequestHead.ts"

/** A response's JSON and its length in UTF-8 bytes. Counting the bytes of a long concatenated string would copy it once more. */
export interface Body {
  readonly text: string
  readonly bytes: number
  /** The signed refusal that this body contains. */
  readonly refused?: Refusal
}

/** The outcome of an operation: a body, whose JSON is made when it is sent, or a refusal without a signature. An effect that is not an `Exit` is run first. */
export type Outcome = Effect.Effect<() => Body, Refusal>

/** Runs the operation; calls back once. */
export type StartedOperation = (respond: (outcome: Outcome) => void) => void

/**
 * Decodes a body, synchronously. Fails before it has counted anything if the framework path has to handle the request; the error
 * is ignored.
 */
export type AdmittedRequest = (body: Buffer, context: RequestContext) => Effect.Effect<StartedOperation, unknown>

/** An operation with a fixed path and a body. */
export interface FastOperation {
  /** Checks the credential; undefined if the framework path has to check it. */
  readonly admit: (head: RequestHead) => AdmittedRequest | undefined
}
