/**
 * The direct way to an answer. Operations of which thousands come in a second are answered without a fiber, and without the
 * layers that care for what nearly no request has: half of what a validation cost. Only plain requests go this way; all others,
 * and all that this way finds something wrong with before it has counted anything, go the general way (`Answering`).
 *
 * What must stay true: by its answer nobody can tell which way a request went.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http"
import { Cause, Clock, Effect, Exit, FiberSet, LogLevel, Option, Result, Tracer } from "effect"
import { statuses } from "../api/ErrorCode.ts"
import { errorEnvelope, type Refusal } from "../api/Failure.ts"
import { RequestContext } from "../api/RequestContext.ts"
import type { RequestHead } from "../api/RequestHead.ts"
import { bodyBytesMax } from "../api/Requests.ts"
import { leaveBody, onBody } from "./Intake.ts"
import { refusalOf, tellOf } from "./Refusals.ts"
import type { Responses } from "./Responses.ts"

/** An answer's JSON and how many bytes it has in UTF-8: counting those of a long text that is in pieces yet would copy it once more. */
export interface Body {
  readonly text: string
  readonly bytes: number
}

export const bodyOf = (text: string): Body => ({ text, bytes: Buffer.byteLength(text) })

/** What is answered: a 200, whose JSON is made when it is sent, or a refusal. What is no `Exit` is run first. */
export type Outcome = Effect.Effect<() => Body, Refusal>

/** Works on a request; calls back once. */
export type StartedOperation = (answer: (outcome: Outcome) => void) => void

/**
 * Looks at a body. Waits for nothing, and fails, before it has counted anything, where the general way has to look at it: with what
 * does not matter.
 */
export type AdmittedRequest = (body: Buffer, context: RequestContext) => Effect.Effect<StartedOperation, unknown>

/** An operation with a path of its own and a body. */
export interface FastOperation {
  /** Looks at who asks; undefined where the general way has to. */
  readonly open: (head: RequestHead) => AdmittedRequest | undefined
}

/**
 * Puts a listener in front of the general one that answers what it can and leaves it the rest. `operations` are those of POST, by
 * their path. Whoever serves makes it before the server, so that it lasts until the last request is answered.
 */
