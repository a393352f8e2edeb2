/**
 * What is known of the request being answered, for envelopes, events and logs. It is set once, by the server's outermost
 * middleware; outside a request the default holds.
 */
import { Context } from "effect"
import type { Code } from "./ErrorCode.ts"

/** Where a request stands with one of the limits that count it. */
export interface LimitStanding {
  readonly name: string
  readonly perMinute: number
  readonly remaining: number
  /** Seconds until more is admitted. */
  readonly resetSeconds: number
}

/** What is known of a call with a license key while it is answered, for the record of those that are refused. */
export interface RuntimeCall {
  readonly licenseId: string
  /** The name of the operation in its group. */
  readonly operation: string
  /** What names the device: looked up, and stored nowhere. */
  binding?: { readonly kind: string; readonly key: string }
  /** SHA-256 of a lease token. */
  leaseTokenHash?: string
  featureCode?: string
}

export interface RequestContext {
  /** `req_…`, or the caller's own `X-Request-Id` where that is well-formed. */
  readonly requestId: string
  /** The client's address; behind a trusted proxy the one that the proxy saw. */
  readonly clientAddress: string | undefined
  /** Noted while the request is let in, read when its headers are made; the last one is the one that has turned it away. */
  limits?: Array<LimitStanding>
  /** The code that the request is refused with, noted where the refusal is worded; counted when it is answered. */
  refused?: Code
  /** Who was let in: the id of an API key, or an OIDC subject. */
  actor?: string
  /** Set once the license key of a runtime call is known to be one. */
  runtimeCall?: RuntimeCall
}

export const RequestContext = Context.Reference<RequestContext>("licensing/api/RequestContext", {
  defaultValue: () => ({ requestId: "req_none", clientAddress: undefined })
})
