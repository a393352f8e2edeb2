/** The server half of conditional changes: reads If-Match. */
import { Effect, Layer, type Types } from "effect"
import { HttpServerRequest, type HttpServerResponse } from "effect/http"
import { type Refusal, refuse } from "../../contract/api/Failure.ts"
import { Conditional, ifMatchMax } from "./Conditional.ts"
import { IfMatch, isIfMatch } from "./RecordTag.ts"

const malformed = refuse(
  "BAD_REQUEST",
  "If-Match is not an entity tag: send the ETag of the record's last response unchanged, with its quotes.",
  "If-Match"
)

type Response = HttpServerResponse.HttpServerResponse

export const layer = Layer.succeed(
  Conditional,
  Conditional.of((handler) =>
    Effect.flatMap(
      HttpServerRequest.HttpServerRequest,
      ({ headers }): Effect.Effect<Response, Types.unhandled | Refusal<"BAD_REQUEST">> => {
        const ifMatch = headers["if-match"]?.trim()
        if (ifMatch === undefined) return handler
        if (ifMatch.length > ifMatchMax || !isIfMatch(ifMatch)) return Effect.fail(malformed)
        return Effect.provideService(handler, IfMatch, ifMatch)
      }
    )
  )
)
