/**
 * The fast path. It handles plain requests of operations with thousands of requests a second, without a fiber and without the
 * layers for features that nearly no request uses; these were half of the cost of a validation. The framework path
 * (`ResponseMiddleware`) handles all other requests, and those that the fast path declines before it has counted anything.
 *
 * What must stay true: a response is the same on both paths.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http"
import { Cause, Clock, Effect, Exit, FiberSet, LogLevel, Option, Result } from "effect"
import { cacheBody, onBody } from "../../access/requests/Intake.ts"
import { statuses } from "../../contract/api/ErrorCode.ts"
import { errorEnvelope, noteRefused } from "../../contract/api/Failure.ts"
import { RequestContext } from "../../contract/api/RequestContext.ts"
import type { RequestHead } from "../../contract/api/RequestHead.ts"
import type { Body, FastOperation, Outcome } from "../../licensing/runtime/FastOperation.ts"
import { logTurnedAway } from "../responses/AccessLog.ts"
import type { Responses } from "../responses/Responses.ts"
import { hasHostTwice, logRefused, noteUnhandled, type Refused, refusalOf } from "./UnhandledRequests.ts"

export const bodyOf = (text: string): Body => ({ text, bytes: Buffer.byteLength(text) })

/**
 * Makes a function that puts the fast path in front of the framework's listener. `operations` are those of POST, by path.
 * Make it before the server, so that its fibers live until the last request has its response.
 */
export const makeFastPath = Effect.fnUntraced(function* (
  responses: Responses,
  operations: ReadonlyMap<string, FastOperation>
) {
  const clock = yield* Clock.Clock
  const services = yield* Effect.context<never>()
  const runSync = Effect.runSyncWith(services)
  const runSyncExit = Effect.runSyncExitWith(services)
  const fork = yield* FiberSet.makeRuntime<never>()
  /** Runs a synchronous effect; most are exits already. */
  const runNow = <A, E>(effect: Effect.Effect<A, E>): Exit.Exit<A, E> => exitOf(effect) ?? runSyncExit(effect)

  const send = (exchange: Exchange, status: number, { bytes, text }: Body): void => {
    const { context, head, response, route, startedNanos } = exchange
    const durationNanos = clock.monotonicTimeNanosUnsafe() - startedNanos
    const summary = { method: "POST", route, status, durationNanos, refused: context.refused, actor: undefined }
    const headers = { "content-type": "application/json", "content-length": String(bytes) }
    const now = clock.currentTimeMillisUnsafe()
    response.writeHead(status, responses.finish(head, { status, headers }, summary, context, now))
    // Head and body leave in one write. A text with one byte per character needs no encoding.
    response.end(text, bytes === text.length ? "latin1" : "utf8")
    if (context.unavailable !== undefined)
      fork(Effect.provideService(logTurnedAway(summary, context), RequestContext, context))
  }

  const answer = (exchange: Exchange, body: Body): void => {
    const { refused } = body
    if (refused !== undefined) noteRefused(exchange.context, refused)
    send(exchange, refused === undefined ? 200 : statuses[refused.code], body)
  }

  const refuse = (exchange: Exchange, refused: Refused): void => {
    const { context } = exchange
    const { refusal } = refused
    noteUnhandled(context, refused)
    const envelope = errorEnvelope(refusal, context.requestId, clock.currentTimeMillisUnsafe())
    send(exchange, statuses[refusal.code], bodyOf(JSON.stringify(envelope)))
  }

  const fail = (exchange: Exchange, cause: Cause.Cause<unknown>): void => {
    const { context, response, route } = exchange
    const refused = refusalOf(cause)
    fork(Effect.provideService(logRefused(refused, cause, { method: "POST", route }), RequestContext, context))
    if (!response.headersSent) refuse(exchange, refused)
  }

  /** An exception fails this request only: other commands may have been committed together with it. */
  const guarded = (exchange: Exchange, run: () => void): void => {
    const done = Result.try({ try: run, catch: Cause.die })
    if (Result.isFailure(done)) fail(exchange, done.failure)
  }

  const respond = (exchange: Exchange, outcome: Outcome): void => {
    const exit = exitOf(outcome)
    if (exit === undefined) {
      fork(outcome).addObserver((exit) => guarded(exchange, () => respond(exchange, exit)))
      return
    }
    // The client has disconnected.
    if (exchange.response.destroyed) return
    if (Exit.isSuccess(exit)) answer(exchange, exit.value())
    else {
      const refusal = Cause.findErrorOption(exit.cause)
      if (Option.isSome(refusal)) refuse(exchange, { refusal: refusal.value })
      else fail(exchange, exit.cause)
    }
  }

  const begin = (
    request: IncomingMessage,
    response: ServerResponse,
    head: RequestHead,
    startedNanos: bigint
  ): Exchange => {
    const requestId = runSync(responses.requestId(head.headers))
    const clientAddress = responses.addressOf(request.socket.remoteAddress, head.headers)
    const context = responses.contextOf(requestId, clientAddress, request)
    return { response, head, route: head.url, startedNanos, context }
  }

  const listenerBefore =
    (framework: RequestListener): RequestListener =>
    (request, response) => {
      const { headers, url = "" } = request
      const operation = isPlain(request) ? operations.get(url) : undefined
      if (operation === undefined) return framework(request, response)
      const startedNanos = clock.monotonicTimeNanosUnsafe()
      const head: RequestHead = { method: "POST", url, headers: headers as RequestHead["headers"], source: request }
      const admission = Result.try({ try: () => operation.admit(head), catch: Cause.die })
      if (Result.isFailure(admission)) return fail(begin(request, response, head, startedNanos), admission.failure)
      const admitted = admission.success
      if (admitted === undefined) return framework(request, response)
      const onRead = (body: Buffer): void => {
        const exchange = begin(request, response, head, startedNanos)
        guarded(exchange, () => {
          const started = runNow(admitted(body, exchange.context))
          if (Exit.isSuccess(started)) started.value((outcome) => guarded(exchange, () => respond(exchange, outcome)))
          else {
            cacheBody(request, body)
            framework(request, response)
          }
        })
      }
      onBody(request, onRead)
    }

  const isDisabled = yield* isDebugging
  return (framework: RequestListener): RequestListener => (isDisabled ? framework : listenerBefore(framework))
})

/** A request in progress. */
interface Exchange {
  readonly response: ServerResponse
  readonly head: RequestHead
  readonly route: string
  readonly startedNanos: bigint
  readonly context: RequestContext
}

const exitOf = <A, E>(effect: Effect.Effect<A, E>): Exit.Exit<A, E> | undefined =>
  Exit.isExit(effect) ? (effect as Exit.Exit<A, E>) : undefined

/** The longest valid bodies, every character escaped, are below it. A larger one, which is refused, is read on one path only. */
const fastBytesMax = 32_768

/** Whether the request has the usual headers of these operations, and none that needs special handling. */
const isPlain = ({ headers, method, rawHeaders }: IncomingMessage): boolean =>
  method === "POST" &&
  headers.host !== undefined &&
  !hasHostTwice(rawHeaders) &&
  headers["content-type"] === "application/json" &&
  Number(headers["content-length"]) <= fastBytesMax &&
  headers["content-encoding"] === undefined &&
  headers.expect === undefined

/** Only the framework path makes log records of single requests. */
const isDebugging = Effect.withFiber<boolean>((fiber) =>
  Effect.succeed(!LogLevel.isGreaterThan(fiber.cache.minimumLogLevel, "Debug"))
)
