/**
 * What is known of the request being answered, for envelopes, events and logs. It is set once, by the server's outermost
 * middleware; outside a request the default holds.
 */
import { Context } from "effect"

export const RequestContext = Context.Reference<{
  /** `req_…`, or the caller's own `X-Request-Id` where that is well-formed. */
  readonly requestId: string
  /** The client's address; behind a trusted proxy the one that the proxy saw. */
  readonly clientAddress: string | undefined
}>("licensing/api/RequestContext", { defaultValue: () => ({ requestId: "req_none", clientAddress: undefined }) })
