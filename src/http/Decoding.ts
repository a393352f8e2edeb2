/**
 * The server half of `Decoding`: the faults of a request, in the order in which they are reported. First the body as JSON and
 * the query, then an unknown id in the path, then the body's fields.
 *
 * A GET refuses query parameters that its endpoint does not declare: a misspelt filter would otherwise list everything.
 *
 * A path id or query parameter may be any text. Text that PostgreSQL cannot store is refused here, so that no statement
 * contains it.
 */
import { Context, Effect, Layer, Result, Schema, SchemaAST } from "effect"
import { HttpRouter, HttpServerRequest } from "effect/http"
import { type HttpApiEndpoint, HttpApiError } from "effect/http-api"
import { type Refusal, refuse } from "../api/Failure.ts"
import { bodyFault, type JsonFault, parseBody } from "../api/JsonText.ts"
import { isMetadataParameter } from "../api/Metadata.ts"
import { PathIds } from "../api/PathIds.ts"
import { Decoding, pathTablesOf } from "../api/Requests.ts"
import { isStorable } from "../api/Text.ts"
import { bytesOf } from "./Intake.ts"
import { bodyRefusal, queryRefusal, unknownFieldsRefusal } from "./RequestFaults.ts"

type DecodingRefusal = Refusal<
  "INVALID_JSON" | "INVALID_QUERY" | "VALIDATION_ERROR" | "NOT_FOUND" | "BAD_REQUEST" | "PAYLOAD_TOO_LARGE"
>

export const layer: Layer.Layer<Decoding, never, PathIds> = Layer.effect(
  Decoding,
  Effect.gen(function* () {
    const refusalOf = yield* makeRefusalOf
    return (handler, { endpoint, group }) => {
      const takesBody = endpoint.payload.size > 0
      const tables = pathTablesOf(endpoint, group)
      const parameters = queryNames(endpoint)
      const isKnown = knownNames(endpoint, parameters)
      const query = queryFaults(endpoint, parameters, isKnown)
      const decoded = Effect.catch(handler, (error: unknown) =>
        HttpApiError.HttpApiSchemaError.is(error)
          ? Effect.flatMap(refusalOf(error, tables, query), Effect.fail)
          : Effect.fail(error as DecodingRefusal)
      )
      const checked = Effect.withFiber<Effect.Success<typeof decoded>, DecodingRefusal, HttpRouter.Provided>(
        (fiber) => {
          const context = fiber.context as Context.Context<HttpRouter.Provided>
          const { url } = Context.getUnsafe(context, HttpServerRequest.HttpServerRequest)
          if (endpoint.method === "GET" && unknownNames(url, isKnown).length > 0)
            return Effect.flatMap(query, Effect.fail)
          const refusal =
            unstorableParameter(Context.getUnsafe(context, HttpServerRequest.ParsedSearchParams), parameters) ??
            pathIdRefusal(Context.getUnsafe(context, HttpRouter.RouteContext).params)
          return refusal === undefined ? decoded : Effect.fail(refusal)
        }
      )
      if (takesBody) return Effect.andThen(checkBody, checked)
      return Effect.andThen(bodiless.has(endpoint.method) ? checkSize : checkNoFields, checked)
    }
  })
)

const invalidJson = ({ message, detail }: JsonFault) =>
  refuse("INVALID_JSON", message, detail, detail === undefined ? undefined : { details: [{ path: detail, message }] })

const checkBody = Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
  Effect.flatMap(bytesOf(request), (bytes) => {
    const fault = bodyFault(bytes)
    return fault === undefined ? Effect.void : Effect.fail(invalidJson(fault))
  })
)

/** Methods whose body has no meaning (RFC 9110, sections 9.3.1 and 9.3.5). */
const bodiless: ReadonlySet<string> = new Set(["GET", "HEAD", "DELETE"])

/** The body is ignored, but one in chunks has no announced size that `Intake` could check. */
const checkSize = Effect.flatMap(
  HttpServerRequest.HttpServerRequest,
  (request): Effect.Effect<unknown, DecodingRefusal> =>
    request.headers["transfer-encoding"] === undefined ? Effect.void : bytesOf(request)
)

/** An operation without fields takes no body or an empty object. A field would have no effect, so it is refused. */
const checkNoFields = Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) => {
  const { headers } = request
  if (headers["transfer-encoding"] === undefined && !(Number(headers["content-length"]) > 0)) return Effect.void
  return Effect.flatMap(bytesOf(request), (bytes) => {
    const refusal = bytes.length === 0 ? undefined : fieldsRefusal(bytes)
    return refusal === undefined ? Effect.void : Effect.fail(refusal)
  })
})

