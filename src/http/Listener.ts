/**
 * The HTTP server of the platform with its limits. What is wrong before there is a request, garbage on the socket or a head
 * that never ends, is answered here, in the same envelope.
 */
import { createServer, type RequestListener, type Server, STATUS_CODES } from "node:http"
import type { Duplex } from "node:stream"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Clock, Context, Effect, Layer } from "effect"
import { HttpServer } from "effect/http"
import { errorEnvelope, type Refusal, refuse } from "../api/Failure.ts"
import { Identifiers } from "../api/Identifier.ts"
import { Settings } from "../config/Config.ts"

const limitsDefault = {
  // Request line and headers. A token, a key and a trace need a tenth of it; more only costs memory.
  maxHeaderSize: 16_384,
  // A head that takes longer is sent slowly on purpose.
  headersTimeout: 10_000,
  // The whole request with its body of 256 KiB, over a slow mobile network.
  requestTimeout: 30_000,
  // Longer than the idle time of common load balancers (60 s), which else send a request onto a connection that just closes.
  keepAliveTimeout: 65_000,
  // How late the two timeouts above may be noticed.
  connectionsCheckingInterval: 5_000,
  // Whoever neither sends nor takes anything for so long in the middle of an exchange has gone.
  silenceTimeout: 120_000,
  // Descriptors are finite (often 65,536 for a process); beyond this, connections are refused rather than files and databases.
  connectionsMax: 10_000
}
type Limits = typeof limitsDefault

// Requests in flight get this long to end once the service stops, about as long as the slowest statement that is worth waiting for.
const drainTime = "4 seconds"

/** The requests that come in, before anything is made of them. */
export class Requests extends Context.Service<
  Requests,
  {
    /** Has a listener hear of every request first; it gets the one that heard of them until now. */
    putInFront(listenerBefore: (general: RequestListener) => RequestListener): void
  }
>()("licensing/http/Requests") {}

/** Listens where the settings say, some limits being others than these: a test cannot wait for half a minute. */
export const layerWith = (changed: Partial<Limits>) =>
  Layer.effectContext(Effect.suspend(() => listen({ ...limitsDefault, ...changed })))

/** Listens where the settings say. At the end it waits for requests in flight, then cuts off what is left. */
export const layer = layerWith({})

const listen = Effect.fnUntraced(function* (limits: Limits) {
  const { host, port } = yield* Settings
  // The Host header is checked by us, so that the answer has the envelope.
  const server = createServer({ ...limits, requireHostHeader: false })
  server.maxConnections = limits.connectionsMax
  server.timeout = limits.silenceTimeout
  // An expectation that we do not know can be ignored (RFC 9110, 10.1.1); the platform would answer it without an envelope.
  server.on("checkExpectation", (request, response) => server.emit("request", request, response))
  yield* answerUnreadable(server, limits)
  const listening = yield* NodeHttpServer.make(() => server, { host, port, gracefulShutdownTimeout: drainTime })
  yield* Effect.addFinalizer(() => Effect.sync(() => server.closeAllConnections()))
  return Context.make(HttpServer.HttpServer, listening).pipe(Context.add(Requests, requestsOf(server)))
})

const requestsOf = (server: Server): Requests["Service"] =>
  Requests.of({
    putInFront: (listenerBefore) => {
      const [general] = server.listeners("request") as Array<RequestListener>
      server.off("request", general!).on("request", listenerBefore(general!))
    }
  })

// A socket destroyed at once would reset the connection before the client has read the answer.
const readingMillis = 500

/** Answers what never becomes a request: what cannot be read, and CONNECT, which asks for a tunnel. */
const answerUnreadable = Effect.fnUntraced(function* (server: Server, limits: Limits) {
  const identifiers = yield* Identifiers
  const context = yield* Effect.context<never>()
  const answer = (socket: Duplex, status: 400 | 405, refusal: Refusal): void => {
    const envelope = Effect.flatMap(identifiers.make("request"), (id) =>
      Effect.map(Clock.currentTimeMillis, (now) => ({ id, body: JSON.stringify(errorEnvelope(refusal, id, now)) }))
    )
    const { id, body } = Effect.runSyncWith(context)(envelope)
    socket.end(
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nX-Request-Id: ${id}\r\nContent-Type: application/json\r\n` +
        `Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n${status === 405 ? "Allow: \r\n" : ""}` +
        `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`
    )
    setTimeout(() => socket.destroy(), readingMillis).unref()
  }
  server.on("clientError", (error: NodeJS.ErrnoException, socket: Duplex) => {
    // What comes after the last request of a connection is nobody's (RFC 9112, 9.6); the request itself is still answered.
    if (error.code === "HPE_CLOSED_CONNECTION") return
    if (mayAnswer(socket)) answer(socket, 400, refusalOf(error, limits))
    else socket.destroy(error)
  })
  server.on("connect", (_request, socket) => {
    // Whoever asked may be gone before it is answered.
    socket.on("error", () => socket.destroy())
    answer(socket, 405, noProxy)
  })
})

const noProxy = refuse("METHOD_NOT_ALLOWED", "The service is no proxy: CONNECT leads nowhere.")

/** Not after a reset, and not into the middle of another answer. */
const mayAnswer = (socket: Duplex & { readonly _httpMessage?: { readonly headersSent: boolean } }): boolean =>
  socket.writable && socket._httpMessage?.headersSent !== true

const refusalOf = ({ code }: NodeJS.ErrnoException, limits: Limits) =>
  code === "HPE_HEADER_OVERFLOW"
    ? refuse("BAD_REQUEST", `The request's head is larger than ${limits.maxHeaderSize} bytes.`)
    : code === "ERR_HTTP_REQUEST_TIMEOUT"
      ? refuse("BAD_REQUEST", "The request did not arrive in time.")
      : refuse("BAD_REQUEST", "The request is no well-formed HTTP.")
