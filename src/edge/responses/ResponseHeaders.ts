/** The headers of every response. Headers that an operation sets itself take precedence. */
import type { RateLimitState, RequestContext } from "../../contract/api/RequestContext.ts"
import type { RequestHead } from "../../contract/api/RequestHead.ts"
import type { Cors } from "./Cors.ts"

// Responses are data for programs: no cache stores them, no browser renders or runs them, no page frames or embeds them.
const always = {
  "cache-control": "no-store",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff"
}

// A year, the shortest time that browsers' preload lists accept. It covers the host and its subdomains, not sibling domains.
const overTls = { "strict-transport-security": "max-age=31536000; includeSubDomains" }

// Pages load scripts as files and connect to this service only. The documentation site colors code by style attributes.
const ofPages = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self'; " +
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "cross-origin-opener-policy": "same-origin"
}

const challenges = { runtime: 'License realm="licensing"', management: 'Bearer realm="licensing"' }

// In seconds, unless the refusal sets another time.
export const retryAfter = "1"

export interface BareResponse {
  readonly status: number
  readonly headers: { readonly [name: string]: string }
}

/** The headers that depend on no request. */
export const fixedHeaders = (baseUrl: string | undefined): Readonly<Record<string, string>> =>
  baseUrl?.startsWith("https:") ? { ...always, ...overTls } : always

export const makeResponseHeaders = (baseUrl: string | undefined, cors: Cors) => {
  const fixed = fixedHeaders(baseUrl)
  return (
    request: RequestHead,
    { headers: own, status }: BareResponse,
    { limits, refused, requestId }: RequestContext,
    stopping: boolean
  ): Record<string, string> => {
    const headers: Record<string, string> = { ...fixed, ...cors.headersOf(request), ...own, "x-request-id": requestId }
    if (limits !== undefined) addLimits(headers, limits, status)
    if (status === 401)
      headers["www-authenticate"] ??= refused?.startsWith("LICENSE_") ? challenges.runtime : challenges.management
    if (status === 429 || status === 503) headers["retry-after"] ??= retryAfter
    if (headers["content-type"]?.startsWith("text/html")) Object.assign(headers, ofPages, own)
    // An open connection would send the next request to a stopped server.
    if (stopping) headers["connection"] = "close"
    return headers
  }
}

/** draft-ietf-httpapi-ratelimit-headers-10: the state of each limit that counted the request. */
const addLimits = (headers: Record<string, string>, limits: ReadonlyArray<RateLimitState>, status: number): void => {
  let policies = ""
  let states = ""
  for (const { name, perMinute, remaining, resetSeconds } of limits) {
    const comma = policies === "" ? "" : ", "
    policies += `${comma}"${name}";q=${perMinute};w=60`
    states += `${comma}"${name}";r=${remaining};t=${resetSeconds}`
  }
  headers["ratelimit-policy"] = policies
  headers["ratelimit"] = states
  if (status === 429) headers["retry-after"] ??= String(limits.at(-1)?.resetSeconds ?? retryAfter)
}
