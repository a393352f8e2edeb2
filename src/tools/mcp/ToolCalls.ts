import { Data, Effect, Predicate, type Redacted, Result } from "effect"
import { HttpClient, HttpClientRequest, type HttpClientResponse } from "effect/http"
import { newKey } from "../../clients/client/Attempts.ts"
import { argumentsOf, type ContractOperation } from "./Contract.ts"

export interface Service {
  readonly url: string
  readonly token: Redacted.Redacted<string>
}

/** The result of a tool: the JSON of `data`, for lists also of `page_info`, or a sentence. */
export interface Answer {
  readonly isError: boolean
  readonly text: string
}

/** Longer results overflow a model's context. */
const answerCharactersMax = 100_000
const timeout = "30 seconds"
/** Only reads, and changes with an Idempotency-Key, are retried. */
const retries = 2

export const callOperation = Effect.fnUntraced(
  function* (service: Service, operation: ContractOperation, input: Readonly<Record<string, unknown>>) {
    const refused = refuseArguments(operation, input)
    if (refused !== undefined) return failed(refused)
    const client = yield* HttpClient.HttpClient
    const isRepeatable = operation.method === "GET" || operation.takesIdempotencyKey
    const sending = isRepeatable ? HttpClient.retryTransient(client, { times: retries }) : client
    const unusable = operation.parameters.find(({ in: place, name }) => place === "path" && isNoSegment(input[name]))
    if (unusable !== undefined) return failed(`${unusable.name} is no id: find the record first.`)
    const response = yield* sending.execute(yield* requestOf(service, operation, input))
    return answerOf(response, yield* response.text, operation.method === "GET")
  },
  (calling, { url }, { method }) => {
    const known = method === "GET" ? "" : " The change may have been made: check before you repeat it."
    return calling.pipe(
      Effect.timeoutOrElse({
        duration: timeout,
        orElse: () => Effect.succeed(failed(`The service at ${url} did not respond within ${timeout}.${known}`))
      }),
      // The cause may contain the request with its token.
      Effect.catch(() => Effect.succeed(failed(`The service at ${url} cannot be reached.${known}`)))
    )
  }
)

/** A misspelled filter would list everything, and a field outside the body would be dropped. */
const refuseArguments = (
  operation: ContractOperation,
  input: Readonly<Record<string, unknown>>
): string | undefined => {
  const { names, required } = argumentsOf(operation)
  const unknown = Object.keys(input).filter((name) => !names.includes(name))
  const missing = required.filter((name) => input[name] === undefined || input[name] === null)
  if (unknown.length === 0 && missing.length === 0) return undefined
  const faults = [
    ...(unknown.length === 0 ? [] : [`does not take ${unknown.join(", ")}`]),
    ...(missing.length === 0 ? [] : [`needs ${missing.join(", ")}`])
  ]
  const allowed = names.map((name) => (required.includes(name) ? `${name} (required)` : name)).join(", ")
  const fields = names.includes("body") ? " The fields of the request are within body." : ""
  return `${operation.id} ${faults.join(", and ")}. Its arguments: ${allowed === "" ? "none" : allowed}.${fields}`
}

/** An address with such a segment would resolve to another operation. */
const isNoSegment = (value: unknown): boolean => ["", ".", ".."].includes(String(value ?? ""))

export class ServiceUnusable extends Data.TaggedError("ServiceUnusable")<{ readonly message: string }> {}

export const getJson = Effect.fnUntraced(
  function* ({ token, url }: Service, path: string) {
    const client = HttpClient.retryTransient(yield* HttpClient.HttpClient, { times: retries })
    const request = HttpClientRequest.get(`${url}${path}`).pipe(HttpClientRequest.bearerToken(token))
    const response = yield* client.execute(request)
    if (response.status === 200) return yield* response.json
    const { text } = answerOf(response, yield* response.text, true)
    return yield* new ServiceUnusable({ message: `${url}${path}: ${text}` })
  },
  (getting, { url }) => {
    const unusable = new ServiceUnusable({
      message: `The service at ${url} cannot be reached, or is no licensing service.`
    })
    return getting.pipe(
      Effect.catchTag("HttpClientError", () => Effect.fail(unusable)),
      Effect.timeoutOrElse({ duration: timeout, orElse: () => Effect.fail(unusable) })
    )
  }
)

const failed = (text: string): Answer => ({ isError: true, text })

const requestOf = Effect.fnUntraced(function* (
  { token, url }: Service,
  operation: ContractOperation,
  input: Readonly<Record<string, unknown>>
) {
  const path = operation.path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(input[name] ?? "")))
  const queries = operation.parameters.filter((parameter) => parameter.in === "query")
  const request = HttpClientRequest.make(operation.method as "POST")(`${url}${path}`).pipe(
    HttpClientRequest.setUrlParams(queries.flatMap(({ name }) => pairs(name, input[name]))),
    HttpClientRequest.bearerToken(token),
    HttpClientRequest.acceptJson
  )
  const keyed = operation.takesIdempotencyKey
    ? HttpClientRequest.setHeader(request, "idempotency-key", yield* newKey)
    : request
  return operation.body === undefined ? keyed : HttpClientRequest.bodyJsonUnsafe(keyed, input.body ?? {})
})

/** Filters by metadata are objects: `metadata[key]=value`. */
const pairs = (name: string, value: unknown): ReadonlyArray<readonly [string, string]> => {
  if (value === undefined || value === null) return []
  if (Predicate.isObject(value)) {
    return Object.entries(value).map(([key, inner]) => [`${name}[${key}]`, String(inner)])
  }
  return [[name, String(value)]]
}

/** A long answer of a read is refused. The answer of a change is not: it may show keys that cannot be read again. */
const answerOf = (
  { headers, status }: HttpClientResponse.HttpClientResponse,
  text: string,
  isLimited: boolean
): Answer => {
  if (status === 204) return { isError: false, text: "Done." }
  const envelope = headers["content-type"]?.startsWith("application/json") ? parse(text) : undefined
  if (envelope === undefined) return failed(`The service answered with status ${status}, and without JSON.`)
  const { data, error, page_info } = envelope
  if (error !== undefined) return failed(`${error.code}: ${error.message}${detailOf(error.detail)}`)
  const answer = JSON.stringify(page_info === undefined ? data : { data, page_info })
  return !isLimited || answer.length <= answerCharactersMax
    ? { isError: false, text: answer }
    : failed(`The answer has ${answer.length} characters, more than ${answerCharactersMax}: ask for fewer with limit.`)
}

interface Envelope {
  readonly data?: unknown
  /** Of lists. */
  readonly page_info?: unknown
  readonly error?: { readonly code: string; readonly message: string; readonly detail?: string }
}

const parse = (text: string): Envelope | undefined => {
  const parsed = Result.try(() => JSON.parse(text) as unknown)
  return Result.isSuccess(parsed) && Predicate.isObject(parsed.success) ? (parsed.success as Envelope) : undefined
}

const detailOf = (detail: string | undefined): string => (detail === undefined ? "" : ` (${detail})`)
