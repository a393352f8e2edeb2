/** The fast path: the same request on both runtime paths of a service, and a server with the fast path over stubs. */

import { createServer, type ServerResponse } from "node:http"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { assert } from "@effect/vitest"
import { Cause, Context, Deferred, Effect, Exit, Layer, Logger } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { type PublishedKey, verifierOf } from "../../infra/scripts/verify.ts"
import { isRefusal } from "../../src/api/Failure.ts"
import { RequestContext } from "../../src/api/RequestContext.ts"
import { Intake } from "../../src/api/Requests.ts"
import { bodyOf, type FastOperation, makeFastPath, type StartedOperation } from "../../src/http/FastPath.ts"
import * as IntakeLayer from "../../src/http/Intake.ts"
import * as Listener from "../../src/http/Listener.ts"
import type { ResponseSummary } from "../../src/http/RequestMetrics.ts"
import type { Responses } from "../../src/http/Responses.ts"
import { layerActivities } from "./Activities.ts"
import type { Answer } from "./Http.ts"
import type { issue } from "./IssuedLicenses.ts"
import { TestServer } from "./TestServer.ts"

export type RuntimePath = "direct" | "general"
export const runtimePaths = ["direct", "general"] as const

type Issued = Effect.Success<ReturnType<typeof issue>>
type Headers = { readonly [name: string]: string }

/** What sends a request the general way and means nothing else. */
export const contentTypes = { direct: "application/json", general: "application/json; charset=utf-8" }

export class RuntimePaths extends Context.Service<
  RuntimePaths,
  {
    /** The runtimePaths that the answers have come since the last time that somebody asked. */
    readonly taken: Effect.Effect<ReadonlyArray<RuntimePath>>
    /** Posts a runtime request that could go the direct way; on the general one it says so in its content type. */
    ask(
      way: RuntimePath,
      licenseKey: string,
      operation: string,
      body: unknown,
      headers?: Headers
    ): Effect.Effect<Answer>
    /** The same, and makes certain that it went that way. */
    asked(
      way: RuntimePath,
      licenseKey: string,
      operation: string,
      body: unknown,
      headers?: Headers
    ): Effect.Effect<Answer>
    /** Has the node remember the key of a license. */
    remember(license: Issued): Effect.Effect<void>
    /** What an answer shows apart from times, ids and signatures; a signature has to hold. */
    faceOf(answer: Answer): Effect.Effect<ComparableAnswer>
  }
>()("licensing/test/BothWays") {
  /** A node of its own whose workers run when a test says so. */
  static layerWith(settings: Parameters<typeof layerActivities>[0] = {}) {
    return RuntimePaths.layer.pipe(Layer.provideMerge(layerActivities(settings)))
  }

  /** On the node at hand. */
  static get layer() {
    return make
  }
}

export interface ComparableAnswer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

/** The platform's handler listens to the end of an answer that it gives; the direct way has no use for that. */
const watching = Effect.gen(function* () {
  const { putInFront } = yield* Listener.Requests
  const taken: Array<RuntimePath> = []
  putInFront((listener) => (request, response) => {
    const before = response.listenerCount("finish")
    const end = response.end.bind(response) as (...args: ReadonlyArray<unknown>) => typeof response
    response.end = ((...args: ReadonlyArray<unknown>) => {
      taken.push(response.listenerCount("finish") > before ? "general" : "direct")
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
        if (answer.status === 200) verified(Buffer.from(answer.bytes))
        return shown(answer)
      })
    const remember = ({ license_key }: Issued) =>
      Effect.asVoid(asked("general", license_key, "check", { fingerprint: "nobody" }))
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
    .replaceAll(/\b([a-z]+)_[0-9A-Za-z_-]{16,}/g, "$1_?")

export const operationPath = "/api/v1/license/plain"

/** One that is taken over. */
export const requestId = "a-request-id"

/** Records in the log, the last one last. */
export const logged: Array<{ level: string; text: string; cause: string; requestId: string }> = []

export const captureLogs = Logger.layer([
  Logger.make(({ cause, fiber, logLevel, message }) => {
    const { requestId } = fiber.getRef(RequestContext)
    logged.push({ level: logLevel, text: JSON.stringify(message), cause: Cause.pretty(cause), requestId })
  })
])

/** An operation that takes every body and goes on like this. */
export const operationStartedWith = (begun: StartedOperation): FastOperation => ({
  open: () => () => Effect.succeed(begun)
})

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
export const serveFastPath = Effect.fnUntraced(function* (
  operation: FastOperation = {
    open: () => (body) => Effect.succeed((answer) => answer(Exit.succeed(() => bodyOf(`direct ${body}`))))
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
    open: (head) => {
      opened.push(head.headers["host"] ?? "")
      return operation.open(head)
    }
  }
  const listener = (yield* makeFastPath(answersInto(counted), new Map([[operationPath, watched]])))(general)
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
