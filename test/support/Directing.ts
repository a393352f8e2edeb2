/** A server on which the direct way stands before a general one that tells what it was asked, both over stubs. */
import { createServer, type ServerResponse } from "node:http"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Cause, Deferred, Effect, Exit, Logger } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { isRefusal } from "../../src/api/Failure.ts"
import { RequestContext } from "../../src/api/RequestContext.ts"
import { Intake } from "../../src/api/Requests.ts"
import { bodyOf, type FastOperation, makeFastPath, type StartedOperation } from "../../src/http/FastPath.ts"
import * as IntakeLayer from "../../src/http/Intake.ts"
import type { ResponseSummary } from "../../src/http/RequestMetrics.ts"
import type { Responses } from "../../src/http/Responses.ts"

export const path = "/api/v1/license/plain"

/** One that is taken over. */
export const requestId = "a-request-id"

/** Records in the log, the last one last. */
export const told: Array<{ level: string; text: string; cause: string; requestId: string }> = []

export const capturing = Logger.layer([
  Logger.make(({ cause, fiber, logLevel, message }) => {
    const { requestId } = fiber.getRef(RequestContext)
    told.push({ level: logLevel, text: JSON.stringify(message), cause: Cause.pretty(cause), requestId })
  })
])

/** An operation that takes every body and goes on like this. */
export const answering = (begun: StartedOperation): FastOperation => ({ admit: () => () => Effect.succeed(begun) })

let requests = 0

/** Answers whose every answer is kept in `counted`. */
const answersInto = (counted: Array<ResponseSummary>) =>
  ({
    addressOf: (peer: string | undefined) => peer,
    requestId: ({ "x-request-id": inbound }: { readonly "x-request-id"?: string }) =>
      Effect.succeed(inbound ?? `request-${++requests}`),
    finish: (
      _: unknown,
      { headers }: { readonly headers: Record<string, string> },
      answered: ResponseSummary,
      about: RequestContext
    ) => {
      counted.push(answered)
      return {
        ...headers,
        "x-request-id": about.requestId,
        "cache-control": "no-store",
        "x-content-type-options": "nosniff"
      }
    }
  }) as unknown as Responses

/** Says `general` and the body as `Intake` has it, or why that has refused it. */
const generalApplication = Effect.gen(function* () {
  const intake = yield* Intake
  const echo = Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
    Effect.map(IntakeLayer.bytesOf(request), (bytes) => HttpServerResponse.text(`general ${bytes}`))
  )
  const endpoint = { payload: new Map([["application/json", {}]]) }
  return intake(echo as never, { endpoint } as never).pipe(
    Effect.catchCause((cause) => {
      const error = Cause.squash(cause)
      return Effect.succeed(HttpServerResponse.text(`general ${isRefusal(error) ? error.code : String(error)}`))
    })
  ) as Effect.Effect<HttpServerResponse.HttpServerResponse, never, HttpServerRequest.HttpServerRequest>
})

/** Serves one operation, by default one that says `direct` and the body. Lives as long as the scope. */
export const serving = Effect.fnUntraced(function* (
  operation: FastOperation = {
    admit: () => (body) => Effect.succeed((answer) => answer(Exit.succeed(() => bodyOf(`direct ${body}`))))
  }
) {
  const counted: Array<ResponseSummary> = []
  const opened: Array<string> = []
  const thrown: Array<unknown> = []
  const seen = yield* Deferred.make<void>()
  const scope = yield* Effect.scope
  const application = yield* Effect.provide(generalApplication, IntakeLayer.layer)
  const general = yield* NodeHttpServer.makeHandler(application, { scope })
  const watched: FastOperation = {
    admit: (head) => {
      opened.push(head.headers["host"] ?? "")
      return operation.admit(head)
    }
  }
  const listener = (yield* makeFastPath(answersInto(counted), new Map([[path, watched]])))(general)
  const server = createServer({ requireHostHeader: false }, (request, response: ServerResponse) => {
    response.on("close", () => Effect.runSync(Deferred.succeed(seen, undefined)))
    // What escapes here would end the process.
    try {
      listener(request, response)
    } catch (error) {
      thrown.push(error)
      response.destroy()
    }
  })
  server.on("checkExpectation", (request, response) => server.emit("request", request, response))
  yield* Effect.acquireRelease(
    Effect.callback<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void))),
    () =>
      Effect.sync(() => {
        server.close()
        server.closeAllConnections()
      })
  )
  return {
    port: (server.address() as { readonly port: number }).port,
    /** What was counted as answered on the direct way. */
    counted,
    /** Requests that the operation was asked about. */
    opened,
    /** What the listener has thrown. */
    thrown,
    /** Cuts every connection off; `seen` waits until an answer's end was seen. */
    closed: { cut: () => server.closeAllConnections(), seen: Deferred.await(seen) }
  }
})
