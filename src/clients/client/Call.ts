/** Facts about the call that is going on, between its operation and the HTTP client. */
import { Context, type Redacted } from "effect"
import type { HttpClientResponse } from "effect/http"

export interface CallFacts {
  readonly token?: Redacted.Redacted<string>
  readonly licenseKey?: Redacted.Redacted<string>
  /** Sent with the management operations that change something. */
  readonly idempotencyKey?: string
  /** Sent with the change of a record. */
  readonly ifMatch?: string
  /** The last response, whose bytes the decoded value no longer has. */
  received?: HttpClientResponse.HttpClientResponse
}

export const Call = Context.Reference<CallFacts>("licensing/clients/client/Call", { defaultValue: () => ({}) })
