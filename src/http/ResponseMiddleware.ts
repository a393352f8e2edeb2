/**
 * What holds for every answer, whoever gives it: the request id, the headers, the error envelope, one record in the log. It
 * wraps the router and runs for each request, so it is written to cost little: no layers, no spans, one new set of headers.
 */
import { type Cause, Clock, Context, Effect, Option, type Scope } from "effect"
import { HttpRouter, HttpServerError, HttpServerRequest, HttpServerResponse } from "effect/http"
import { statuses } from "../api/ErrorCode.ts"
import { errorEnvelope } from "../api/Failure.ts"
import { RequestContext } from "../api/RequestContext.ts"
import { recorded } from "./AccessLog.ts"
import { type Refused, refusalOf, requestFault, tellOf } from "./Refusals.ts"
import type { ResponseSummary } from "./RequestMetrics.ts"
import type { Responses } from "./Responses.ts"
import { Routes } from "./Routes.ts"

type Request = HttpServerRequest.HttpServerRequest
type Response = HttpServerResponse.HttpServerResponse
type Application = Effect.Effect<Response, unknown, Request | Scope.Scope>

/** Wraps the application: whatever it does, there is an answer, unless the client has gone. */
export const makeResponseMiddleware = Effect.fnUntraced(function* (answers: Responses) {
  const routes = yield* Routes

  const answer = (application: Application, request: Request, requestId: string): Application =>
    Clock.clockWith((clock) => {
      const started = clock.monotonicTimeNanosUnsafe()
      const peer = Option.getOrUndefined(request.remoteAddress)
      const context: RequestContext = { requestId, clientAddress: answers.addressOf(peer, request.headers) }
      // Runs where the router has left the route that it found.
      const finish = (response: Response) =>
        Effect.withFiber<Response>((fiber) => {
          const answered: ResponseSummary = {
            method: request.method,
            route: Context.getOrUndefined(fiber.context, HttpRouter.RouteContext)?.route.path,
            status: response.status,
            durationNanos: clock.monotonicTimeNanosUnsafe() - started,
            refused: context.refused,
            actor: context.actor
          }
          const headers = answers.finish(request, response, answered, context, clock.currentTimeMillisUnsafe())
          return Effect.as(recorded(answered), HttpServerResponse.setHeaders(response, headers))
        })
      const refuse = (refused: Refused) => {
        context.refused = refused.refusal.code
        return finish(refusalResponse(refused, requestId, clock.currentTimeMillisUnsafe()))
      }
      const fail = (cause: Cause.Cause<unknown>) => {
        if (hasClientGone(cause)) return Effect.failCause(cause)
        const refused = refusalOf(cause, () => routes.methodsOf(request.url))
        return Effect.andThen(told(refused, cause), refuse(refused))
      }
      const fault = requestFault(request)
      const preflight = answers.cors.preflight(request)
      const answered =
        fault !== undefined
          ? refuse(fault)
          : preflight !== undefined
            ? finish(preflight)
            : Effect.matchCauseEffect(application, { onSuccess: finish, onFailure: fail })
      return Effect.provideService(answered, RequestContext, context)
    })

  return (application: Application): Application =>
    Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
      Effect.flatMap(answers.requestId(request.headers), (id) => answer(application, request, id))
    )
})

const refusalResponse = ({ refusal, headers }: Refused, requestId: string, nowMillis: number): Response =>
  HttpServerResponse.text(JSON.stringify(errorEnvelope(refusal, requestId, nowMillis)), {
    status: statuses[refusal.code],
    contentType: "application/json",
    ...(headers === undefined ? undefined : { headers })
  })

const hasClientGone = (cause: Cause.Cause<unknown>): boolean =>
  cause.reasons.some(
    ({ _tag, annotations }) => _tag === "Interrupt" && annotations.has(HttpServerError.ClientAbort.key)
  )

const told = (refused: Refused, cause: Cause.Cause<unknown>) =>
  Effect.withFiber((fiber) => {
    const route = Context.getOrUndefined(fiber.context, HttpRouter.RouteContext)?.route
    return tellOf(refused, cause, { method: route?.method, route: route?.path })
  })
