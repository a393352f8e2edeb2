/**
 * What holds for every answer, whoever gives it: the request id, the headers, the error envelope, one record in the log. It
 * wraps the router and runs for each request, so it is written to cost little: no layers, no spans, one new set of headers.
 */
import { type Cause, Clock, Context, Effect, Option, type Scope } from "effect"
import { HttpRouter, HttpServerError, HttpServerRequest, HttpServerResponse } from "effect/http"
import { Refusals } from "../activities/Refusals.ts"
import { errorEnvelope, statuses } from "../api/Failure.ts"
import { Identifiers } from "../api/Identifier.ts"
import { RequestContext } from "../api/RequestContext.ts"
import { Settings } from "../Config.ts"
import { RecentErrors } from "../ops/RecentErrors.ts"
import { Shutdown } from "../system/Shutdown.ts"
import { Served } from "../telemetry/Served.ts"
import { recorded } from "./AccessLog.ts"
import { makeHeaders } from "./AnswerHeaders.ts"
import { clientAddress } from "./ClientAddress.ts"
import { makeCors } from "./Cors.ts"
import { type Refused, refusalOf, requestFault } from "./Refusals.ts"
import { type Answered, makeRequestMetrics } from "./RequestMetrics.ts"
import { Routes } from "./Routes.ts"

type Request = HttpServerRequest.HttpServerRequest
type Response = HttpServerResponse.HttpServerResponse
type Application = Effect.Effect<Response, unknown, Request | Scope.Scope>

/** A caller's own X-Request-Id that is taken over. */
const inboundId = /^[A-Za-z0-9_-]{8,64}$/

/** Wraps the application: whatever it does, there is an answer, unless the client has gone. */
export const makeAnswering = Effect.gen(function* () {
  const { baseUrl, corsOrigins, trustedProxies } = yield* Settings
  const identifiers = yield* Identifiers
  const routes = yield* Routes
  const shutdown = yield* Shutdown
  const errors = yield* RecentErrors
  const refusals = yield* Refusals
  const count = yield* makeRequestMetrics
  const served = yield* Served
  const cors = makeCors(corsOrigins)
  const withHeaders = makeHeaders(baseUrl, cors)
  const clientAddressOf = clientAddress(trustedProxies)
  const addressOf = ({ headers, remoteAddress }: Request) =>
    clientAddressOf(Option.getOrUndefined(remoteAddress), headers)

  const answer = (application: Application, request: Request, requestId: string): Application =>
    Clock.clockWith((clock) => {
      const started = clock.monotonicTimeNanosUnsafe()
      const context: RequestContext = { requestId, clientAddress: addressOf(request) }
      // Runs where the router has left the route that it found.
      const finish = (response: Response) =>
        Effect.withFiber<Response>((fiber) => {
          const answered: Answered = {
            method: request.method,
            route: Context.getOrUndefined(fiber.context, HttpRouter.RouteContext)?.route.path,
            status: response.status,
            durationNanos: clock.monotonicTimeNanosUnsafe() - started,
            refused: context.refused,
            actor: context.actor
          }
          count(answered)
          served.requests++
          if (context.refused !== undefined) {
            const { actor: _, ...refused } = answered
            const now = clock.currentTimeMillisUnsafe()
            errors.note({ ...refused, request_id: requestId, occurred_at: now })
            refusals.note(context, context.refused, now)
          }
          return Effect.as(recorded(answered), withHeaders(request, response, context, shutdown.underway))
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
      const preflight = cors.preflight(request)
      const answered =
        fault !== undefined
          ? refuse(fault)
          : preflight !== undefined
            ? finish(preflight)
            : Effect.matchCauseEffect(application, { onSuccess: finish, onFailure: fail })
      return Effect.provideService(answered, RequestContext, context)
    })

  return (application: Application): Application =>
    Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) => {
      const inbound = request.headers["x-request-id"]
      return inbound !== undefined && inboundId.test(inbound)
        ? answer(application, request, inbound)
        : Effect.flatMap(identifiers.make("request"), (id) => answer(application, request, id))
    })
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

/** The one place where a defect is logged; the record's request id is the answer's. */
const told = ({ log, refusal }: Refused, cause: Cause.Cause<unknown>) =>
  log === undefined
    ? Effect.void
    : Effect.withFiber((fiber) => {
        const route = Context.getOrUndefined(fiber.context, HttpRouter.RouteContext)?.route
        const operation = { method: route?.method, route: route?.path }
        return log === "error"
          ? Effect.logError("A request failed.", operation, cause)
          : Effect.logWarning("A request was turned away.", { ...operation, reason: refusal.message })
      })
