/** The headers of every answer. What an operation sets itself is kept. */
import { type HttpServerRequest, HttpServerResponse } from "effect/http"

// Answers are data for programs: no cache keeps them, no browser renders or runs them, no page frames them.
const always = {
  "cache-control": "no-store",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff"
}

// The page of the reference carries its own script and style, and talks to this service only.
const ofPages = {
  "content-security-policy":
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src 'self' data:; font-src data:; " +
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}

const runtimePaths = "/api/v1/license/"
const challenges = { runtime: 'License realm="licensing"', management: 'Bearer realm="licensing"' }

// Seconds after which a refusal for now is worth another try, where the refusal itself knows no better.
const retryAfter = "1"

export const withHeaders = (
  { url }: HttpServerRequest.HttpServerRequest,
  response: HttpServerResponse.HttpServerResponse,
  requestId: string,
  stopping: boolean
): HttpServerResponse.HttpServerResponse => {
  const headers: Record<string, string> = { ...always, ...response.headers, "x-request-id": requestId }
  const { status } = response
  if (status === 401)
    headers["www-authenticate"] ??= url.startsWith(runtimePaths) ? challenges.runtime : challenges.management
  if (status === 429 || status === 503) headers["retry-after"] ??= retryAfter
  if (headers["content-type"]?.startsWith("text/html")) Object.assign(headers, ofPages)
  // A client that keeps its connection open would send the next request to a server that has gone.
  if (stopping) headers["connection"] = "close"
  return HttpServerResponse.setHeaders(response, headers)
}
