/** The fast path: the same request on both runtime paths of a service, and a server with the fast path over stubs. */

import { createServer, type ServerResponse } from "node:http"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { assert } from "@effect/vitest"
import { Cause, Context, Deferred, Effect, Exit, Layer, Logger } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import * as IntakeLayer from "../../../src/access/requests/Intake.ts"
import { isRefusal } from "../../../src/contract/api/Failure.ts"
import { RequestContext } from "../../../src/contract/api/RequestContext.ts"
import { Intake } from "../../../src/contract/api/Requests.ts"
import * as Listener from "../../../src/edge/listener/Listener.ts"
import { bodyOf, makeFastPath } from "../../../src/edge/requests/FastPath.ts"
import type { ResponseSummary } from "../../../src/edge/responses/RequestMetrics.ts"
import type { Responses } from "../../../src/edge/responses/Responses.ts"
import type { FastOperation, StartedOperation } from "../../../src/licensing/runtime/FastOperation.ts"
import { layerActivities } from "./Activities.ts"
import type { Answer } from "./Http.ts"
import type { issue } from "./IssuedLicenses.ts"
import { TestServer } from "./TestServer.ts"
import { type PublishedKey, verifierOf } from "./Verifier.ts"

export type RuntimePath = "fast" | "framework"
export const runtimePaths = ["fast", "framework"] as const

type Issued = Effect.Success<ReturnType<typeof issue>>
type Headers = { readonly [name: string]: string }

/** Equivalent content types that select the path of a request. */
export const contentTypes = { fast: "application/json", framework: "application/json; charset=utf-8" }

export class RuntimePaths extends Context.Service<
  RuntimePaths,
  {
    /** The paths of the answers since the last call. */
    readonly taken: Effect.Effect<ReadonlyArray<RuntimePath>>
    /** Posts a runtime request by a path, which its content type selects. */
    ask(
      way: RuntimePath,
      licenseKey: string,
      operation: string,
      body: unknown,
      headers?: Headers
    ): Effect.Effect<Answer>
    /** Posts a runtime request and checks that it took this path. */
    asked(
      way: RuntimePath,
      licenseKey: string,
      operation: string,
      body: unknown,
      headers?: Headers
    ): Effect.Effect<Answer>
    /** Makes the node cache the key of a license. */
    remember(license: Issued): Effect.Effect<void>
    /** The answer without times, ids and signatures; checks the signature. */
    faceOf(answer: Answer): Effect.Effect<ComparableAnswer>
  }
>()("licensing/test/RuntimePaths") {
  /** A new node whose workers run only when a test runs them. */
  static layerWith(settings: Parameters<typeof layerActivities>[0] = {}) {
    return RuntimePaths.layer.pipe(Layer.provideMerge(layerActivities(settings)))
  }

  /** On the test's node. */
  static get layer() {
    return make
  }
}

export interface ComparableAnswer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

/** The framework's handler listens for the end of its answers; the fast path does not. */
const watching = Effect.gen(function* () {
  const { putInFront } = yield* Listener.Requests
  const taken: Array<RuntimePath> = []
  putInFront((listener) => (request, response) => {
    const before = response.listenerCount("finish")
    const end = response.end.bind(response) as (...args: ReadonlyArray<unknown>) => typeof response
    response.end = ((...args: ReadonlyArray<unknown>) => {
      taken.push(response.listenerCount("finish") > before ? "framework" : "fast")
      return end(...args)
    }) as typeof response.end
    listener(request, response)
  })
  return taken
})

const make = Layer.effect(
  RuntimePaths,
  Effect.gen(function* () {
    const seen = yield* watching
    const { client, send } = yield* TestServer
    const keys = (yield* client.system.listPublicKeys()).items as ReadonlyArray<PublishedKey>
    const verified = verifierOf(keys)
    const taken = Effect.sync(() => seen.splice(0))

    const ask: RuntimePaths["Service"]["ask"] = (way, licenseKey, operation, body, headers = {}) =>
      send({
        method: "POST",
        path: `/api/v1/license/${operation}`,
        headers: { authorization: `License ${licenseKey}`, "content-type": contentTypes[way], ...headers },
        body
      })
    const asked: RuntimePaths["Service"]["asked"] = (way, licenseKey, operation, body, headers) =>
      Effect.gen(function* () {
        yield* taken
        const answer = yield* ask(way, licenseKey, operation, body, headers)
        assert.deepStrictEqual(yield* taken, [way], `${operation} ${JSON.stringify(body)}: ${answer.text}`)
        return answer
      })
    const faceOf = (answer: Answer) =>
      Effect.sync((): ComparableAnswer => {
        if ("signature" in (answer.json as object)) verified(Buffer.from(answer.bytes))
        return shown(answer)
      })
    const remember = ({ license_key }: Issued) =>
      Effect.asVoid(asked("framework", license_key, "check", { fingerprint: "nobody" }))
    return RuntimePaths.of({ taken, ask, asked, remember, faceOf })
  })
)

