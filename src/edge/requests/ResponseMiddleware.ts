/**
 * The framework path's outermost middleware. It gives every response its request id, its headers, the error envelope and one
 * log record. It runs for each request, so it is written to cost little: no layers, no spans, one new set of headers.
 */
import { type Cause, Clock, Context, Effect, Option, type Scope } from "effect"
import { HttpRouter, HttpServerError, HttpServerRequest, HttpServerResponse } from "effect/http"
import { statuses } from "../../contract/api/ErrorCode.ts"
import { errorEnvelope } from "../../contract/api/Failure.ts"
import { RequestContext } from "../../contract/api/RequestContext.ts"
import { logResponse, logTurnedAway } from "../responses/AccessLog.ts"
import type { ResponseSummary } from "../responses/RequestMetrics.ts"
import type { Responses } from "../responses/Responses.ts"
import { Routes } from "./Routes.ts"
import { logRefused, noteUnhandled, type Refused, refusalOf, requestFault } from "./UnhandledRequests.ts"

type Request = HttpServerRequest.HttpServerRequest
type Response = HttpServerResponse.HttpServerResponse
type Application = Effect.Effect<Response, unknown, Request | Scope.Scope>

/** Wraps the application: every request gets a response, even after a defect, unless the client has disconnected. */
export const makeResponseMiddleware = Effect.fnUntraced(function* (responses: Responses) {
  const routes = yield* Routes

  const respond = (application: Application, request: Request, requestId: string): Application =>
    Clock.clockWith((clock) => {
      const started = clock.monotonicTimeNanosUnsafe()
      const peer = Option.getOrUndefined(request.remoteAddress)
      const clientAddress = responses.addressOf(peer, request.headers)
      const context = responses.contextOf(requestId, clientAddress, request.source)
      // Runs where the fiber's context has the route that the router found.
      const finish = (response: Response) =>
        Effect.withFiber<Response>((fiber) => {
          const summary: ResponseSummary = {
            method: request.method,
            route: Context.getOrUndefined(fiber.context, HttpRouter.RouteContext)?.route.path,
            status: response.status,
            durationNanos: clock.monotonicTimeNanosUnsafe() - started,
            refused: context.refused,
            actor: context.actor
          }
          const headers = responses.finish(request, response, summary, context, clock.currentTimeMillisUnsafe())
          const logged = Effect.andThen(logTurnedAway(summary, context), logResponse(summary))
          return Effect.as(logged, HttpServerResponse.setHeaders(response, headers))
        })
      const refuse = (refused: Refused) => {
        noteUnhandled(context, refused)
        return finish(refusalResponse(refused, requestId, clock.currentTimeMillisUnsafe()))
      }
      const fail = (cause: Cause.Cause<unknown>) => {
        if (isClientAbort(cause)) return Effect.failCause(cause)
        const { method, url } = request
        const refused = refusalOf(cause, () => ({
          method,
          methods: routes.methodsOf(url),
          similar: routes.similarTo(method, url)
        }))
        return Effect.andThen(logWithRoute(refused, cause), refuse(refused))
      }
      const fault = requestFault(request)
      const preflight = responses.cors.preflight(request)
      const response =
        fault !== undefined
          ? refuse(fault)
          : preflight !== undefined
            ? finish(preflight)
            : Effect.matchCauseEffect(application, { onSuccess: finish, onFailure: fail })
      const inContext = Effect.provideService(response, RequestContext, context)
      return context.span === undefined ? inContext : Effect.withParentSpan(inContext, context.span)
    })

  return (application: Application): Application =>
    Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
      Effect.flatMap(responses.requestId(request.headers), (id) => respond(application, request, id))
    )
})

const refusalResponse = ({ refusal, headers }: Refused, requestId: string, nowMillis: number): Response =>
  HttpServerResponse.text(JSON.stringify(errorEnvelope(refusal, requestId, nowMillis)), {
    status: statuses[refusal.code],
    contentType: "application/json",
    ...(headers === undefined ? undefined : { headers })
  })

const isClientAbort = (cause: Cause.Cause<unknown>): boolean =>
  cause.reasons.some(
    ({ _tag, annotations }) => _tag === "Interrupt" && annotations.has(HttpServerError.ClientAbort.key)
  )

const logWithRoute = (refused: Refused, cause: Cause.Cause<unknown>) =>
  Effect.withFiber((fiber) => {
    const route = Context.getOrUndefined(fiber.context, HttpRouter.RouteContext)?.route
    return logRefused(refused, cause, { method: route?.method, route: route?.path })
  })
