/** Responses with the ETag of their record. */
import { Effect } from "effect"
import { HttpEffect, HttpServerResponse } from "effect/http"
import { type Editable, recordTag } from "./RecordTag.ts"

/** Adds the ETag of the record to the response. `recordIn` selects the record from a response with other content. */
export const withTag = <A extends object, E, R>(
  editable: Editable,
  response: Effect.Effect<A, E, R>,
  recordIn: (data: A) => object = (data) => data
) =>
  Effect.tap(response, (data) =>
    HttpEffect.appendPreResponseHandler((_request, response) =>
      Effect.succeed(HttpServerResponse.setHeader(response, "etag", recordTag(editable, recordIn(data))))
    )
  )