const shown = ({ headers, status, text }: Answer): ComparableAnswer => {
  const { date: _, ...others } = headers
  return {
    status,
    headers: Object.fromEntries(Object.entries(others).map(([name, value]) => [name, normalized(String(value), name)])),
    text: normalized(text)
  }
}

export const normalized = (text: string, name = ""): string =>
  (name === "ratelimit" ? text.replaceAll(/t=\d+/g, "t=?") : text)
    .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, "<time>")
    .replaceAll(/"(ciphertext|nonce|salt|value)":"[^"]*"/g, '"$1":"?"')
    .replaceAll(/"retry_after_seconds":\d+/g, '"retry_after_seconds":?')
    .replaceAll(/"product_code":"issued-\d+/g, '"product_code":"issued-?')
    .replaceAll(/\b([a-z]+)_[0-9A-Za-z_-]{16,}/g, "$1_?")

export const operationPath = "/api/v1/license/plain"

/** A valid request id, which the service adopts. */
export const requestId = "a-request-id"

/** The log records, oldest first. */
export const logged: Array<{ level: string; text: string; cause: string; requestId: string }> = []

export const captureLogs = Logger.layer([
  Logger.make(({ cause, fiber, logLevel, message }) => {
    const { requestId } = fiber.getRef(RequestContext)
    logged.push({ level: logLevel, text: JSON.stringify(message), cause: Cause.pretty(cause), requestId })
  })
])

/** An operation that accepts every body and continues with `begun`. */
export const operationStartedWith = (begun: StartedOperation): FastOperation => ({
  admit: () => () => Effect.succeed(begun)
})

let requests = 0

/** Responses that record each summary in `counted`. */
const answersInto = (counted: Array<ResponseSummary>) =>
  ({
    addressOf: (peer: string | undefined) => peer,
    contextOf: (requestId: string, clientAddress: string | undefined): RequestContext => ({ requestId, clientAddress }),
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

/** Answers `framework` and the body that `Intake` has read, or the code of its refusal. */
const generalApplication = Effect.gen(function* () {
  const intake = yield* Intake
  const echo = Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
    Effect.map(IntakeLayer.bytesOf(request), (bytes) => HttpServerResponse.text(`framework ${bytes}`))
  )
  const endpoint = { annotations: Context.empty(), payload: new Map([["application/json", {}]]) }
  return intake(echo as never, { endpoint } as never).pipe(
    Effect.catchCause((cause) => {
      const error = Cause.squash(cause)
      return Effect.succeed(HttpServerResponse.text(`framework ${isRefusal(error) ? error.code : String(error)}`))
    })
  ) as Effect.Effect<HttpServerResponse.HttpServerResponse, never, HttpServerRequest.HttpServerRequest>
})

/** Serves one operation until the scope ends; by default it answers `fast` and the body. */
export const serveFastPath = Effect.fnUntraced(function* (
  operation: FastOperation = {
    admit: () => (body) => Effect.succeed((answer) => answer(Exit.succeed(() => bodyOf(`fast ${body}`))))
  }
) {
  const counted: Array<ResponseSummary> = []
  const opened: Array<string> = []
  const thrown: Array<unknown> = []
  const seen = yield* Deferred.make<void>()
  const scope = yield* Effect.scope
  const application = yield* Effect.provide(generalApplication, IntakeLayer.layer)
  const framework = yield* NodeHttpServer.makeHandler(application, { scope })
  const watched: FastOperation = {
    admit: (head) => {
      opened.push(head.headers["host"] ?? "")
      return operation.admit(head)
    }
  }
  const listener = (yield* makeFastPath(answersInto(counted), new Map([[operationPath, watched]])))(framework)
  const server = createServer({ requireHostHeader: false }, (request, response: ServerResponse) => {
    response.on("close", () => Effect.runSync(Deferred.succeed(seen, undefined)))
    // An exception that escapes here would end the process.
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
    /** The summaries of answers by the fast path. */
    counted,
    /** The requests that the operation has seen. */
    opened,
    /** The exceptions of the listener. */
    thrown,
    /** `cut` closes every connection; `seen` waits until an answer has ended. */
    closed: { cut: () => server.closeAllConnections(), seen: Deferred.await(seen) }
  }
})