export const makeFastPath = Effect.fnUntraced(function* (
  answers: Responses,
  operations: ReadonlyMap<string, FastOperation>
) {
  const clock = yield* Clock.Clock
  const context = yield* Effect.context<never>()
  const runSync = Effect.runSyncWith(context)
  const runSyncExit = Effect.runSyncExitWith(context)
  const fork = yield* FiberSet.makeRuntime<never>()
  /** Runs what waits for nothing; most of it is settled already. */
  const settle = <A, E>(effect: Effect.Effect<A, E>): Exit.Exit<A, E> => settled(effect) ?? runSyncExit(effect)

  const respond = (exchange: Exchange, status: number, { bytes, text }: Body): void => {
    const { about, head, response, route, started } = exchange
    const durationNanos = clock.monotonicTimeNanosUnsafe() - started
    const answered = { method: "POST", route, status, durationNanos, refused: about.refused, actor: undefined }
    const own = { "content-type": "application/json", "content-length": String(bytes) }
    const now = clock.currentTimeMillisUnsafe()
    response.writeHead(status, answers.finish(head, { status, headers: own }, answered, about, now))
    // Head and body leave in one write. A text with one byte for each character needs no encoding.
    response.end(text, bytes === text.length ? "latin1" : "utf8")
  }

  const refuse = (exchange: Exchange, refusal: Refusal): void => {
    const { about } = exchange
    about.refused = refusal.code
    const envelope = errorEnvelope(refusal, about.requestId, clock.currentTimeMillisUnsafe())
    respond(exchange, statuses[refusal.code], bodyOf(JSON.stringify(envelope)))
  }

  const fail = (exchange: Exchange, cause: Cause.Cause<unknown>): void => {
    const { about, response, route } = exchange
    const refused = refusalOf(cause, () => [])
    fork(Effect.provideService(tellOf(refused, cause, { method: "POST", route }), RequestContext, about))
    if (!response.headersSent) refuse(exchange, refused.refusal)
  }

  /** Whatever is thrown is this request's failure alone: others may have been committed together with it. */
  const guarded = (exchange: Exchange, run: () => void): void => {
    const done = Result.try({ try: run, catch: Cause.die })
    if (Result.isFailure(done)) fail(exchange, done.failure)
  }

  const answer = (exchange: Exchange, outcome: Outcome): void => {
    const exit = settled(outcome)
    if (exit === undefined) {
      fork(outcome).addObserver((exit) => guarded(exchange, () => answer(exchange, exit)))
      return
    }
    // The client has gone.
    if (exchange.response.destroyed) return
    if (Exit.isSuccess(exit)) respond(exchange, 200, exit.value())
    else {
      const refusal = Cause.findErrorOption(exit.cause)
      if (Option.isSome(refusal)) refuse(exchange, refusal.value)
      else fail(exchange, exit.cause)
    }
  }

  const begin = (request: IncomingMessage, response: ServerResponse, head: RequestHead, started: bigint): Exchange => {
    const requestId = runSync(answers.requestId(head.headers))
    const clientAddress = answers.addressOf(request.socket.remoteAddress, head.headers)
    return { response, head, route: head.url, started, about: { requestId, clientAddress } }
  }

  const listenerBefore =
    (general: RequestListener): RequestListener =>
    (request, response) => {
      const { headers, url = "" } = request
      const operation = isPlain(request) ? operations.get(url) : undefined
      if (operation === undefined) return general(request, response)
      const started = clock.monotonicTimeNanosUnsafe()
      const head: RequestHead = { method: "POST", url, headers: headers as RequestHead["headers"], source: request }
      const looked = Result.try({ try: () => operation.open(head), catch: Cause.die })
      if (Result.isFailure(looked)) return fail(begin(request, response, head, started), looked.failure)
      const opened = looked.success
      if (opened === undefined) return general(request, response)
      const read = (body: Buffer): void => {
        const exchange = begin(request, response, head, started)
        guarded(exchange, () => {
          const begun = settle(opened(body, exchange.about))
          if (Exit.isSuccess(begun)) begun.value((outcome) => guarded(exchange, () => answer(exchange, outcome)))
          else {
            leaveBody(request, body)
            general(request, response)
          }
        })
      }
      onBody(request, read, () => {})
    }

  const isGeneral = yield* isWatched
  return (general: RequestListener): RequestListener => (isGeneral ? general : listenerBefore(general))
})

/** A request on its way, and what is known of it. */
interface Exchange {
  readonly response: ServerResponse
  readonly head: RequestHead
  readonly route: string
  readonly started: bigint
  readonly about: RequestContext
}

const settled = <A, E>(effect: Effect.Effect<A, E>): Exit.Exit<A, E> | undefined =>
  Exit.isExit(effect) ? (effect as Exit.Exit<A, E>) : undefined

/** Has what every request of these operations has, and nothing that asks for more. */
const isPlain = ({ headers, method }: IncomingMessage): boolean =>
  method === "POST" &&
  headers.host !== undefined &&
  headers["content-type"] === "application/json" &&
  Number(headers["content-length"]) <= bodyBytesMax &&
  headers["content-encoding"] === undefined &&
  headers.expect === undefined &&
  headers["idempotency-key"] === undefined

/** Spans and records of single requests are made by the general way. */
const isWatched = Effect.withFiber<boolean>((fiber) => {
  const tracer = fiber.getRef(Tracer.Tracer)
  const isDebugging = !LogLevel.isGreaterThan(fiber.cache.minimumLogLevel, "Debug")
  return Effect.succeed(tracer !== Tracer.nativeTracer || isDebugging)
})
