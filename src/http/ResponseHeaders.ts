/** The headers of every answer. What an operation sets itself is kept. */
import type { RateLimitState, RequestContext } from "../api/RequestContext.ts"
import type { RequestHead } from "../api/RequestHead.ts"
import type { Cors } from "./Cors.ts"

// Answers are data for programs: no cache keeps them, no browser renders or runs them, no page frames or embeds them.
const always = {
  "cache-control": "no-store",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff"
}

// A year, the least that counts. The name may have siblings that are none of our business, but not what lies below it.
const overTls = { "strict-transport-security": "max-age=31536000; includeSubDomains" }

// The page of the reference carries its own script and style, and talks to this service only.
const ofPages = {
  "content-security-policy":
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src 'self' data:; font-src data:; " +
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "cross-origin-opener-policy": "same-origin"
}

const runtimePaths = "/api/v1/license/"
const challenges = { runtime: 'License realm="licensing"', management: 'Bearer realm="licensing"' }

// Seconds after which a refusal for now is worth another try, where the refusal itself knows no better.
const retryAfter = "1"

/** An answer before it has its headers. */
export interface BareResponse {
  readonly status: number
  /** What the operation sets itself. */
  readonly headers: { readonly [name: string]: string }
}

/** `baseUrl` is the service's public address, where the operator has told it. */
export const makeResponseHeaders = (baseUrl: string | undefined, cors: Cors) => {
  const fixed: Record<string, string> = baseUrl?.startsWith("https:") ? { ...always, ...overTls } : always
  return (
    request: RequestHead,
    { headers: own, status }: BareResponse,
    { limits, requestId }: RequestContext,
    stopping: boolean
  ): Record<string, string> => {
    const headers: Record<string, string> = { ...fixed, ...cors.headersOf(request), ...own, "x-request-id": requestId }
    if (limits !== undefined) tellLimits(headers, limits, status)
    if (status === 401)
      headers["www-authenticate"] ??= request.url.startsWith(runtimePaths) ? challenges.runtime : challenges.management
    if (status === 429 || status === 503) headers["retry-after"] ??= retryAfter
    if (headers["content-type"]?.startsWith("text/html")) Object.assign(headers, ofPages)
    // A client that keeps its connection open would send the next request to a server that has gone.
    if (stopping) headers["connection"] = "close"
    return headers
  }
}

/** RateLimit and RateLimit-Policy (draft-ietf-httpapi-ratelimit-headers-10): where the request stands with each of its limits. */
const tellLimits = (headers: Record<string, string>, limits: ReadonlyArray<RateLimitState>, status: number): void => {
  let policy = ""
  let standing = ""
  for (const { name, perMinute, remaining, resetSeconds } of limits) {
    const comma = policy === "" ? "" : ", "
    policy += `${comma}"${name}";q=${perMinute};w=60`
    standing += `${comma}"${name}";r=${remaining};t=${resetSeconds}`
  }
  headers["ratelimit-policy"] = policy
  headers["ratelimit"] = standing
  if (status === 429) headers["retry-after"] ??= String(limits.at(-1)?.resetSeconds ?? retryAfter)
}
