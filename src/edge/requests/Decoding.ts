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
import { SqlClient } from "effect/sql"
import { invalid } from "../../access/requests/BodyDecoder.ts"
import { firstFaults } from "../../access/requests/BodyFaults.ts"
import { bytesOf } from "../../access/requests/Intake.ts"
import { bodySchema, readBody } from "../../access/requests/RequestBody.ts"
import { bodyRefusal, queryRefusal } from "../../access/requests/RequestFaults.ts"
import { type Refusal, refuse } from "../../contract/api/Failure.ts"
import type { JsonFault } from "../../contract/api/json/JsonText.ts"
import { isMetadataParameter } from "../../contract/api/Metadata.ts"
import { pathOf } from "../../contract/api/RequestHead.ts"
import { Decoding, pathTablesOf } from "../../contract/api/Requests.ts"
import { isStorable } from "../../contract/api/Text.ts"

type DecodingRefusal = Refusal<
  "INVALID_JSON" | "INVALID_QUERY" | "VALIDATION_ERROR" | "NOT_FOUND" | "BAD_REQUEST" | "PAYLOAD_TOO_LARGE"
>

export const layer: Layer.Layer<Decoding, never, SqlClient.SqlClient> = Layer.effect(
  Decoding,
  Effect.gen(function* () {
    const makeCheck = yield* makeBodyCheck
    return (handler, { endpoint, group }) => {
      const parameters = queryNames(endpoint)
      const isKnown = knownNames(endpoint, parameters)
      const query = queryFaults(endpoint, parameters, isKnown)
      const decoded = Effect.catch(
        handler,
        (error: unknown): Effect.Effect<never, DecodingRefusal, HttpRouter.Provided> => {
          if (!HttpApiError.HttpApiSchemaError.is(error)) return Effect.fail(error as DecodingRefusal)
          // Anything else is a defect of the service: a response that does not match the contract.
          return error.kind === "Query" ? Effect.flatMap(query, Effect.fail) : Effect.die(error)
        }
      )
      const check = makeCheck(endpoint, pathTablesOf(endpoint, group))
      const hasBody = endpoint.payload.size > 0
      const compared = hasBody ? Effect.andThen(check.fields, decoded) : decoded
      const checked = Effect.withFiber<Effect.Success<typeof decoded>, DecodingRefusal, HttpRouter.Provided>(
        (fiber) => {
          const context = fiber.context as Context.Context<HttpRouter.Provided>
          const { url } = Context.getUnsafe(context, HttpServerRequest.HttpServerRequest)
          if (endpoint.method === "GET" && unknownNames(url, isKnown).length > 0)
            return Effect.flatMap(query, Effect.fail)
          const refusal =
            unstorableParameter(Context.getUnsafe(context, HttpServerRequest.ParsedSearchParams), parameters) ??
            pathIdRefusal(Context.getUnsafe(context, HttpRouter.RouteContext).params)
          return refusal === undefined ? compared : Effect.fail(refusal)
        }
      )
      if (hasBody) return Effect.andThen(check.json, checked)
      return Effect.andThen(bodiless.has(endpoint.method) ? checkSize : check.noFields, checked)
    }
  })
)

const invalidJson = ({ message, detail }: JsonFault) =>
  refuse("INVALID_JSON", message, detail, detail === undefined ? undefined : { details: [{ path: detail, message }] })

/** Methods whose body has no meaning (RFC 9110, sections 9.3.1 and 9.3.5). */
const bodiless: ReadonlySet<string> = new Set(["GET", "HEAD", "DELETE"])

/** The body is ignored, but one in chunks has no announced size that `Intake` could check. */
const checkSize = Effect.flatMap(
  HttpServerRequest.HttpServerRequest,
  (request): Effect.Effect<unknown, DecodingRefusal> =>
    request.headers["transfer-encoding"] === undefined ? Effect.void : bytesOf(request)
)

/** Makes the checks of an operation's body. */
const makeBodyCheck = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  /** The refusal of an unknown id in the path, which is reported before a fault in the body. */
  const unknownId = Effect.fnUntraced(function* (tables: Tables) {
    const { params } = yield* HttpRouter.RouteContext
    for (const [param, table] of tables) {
      const rows = yield* sql`SELECT 1 FROM ${sql(table)} WHERE id = ${params[param] ?? ""}`
      if (rows.length === 0) return notFound(param)
    }
    return undefined
  }, Effect.orDie)

  return (endpoint: HttpApiEndpoint.Top, tables: Tables) => {
    const read = readBody(endpoint)
    const json = Effect.flatMap(read, (body) =>
      Result.isFailure(body.json) ? Effect.fail(invalidJson(body.json.failure)) : Effect.succeed(body.json.success)
    )
    const refuseFields = Effect.fnUntraced(function* (body: unknown) {
      const refusal = bodyRefusal(firstFaults(bodySchema(endpoint).ast, body))
      return yield* refusal.code === "INVALID_JSON" ? refusal : ((yield* unknownId(tables)) ?? refusal)
    })
    const fields = Effect.flatMap(read, ({ decoded }) =>
      decoded === invalid ? Effect.flatMap(json, refuseFields) : Effect.void
    )
    /** An operation without fields takes no body or an empty object. */
    const noFields = Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) => {
      const { headers } = request
      if (headers["transfer-encoding"] === undefined && !(Number(headers["content-length"]) > 0)) return Effect.void
      return Effect.flatMap(bytesOf(request), ({ length }) => (length === 0 ? Effect.void : fields))
    })
    return { json, fields, noFields }
  }
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
const unknownNames = (url: string, isKnown: (name: string) => boolean): ReadonlyArray<string> =>
  [...new URLSearchParams(url.slice(pathOf(url).length)).keys()].filter((name) => !isKnown(name))

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