const fieldsRefusal = (bytes: Buffer): Refusal<"INVALID_JSON"> | undefined => {
  const fault = bodyFault(bytes)
  if (fault !== undefined) return invalidJson(fault)
  const body = parseBody(bytes.toString())
  return Result.isFailure(body) ? invalidJson(body.failure) : unknownFieldsRefusal(Object.keys(body.success as object))
}

const makeRefusalOf = Effect.gen(function* () {
  const pathIds = yield* PathIds

  const unknownId = Effect.fnUntraced(function* (tables: Tables) {
    const { params } = yield* HttpRouter.RouteContext
    for (const [param, table] of tables) {
      if (!(yield* pathIds.exists(table, params[param] ?? ""))) return notFound(param)
    }
    return undefined
  })

  return Effect.fnUntraced(function* (error: HttpApiError.HttpApiSchemaError, tables: Tables, query: QueryFaults) {
    if (error.kind === "Query") return (yield* query) as DecodingRefusal
    // A defect of the service: a response that does not match the contract.
    if (error.kind !== "Payload") return yield* Effect.die(error)
    const request = yield* HttpServerRequest.HttpServerRequest
    const body = parseBody(yield* Effect.orDie(request.text))
    if (Result.isFailure(body)) return invalidJson(body.failure)
    const refusal = bodyRefusal(error.cause.issue, body.success)
    return refusal.code === "INVALID_JSON" ? refusal : ((yield* unknownId(tables)) ?? refusal)
  })
})

type Tables = ReadonlyArray<readonly [param: string, table: string]>

const queryNames = (endpoint: HttpApiEndpoint.Top): ReadonlyArray<string> => {
  const ast = endpoint.query === undefined ? undefined : SchemaAST.toEncoded(endpoint.query.ast)
  return ast?._tag === "Objects" ? ast.propertySignatures.map(({ name }) => String(name)) : []
}

/** Whether an endpoint takes a query parameter, by its name. */
const knownNames = (endpoint: HttpApiEndpoint.Top, parameters: ReadonlyArray<string>) => {
  const ast = endpoint.query === undefined ? undefined : SchemaAST.toEncoded(endpoint.query.ast)
  const takesMetadata = ast?._tag === "Objects" && ast.indexSignatures.length > 0
  return (name: string): boolean => parameters.includes(name) || (takesMetadata && isMetadataParameter(name))
}

type QueryFaults = Effect.Effect<
  Refusal<"INVALID_QUERY">,
  never,
  HttpServerRequest.HttpServerRequest | HttpServerRequest.ParsedSearchParams
>

/** The refusal of a faulty query. The framework stops at a query's first fault, so the query is decoded once more. */
const queryFaults = (
  endpoint: HttpApiEndpoint.Top,
  parameters: ReadonlyArray<string>,
  isKnown: (name: string) => boolean
): QueryFaults => {
  const schema = (endpoint.query ?? Schema.Struct({})) as Schema.Codec<unknown, unknown>
  const decode = Schema.decodeUnknownEffect(Schema.toCodecArrayFromSingle(schema), { errors: "all" })
  return Effect.gen(function* () {
    const { url } = yield* HttpServerRequest.HttpServerRequest
    const query = yield* HttpServerRequest.ParsedSearchParams
    const unknown = endpoint.method === "GET" ? unknownNames(url, isKnown) : []
    const issue = yield* Effect.match(decode(query), { onSuccess: () => undefined, onFailure: ({ issue }) => issue })
    return queryRefusal(unknown, parameters, issue, query)
  })
}

/** Reads the names from the request target: as a member of an object, `__proto__` would not be found. */
const unknownNames = (url: string, isKnown: (name: string) => boolean): ReadonlyArray<string> => {
  const begin = url.indexOf("?")
  return begin === -1 ? [] : [...new URLSearchParams(url.slice(begin + 1)).keys()].filter((name) => !isKnown(name))
}

const pathIdRefusal = (params: { readonly [param: string]: string | undefined }) => {
  for (const param in params) {
    const value = params[param] ?? ""
    if (value === "") return noId(param)
    if (!isStorable(value)) return notFound(param)
  }
  return undefined
}

const unstorableParameter = (
  query: { readonly [name: string]: string | ReadonlyArray<string> },
  parameters: ReadonlyArray<string>
) => {
  for (const name of parameters) {
    const value = query[name]
    if (typeof value === "string" && !isStorable(value)) {
      const message = `The query parameter ${name} is not valid: expected text without NUL characters.`
      return refuse("INVALID_QUERY", message, name, { details: [{ path: name, message }] })
    }
  }
  return undefined
}

const noId = (param: string) =>
  refuse("NOT_FOUND", `The path has no ${param}: add it, or remove the slash after which it is missing.`, param)

const notFound = (param: string) =>
  refuse("NOT_FOUND", `Nothing has the ${param} in the path: use an existing one.`, param)
