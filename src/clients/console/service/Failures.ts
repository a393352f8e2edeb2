/** What went wrong, in words for a person, and the fields that it is about. */
import { Cause, Schema, SchemaIssue } from "effect"
import { HttpClientError } from "effect/http"
import { statuses } from "../../../contract/api/ErrorCode.ts"
import { isRefusal } from "../../../contract/api/Failure.ts"
import { TimedOut } from "../../client/Client.ts"

export interface Told {
  readonly message: string
  /** The refusal's code, for support cases; absent if the service did not refuse. */
  readonly code?: string
  /** Sentences by the path of the field that they are about. */
  readonly fields: ReadonlyMap<string, string>
}

const noFields: ReadonlyMap<string, string> = new Map()

export const tell = (cause: Cause.Cause<unknown>): Told => {
  const error = Cause.squash(cause)
  if (isRefusal(error)) {
    const { code, detail, details } = error
    const message = code === "TOKEN_SCOPE_DENIED" ? notAllowed(detail) : error.message
    const faults = details ?? (detail === undefined ? [] : [{ path: detail, message }])
    return { code, message, fields: new Map(faults.map((fault) => [fault.path, fault.message])) }
  }
  if (HttpClientError.isHttpClientError(error) || error instanceof TimedOut) return unreached
  if (Schema.isSchemaError(error)) return faultOf(error.issue)
  return { message: `Something unexpected happened: ${String(error)}`, fields: noFields }
}

/** For a person, who knows neither operations nor scopes; the scope is for the administrator. */
export const notAllowed = (scope = "another scope"): string =>
  `Your sign-in does not allow this: ask an administrator for ${scope}.`

const unreached: Told = {
  message: "The service cannot be reached: check the connection and try again.",
  fields: noFields
}

/** Whether the service refused for good. Otherwise the same may be sent again: perhaps it was done, or can be done soon. */
export const isFinal = (error: unknown): boolean => {
  if (!isRefusal(error) || error.code === "IDEMPOTENCY_IN_PROGRESS") return false
  const status = statuses[error.code]
  return status < 500 && status !== 401 && status !== 429
}

/** The client checks a body before it sends it. */
const faultOf = (issue: SchemaIssue.Issue): Told => {
  const { issues } = SchemaIssue.makeFormatterStandardSchemaV1()(issue)
  const fields = new Map(issues.map(({ message, path }) => [(path ?? []).map(String).join("."), message]))
  return { message: issues[0]?.message ?? "This is not valid.", fields }
}

/** The labels of fields that refusals name though another form has them. */
export const fieldLabels = {
  starts_at: "Starts on",
  expires_at: "Expires at the end of",
  maintenance_expires_at: "Updates until the end of",
  duration_days: "Days of a license’s term",
  allow_transfer: "Licenses may be transferred",
  max_transfers: "Transfers"
} as const

const quoted: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(fieldLabels).map(([name, label]) => [name, `“${label}”`])
)

/** A sentence with the labels of fields in place of their names in the API. Text with digits, as a number sub_1042, is the reader's own. */
export const inWords = (message: string, labels: Readonly<Record<string, string>> = {}): string =>
  message.replaceAll(
    /\b[a-z]+(?:_[a-z]+)+(?:4)?\b/g,
    (name) => labels[name] ?? quoted[name] ?? name.replaceAll("_", " ")
  )
