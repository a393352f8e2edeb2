/** The body of a request. It is checked, parsed and decoded once for all readers. */
import { Context, Effect, Result, Schema } from "effect"
import { HttpServerRequest } from "effect/http"
import type { HttpApiEndpoint } from "effect/http-api"
import { bodyFault, type JsonFault, parseBody } from "../../contract/api/json/JsonText.ts"
import { BodyValuesMax } from "../../contract/api/Requests.ts"
import { decoderOf, invalid } from "./BodyDecoder.ts"
import { bytesOf } from "./Intake.ts"

const property = Symbol("licensing/access/requests/RequestBody")

export interface RequestBody {
  /** The JSON value, or its fault. */
  readonly json: Result.Result<unknown, JsonFault>
  /** The value that the operation's schema decodes; `invalid` if there is a fault. */
  readonly decoded: unknown
}

type Request = HttpServerRequest.HttpServerRequest & { readonly [property]?: RequestBody }

/** The schema of an operation's body. An operation without a body takes an empty object, because a field would have no effect. */
export const bodySchema = (endpoint: HttpApiEndpoint.Top): Schema.Top =>
  endpoint.payload.get("application/json")?.schemas[0] ?? noFields

const noFields = Schema.Struct({})

/** Reads the body of a request. */
export const readBody = (endpoint: HttpApiEndpoint.Top) => {
  const decode = bodyDecoder(endpoint)
  return Effect.flatMap(HttpServerRequest.HttpServerRequest, (request: Request) => {
    const existing = request[property]
    return existing !== undefined
      ? Effect.succeed(existing)
      : Effect.map(bytesOf(request), (bytes) => {
          const value = decode(bytes)
          Object.defineProperty(request, property, { value })
          return value
        })
  })
}

/** Decodes the bodies of an operation. */
export const bodyDecoder = (endpoint: HttpApiEndpoint.Top): ((bytes: Buffer) => RequestBody) => {
  const valuesMax = Context.get(endpoint.annotations, BodyValuesMax)
  const decode = decoderOf(bodySchema(endpoint).ast)
  return (bytes) => {
    const fault = bodyFault(bytes, valuesMax)
    const json = fault === undefined ? parseBody(bytes.toString()) : Result.fail(fault)
    return { json, decoded: Result.isSuccess(json) ? decode(json.success) : invalid }
  }
}

/** The decoded body of a request that `Decoding` has admitted. */
export const payloadOf = (request: Request): unknown => request[property]?.decoded
