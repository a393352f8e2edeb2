/**
 * The parts of a response that both paths share: the request id, the client's address, the headers, and the records for metrics,
 * operators and the activity feed. They are plain functions because they run for each request.
 */
import { Effect } from "effect"
import { Identifiers } from "../../contract/api/Identifier.ts"
import type { RequestContext } from "../../contract/api/RequestContext.ts"
import { inboundRequestId, type RequestHead } from "../../contract/api/RequestHead.ts"
import { Refusals } from "../../insight/activities/Refusals.ts"
import { RecentErrors } from "../../insight/ops/RecentErrors.ts"
import { Settings } from "../../platform/config/Config.ts"
import { LoadStatistics } from "../../platform/telemetry/LoadStatistics.ts"
import { Traces } from "../../platform/telemetry/Traces.ts"
import { Shutdown } from "../system/Shutdown.ts"
import { clientAddress } from "./ClientAddress.ts"
import { makeCors } from "./Cors.ts"
import { makeRequestMetrics, type ResponseSummary } from "./RequestMetrics.ts"
import { requestSpan } from "./RequestTraces.ts"
import { type BareResponse, makeResponseHeaders } from "./ResponseHeaders.ts"

export type Responses = Effect.Success<typeof makeResponses>

export const makeResponses = Effect.gen(function* () {
  const { baseUrl, corsOrigins, trustedProxies } = yield* Settings
  const identifiers = yield* Identifiers
  const shutdown = yield* Shutdown
  const errors = yield* RecentErrors
  const refusals = yield* Refusals
  const count = yield* makeRequestMetrics
  const load = yield* LoadStatistics
  const traces = yield* Traces
  const cors = makeCors(corsOrigins)
  const headersOf = makeResponseHeaders(baseUrl, cors)

  return {
    cors,
    addressOf: clientAddress(trustedProxies),
    /** `source` is the platform's request. */
    contextOf: (requestId: string, clientAddress: string | undefined, source: object): RequestContext => {
      const context: RequestContext = { requestId, clientAddress }
      if (traces === undefined) return context
      const span = requestSpan(source)
      if (span === undefined) return context
      traces.nameRequest(span, requestId)
      context.span = span
      return context
    },
    /** The effect is synchronous. */
    requestId: (headers: RequestHead["headers"]): Effect.Effect<string> => {
      const inbound = inboundRequestId(headers)
      return inbound === undefined ? identifiers.make("request") : Effect.succeed(inbound)
    },
    /** Records a response that is about to be sent, and returns its headers. */
    finish: (
      request: RequestHead,
      response: BareResponse,
      summary: ResponseSummary,
      context: RequestContext,
      nowMillis: number
    ) => {
      count(summary)
      load.requests++
      if (context.span !== undefined) traces?.endRequest(context.span, summary)
      const { actor: _, refused, ...rest } = summary
      if (refused !== undefined) {
        errors.note({ ...rest, refused, request_id: context.requestId, occurred_at: nowMillis })
        refusals.note(context, refused, nowMillis)
      }
      return headersOf(request, response, context, shutdown.underway)
    }
  }
})
