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
import { firstFaults, hasJsonFault, hasLimitedList, placeOf } from "../../access/requests/BodyFaults.ts"
import { bytesOf } from "../../access/requests/Intake.ts"
import { parsedOf, readBody } from "../../access/requests/ParsedBody.ts"
import { bodyRefusal, type Path, queryRefusal, unknownFieldsRefusal } from "../../access/requests/RequestFaults.ts"
import { type Refusal, refuse } from "../../contract/api/Failure.ts"
import { bodyFault, type JsonFault, parseBody } from "../../contract/api/json/JsonText.ts"
import { isMetadataParameter } from "../../contract/api/Metadata.ts"
import { PathIds } from "../../contract/api/PathIds.ts"
import { BodyValuesMax, Decoding, pathTablesOf } from "../../contract/api/Requests.ts"
import { isStorable } from "../../contract/api/Text.ts"

type DecodingRefusal = Refusal<
  "INVALID_JSON" | "INVALID_QUERY" | "VALIDATION_ERROR" | "NOT_FOUND" | "BAD_REQUEST" | "PAYLOAD_TOO_LARGE"
>

export const layer: Layer.Layer<Decoding, never, PathIds> = Layer.effect(
  Decoding,
  Effect.gen(function* () {
    const refusals = yield* makeRefusals
    return (handler, { endpoint, group }) => {
      const bodyAst = endpoint.payload.get("application/json")?.schemas[0]?.ast
      const valuesMax = Context.get(endpoint.annotations, BodyValuesMax)
      const tables = pathTablesOf(endpoint, group)
      const parameters = queryNames(endpoint)
      const isKnown = knownNames(endpoint, parameters)
      const query = queryFaults(endpoint, parameters, isKnown)
      const ofBody = bodyAst === undefined ? undefined : refusals(bodyAst, tables, valuesMax)
      const decoded = Effect.catch(
        handler,
        (error: unknown): Effect.Effect<never, DecodingRefusal, HttpRouter.Provided> => {
          if (!HttpApiError.HttpApiSchemaError.is(error)) return Effect.fail(error as DecodingRefusal)
          if (error.kind === "Query") return Effect.flatMap(query, Effect.fail)
          // Anything else is a defect of the service: a response that does not match the contract.
          return error.kind === "Payload" && ofBody !== undefined
            ? ofBody.ofFaults(placeOf(error.cause.issue))
            : Effect.die(error)
        }
      )
      const compared = ofBody === undefined ? decoded : Effect.andThen(ofBody.early, decoded)
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
      if (bodyAst !== undefined) return Effect.andThen(checkBody(valuesMax), checked)
      return Effect.andThen(bodiless.has(endpoint.method) ? checkSize : checkNoFields, checked)
    }
  })
)

const invalidJson = ({ message, detail }: JsonFault) =>
  refuse("INVALID_JSON", message, detail, detail === undefined ? undefined : { details: [{ path: detail, message }] })

const checkBody = (valuesMax: number) =>
  Effect.flatMap(readBody(valuesMax), ({ fault }) =>
    fault === undefined ? Effect.void : Effect.fail(invalidJson(fault))
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

/** Makes the refusals of bodies by their schema: of those that the framework refused, and early ones. */
const makeRefusals = Effect.gen(function* () {
  const pathIds = yield* PathIds

  const unknownId = Effect.fnUntraced(function* (tables: Tables) {
    const { params } = yield* HttpRouter.RouteContext
    for (const [param, table] of tables) {
      if (!(yield* pathIds.exists(table, params[param] ?? ""))) return notFound(param)
    }
    return undefined
  })

  return (ast: SchemaAST.AST, tables: Tables, valuesMax: number) => {
    const parsed = Effect.flatMap(readBody(valuesMax), (body) => {
      const value = parsedOf(body)
      return Result.isFailure(value) ? Effect.fail(invalidJson(value.failure)) : Effect.succeed(value.success)
    })
    const refuseBody = Effect.fnUntraced(function* (body: unknown, first?: Path) {
      const refusal = bodyRefusal(firstFaults(ast, body, first))
      return yield* refusal.code === "INVALID_JSON" ? refusal : ((yield* unknownId(tables)) ?? refusal)
    })
    const ofFaults = (first: Path) => Effect.flatMap(parsed, (body) => refuseBody(body, first))
    const checksLists = hasLimitedList(ast)
    const early = Effect.flatMap(readBody(valuesMax), ({ bytes }) =>
      checksLists || bytes.length > earlyBytes
        ? Effect.flatMap(parsed, (body) => (hasJsonFault(ast, body) ? refuseBody(body) : Effect.void))
        : Effect.void
    )
    return { ofFaults, early }
  }
})

/**
 * The framework parses and decodes a body. A larger one, and one whose schema has limited lists, is compared with the schema's
 * fields, JSON types and lengths of lists before, which costs a tenth of it.
 */
const earlyBytes = 8_192

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
