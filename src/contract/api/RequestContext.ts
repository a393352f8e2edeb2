/**
 * Facts about the current request, for envelopes, events and logs. The server's outermost middleware sets it once;
 * outside a request the default applies.
 */
import { Context, type Tracer } from "effect"
import type { Code } from "./ErrorCode.ts"

/** The state of one rate limit that counts the request. */
export interface RateLimitState {
  readonly name: string
  readonly perMinute: number
  readonly remaining: number
  /** Seconds until the limit admits more requests. */
  readonly resetSeconds: number
}

/** Facts about a call with a license key, for the activities feed. */
export interface RuntimeCall {
  readonly licenseId: string
  /** The name of the operation in its group. */
  readonly operation: string
  /** The device's identity. It is used for a look-up and never stored. */
  binding?: { readonly kind: string; readonly key: string }
  /** SHA-256 of a lease token. */
  leaseTokenHash?: string
  featureCode?: string
}

export interface RequestContext {
  /** `req_…`, or the caller's own `X-Request-Id` if it is well-formed. */
  readonly requestId: string
  /** The client's address; behind a trusted proxy, the address that the proxy saw. */
  readonly clientAddress: string | undefined
  /** Set during admission, for the response headers. If the request is refused, the last entry is the limit that refused it. */
  limits?: Array<RateLimitState>
  /** The code of the refusal: set when the refusal is encoded, counted when the response is sent. */
  refused?: Code
  /** Why the request gets 503, for the log. */
  unavailable?: { readonly [fact: string]: string }
  /** Set if an event records the refusal. */
  isRefusalRecorded?: boolean
  /** The authenticated caller: the id of an API key, or an OIDC subject. */
  actor?: string
  /** Set once the license key of a runtime call has been found. */
  runtimeCall?: RuntimeCall
  /** The span of a sampled request. */
  span?: Tracer.Span
}

export const RequestContext = Context.Reference<RequestContext>("licensing/contract/api/RequestContext", {
  defaultValue: () => ({ requestId: "req_none", clientAddress: undefined })
})
