/**
 * Cross-origin requests from browsers are denied, unless the operator allows their origins. Credentials are tokens in a header,
 * which a page sets itself, never cookies, so no response allows the browser to add credentials.
 */
import { HttpServerResponse } from "effect/http"
import type { RequestHead } from "../../contract/api/RequestHead.ts"

type Headers = { readonly [name: string]: string }

// Browsers always expose a few other headers.
const exposed = [
  "Content-Disposition",
  "ETag",
  "Idempotency-Replayed",
  "RateLimit",
  "RateLimit-Policy",
  "Repr-Digest",
  "Retry-After",
  "WWW-Authenticate",
  "X-Request-Id"
].join(", ")

const preflightHeaders = {
  "access-control-allow-methods": "GET, HEAD, POST, PUT, PATCH, DELETE",
  "access-control-allow-headers": "Authorization, Content-Type, Idempotency-Key, If-Match, X-Request-Id",
  // In seconds; most browsers cap longer times.
  "access-control-max-age": "600"
}

export interface Cors {
  headersOf(request: RequestHead): Headers
  preflight(request: RequestHead): HttpServerResponse.HttpServerResponse | undefined
}

const noHeaders: Headers = {}
const varyByOrigin: Headers = { vary: "Origin" }

export const makeCors = (origins: ReadonlyArray<string>): Cors => {
  if (origins.length === 0) return { headersOf: () => noHeaders, preflight: () => undefined }
  const allowed = new Map(
    origins.map((origin) => [
      origin,
      { ...varyByOrigin, "access-control-allow-origin": origin, "access-control-expose-headers": exposed }
    ])
  )
  return {
    headersOf: ({ headers }) => allowed.get(headers["origin"] ?? "") ?? varyByOrigin,
    preflight: ({ headers, method }) =>
      method === "OPTIONS" &&
      headers["access-control-request-method"] !== undefined &&
      allowed.has(headers["origin"] ?? "")
        ? HttpServerResponse.empty({ status: 204, headers: preflightHeaders })
        : undefined
  }
}
