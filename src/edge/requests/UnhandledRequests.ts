/**
 * The refusals of requests that no operation handles: a malformed target, an unknown path or method, a defect. No detail of
 * a defect leaves the service; the request id finds its record in the log.
 */
import { Cause, Effect } from "effect"
import { HttpServerError, type HttpServerRequest } from "effect/http"
import { HttpApiError } from "effect/http-api"
import { SqlError } from "effect/sql"
import type { Code } from "../../contract/api/ErrorCode.ts"
import { noteRefused, type Refusal, refuse } from "../../contract/api/Failure.ts"
import type { RequestContext } from "../../contract/api/RequestContext.ts"
import { pathOf } from "../../contract/api/RequestHead.ts"
import { isCommitLost } from "../../platform/postgres/driver/Session.ts"
import {
  isContended,
  isLogBusy,
  isOutOfResources,
  isReadOnly,
  refuseBusyLog,
  waitOf
} from "../../platform/postgres/queries/Sql.ts"
import { isDeadlinePassed } from "./Deadlines.ts"
import type { SimilarPath } from "./Routes.ts"

/** The refusal of a request that failed outside its operation. */
export interface Refused {
  readonly refusal: Refusal
  readonly headers?: { readonly [name: string]: string }
  /** Whether it is logged as an error with its cause. */
  readonly isError?: boolean
}

/** The fault of a request that is refused before routing, or undefined. */
export const requestFault = ({ url, headers, source }: HttpServerRequest.HttpServerRequest): Refused | undefined => {
  if (url.includes("%") && !isDecodable(url))
    return badRequest("The request target has a malformed percent-encoding: write a percent sign as %25.")
  const path = pathOf(url)
  if (
    !path.startsWith("/") ||
    endsEarly.test(path) ||
    isMetricsOtherwise(path, (source as { readonly url?: string }).url ?? url)
  )
    return noSuchPath
  // RFC 9112, 3.2: a request without Host, or with two, is 400; only HTTP/1.0 has no Host header.
  const { httpVersion, rawHeaders } = source as { httpVersion?: string; rawHeaders?: ReadonlyArray<string> }
  if (headers["host"] === undefined)
    return httpVersion === "1.0" ? undefined : badRequest("The request has no Host header: send one.")
  return rawHeaders !== undefined && hasHostTwice(rawHeaders)
    ? badRequest("The request has more than one Host header: send one.")
    : undefined
}

/**
 * The router takes a semicolon for the beginning of the query, and a number sign, which no target has. No path has either. It
 * takes an asterisk for the root.
 */
