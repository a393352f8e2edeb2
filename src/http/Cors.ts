/**
 * What pages of other origins may do from a browser: nothing, unless the operator names their origins. Credentials are tokens in
 * a header that a page has to hold itself, never cookies, so no answer allows the browser to add any.
 */
import { HttpServerResponse } from "effect/http"
import type { RequestHead } from "../api/RequestHead.ts"

type Headers = { readonly [name: string]: string }

// What a page may read beside the few headers that browsers always show.
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

const asked = {
  "access-control-allow-methods": "GET, HEAD, POST, PUT, PATCH, DELETE",
  "access-control-allow-headers": "Authorization, Content-Type, Idempotency-Key, X-Request-Id",
  // Seconds that a browser may keep this answer; more is cut by most of them.
  "access-control-max-age": "600"
}

export interface Cors {
  /** The headers of every answer to this request. */
  headersOf(request: RequestHead): Headers
  /** The answer to a browser that asks before it sends; undefined where the request is none of these, or not of an allowed origin. */
  preflight(request: RequestHead): HttpServerResponse.HttpServerResponse | undefined
}

const none: Headers = {}
const varying: Headers = { vary: "Origin" }

export const makeCors = (origins: ReadonlyArray<string>): Cors => {
  if (origins.length === 0) return { headersOf: () => none, preflight: () => undefined }
  const allowed = new Map(
    origins.map((origin) => [
      origin,
      { ...varying, "access-control-allow-origin": origin, "access-control-expose-headers": exposed }
    ])
  )
  return {
    headersOf: ({ headers }) => allowed.get(headers["origin"] ?? "") ?? varying,
    preflight: ({ headers, method }) =>
      method === "OPTIONS" &&
      headers["access-control-request-method"] !== undefined &&
      allowed.has(headers["origin"] ?? "")
        ? HttpServerResponse.empty({ status: 204, headers: asked })
        : undefined
  }
}
