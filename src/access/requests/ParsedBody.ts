/** The body of a request as JSON. It is checked and parsed once for all readers: a body of 256 KiB takes a millisecond or two. */
import { Effect, Result } from "effect"
import { HttpServerRequest } from "effect/http"
import { bodyFault, type JsonFault, parseBody } from "../../contract/api/json/JsonText.ts"
import { bytesOf } from "./Intake.ts"

const property = Symbol("licensing/access/requests/ParsedBody")

interface Read {
  readonly bytes: Buffer
  readonly fault: JsonFault | undefined
  /** Absent until it is needed: the framework parses most bodies itself. */
  parsed?: Result.Result<unknown, JsonFault>
}

type Request = HttpServerRequest.HttpServerRequest & { readonly [property]?: Read }

/** Checks the body of a request, which may have at most `valuesMax` values. */
export const readBody = (valuesMax: number) =>
  Effect.flatMap(HttpServerRequest.HttpServerRequest, (request: Request) => {
    const existing = request[property]
    return existing !== undefined
      ? Effect.succeed(existing)
      : Effect.map(bytesOf(request), (bytes): Read => {
          const value = { bytes, fault: bodyFault(bytes, valuesMax) }
          Object.defineProperty(request, property, { value })
          return value
        })
  })

/** The value of a body, or its fault. */
export const parsedOf = (body: Read): Result.Result<unknown, JsonFault> => {
  body.parsed ??= body.fault === undefined ? parseBody(body.bytes.toString()) : Result.fail(body.fault)
  return body.parsed
}