const endsEarly = /[;#]/

/**
 * Whether the router would take the path for /metrics, which balancers refuse, although it was sent in another spelling. The
 * path of a target with scheme and host has been normalized.
 */
const isMetricsOtherwise = (path: string, sent: string): boolean =>
  !path.startsWith("/api/") &&
  decodeURIComponent(path) === "/metrics" &&
  pathOf(sent.replace(/^https?:\/\/[^/]*/i, "")) !== "/metrics"

const noSuchPath: Refused = {
  refusal: refuse("NOT_FOUND", "There is no such path: /openapi.yaml lists all paths.")
}

/** Whether names and values, as they were sent, have a second Host header: Node drops it from the request's headers. */
export const hasHostTwice = (rawHeaders: ReadonlyArray<string>): boolean => {
  let similar = 0
  for (let index = 0; index < rawHeaders.length; index += 2) {
    // Comparing whole names without regard to case would take five times as long, for each request.
    const name = rawHeaders[index]!
    if (name.length === 4 && (name.charCodeAt(0) | 0x20) === codeOfH) similar++
  }
  return similar > 1 && rawHeaders.filter((name, index) => index % 2 === 0 && name.toLowerCase() === "host").length > 1
}

const codeOfH = "h".charCodeAt(0)

const badRequest = (message: string): Refused => ({ refusal: refuse("BAD_REQUEST", message) })

const isDecodable = (target: string): boolean => {
  try {
    decodeURIComponent(target)
    return true
  } catch {
    return false
  }
}

/** What the routes have for a request that none of them takes. */
export interface Unrouted {
  readonly method: string
  /** The methods of its path. */
  readonly methods: ReadonlyArray<string>
  readonly similar: SimilarPath | undefined
}

/** The refusal of a failed request. */
export const refusalOf = (cause: Cause.Cause<unknown>, unroutedOf?: () => Unrouted): Refused => {
  for (const reason of cause.reasons) {
    const error = reason._tag === "Fail" ? reason.error : reason._tag === "Die" ? reason.defect : undefined
    if (HttpServerError.isHttpServerError(error))
      return error.reason._tag === "RouteNotFound" ? unrouted(unroutedOf?.()) : unreadable
    if (HttpApiError.HttpApiSchemaError.is(error) && isRequestPart(error))
      return badRequest(`The request's ${error.kind.toLowerCase()} is not valid: compare it with /openapi.yaml.`)
    if (SqlError.isSqlError(error) && error.reason._tag === "ConnectionError")
      return isCommitLost(error) ? unknownOutcome : unreachable
    if (isOutOfResources(error)) return exhausted
    if (isDeadlinePassed(error)) return late
    if (isReadOnly(error)) return readOnly
    if (isLogBusy(error)) return logBusy
    if (isContended(error)) return contended(waitOf(error))
  }
  return Cause.hasInterruptsOnly(cause) ? stopping : internal
}

const unrouted = (
  { method, methods, similar }: Unrouted = { method: "", methods: [], similar: undefined }
): Refused => {
  const allow = methods.join(", ")
  if (methods.length === 0) {
    const advice =
      similar === undefined
        ? "/openapi.yaml lists all paths"
        : `use ${similar.method === method ? "" : `${similar.method} `}${similar.path}`
    return { refusal: refuse("NOT_FOUND", `There is no such path: ${advice}.`) }
  }
  const advice = similar === undefined ? "" : ` ${adviceOf(method, similar)}.`
  return {
    refusal: refuse("METHOD_NOT_ALLOWED", `This path does not take ${method}: use ${anyOf(methods)}.${advice}`, allow),
    headers: { allow }
  }
}

const anyOf = (methods: ReadonlyArray<string>): string => methods.join(", ").replace(/, (?=[^,]*$)/, " or ")

const adviceOf = (method: string, similar: SimilarPath): string =>
  similar.method === method ? `For ${method} use ${similar.path}` : `Applications use ${similar.method} ${similar.path}`

const unreadable: Refused = badRequest("The request could not be read: check that it is complete.")

const isRequestPart = ({ kind }: HttpApiError.HttpApiSchemaError) => kind !== "Body" && kind !== "ResponseHeaders"

const unavailable = (message: string): Refusal<Code> => refuse("NOT_READY", message)

const unreachable: Refused = {
  refusal: unavailable("The database cannot be reached: send the request again in a moment.")
}
const unknownOutcome: Refused = {
  refusal: unavailable(
    "The database was lost at the end of the request, so a change may be stored or not: check it before you send the request again, or repeat it with the same Idempotency-Key."
  )
}
// Nothing was written, so the client can retry. The operator has to act, so it is logged as an error.
const exhausted: Refused = {
  refusal: unavailable("The database has no room left: send the request again in a moment."),
  isError: true
}
const readOnly: Refused = {
  refusal: unavailable("The database takes no changes now: send the request again in a moment.")
}
const contended = (waited_for: string): Refused => ({
  refusal: refuse(
    "NOT_READY",
    "The database is busy with other changes: send the request again in a moment.",
    undefined,
    { waitedFor: { waited_for } }
  )
})
const logBusy: Refused = { refusal: refuseBusyLog }
const late: Refused = {
  refusal: unavailable("The request was not handled in time, and nothing was changed: send it again in a moment.")
}
const stopping: Refused = { refusal: unavailable("The service is stopping: send the request again.") }

const internal: Refused = {
  refusal: refuse("INTERNAL_ERROR", "The service failed: tell its operator the request id."),
  isError: true
}

/** Records the refusal in the request's context. */
export const noteUnhandled = (context: RequestContext, { isError, refusal }: Refused): void => {
  if (isError === true) context.refused = refusal.code
  else noteRefused(context, refusal)
}

/** The one place where a defect is logged; the record has the response's request id. */
export const logRefused = (
  { isError }: Refused,
  cause: Cause.Cause<unknown>,
  operation: { readonly method: string | undefined; readonly route: string | undefined }
): Effect.Effect<void> => (isError === true ? Effect.logError("A request failed.", operation, cause) : Effect.void)
