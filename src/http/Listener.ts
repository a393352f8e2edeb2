/**
 * The platform's HTTP server with its limits. Input that never becomes a request, such as malformed HTTP or a head that
 * never ends, is refused here, in the same envelope.
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
  // A head that takes longer is sent slowly on purpose (a slow-loris attack).
  headersTimeout: 10_000,
  // The whole request with its body of 256 KiB, over a slow mobile network.
  requestTimeout: 30_000,
  // Longer than the idle time of common load balancers (60 s); otherwise they send a request on a connection that is closing.
  keepAliveTimeout: 65_000,
  // The longest delay until Node detects that a head or a request has timed out.
  connectionsCheckingInterval: 5_000,
  // A client that neither sends nor receives for this long during an exchange has disconnected.
  silenceTimeout: 120_000,
  // Descriptors are finite (often 65,536 for a process); beyond this, connections are refused rather than files and databases.
  connectionsMax: 10_000
}
type Limits = typeof limitsDefault

// How long a stopping service waits for requests in flight: about as long as the slowest statement that is worth waiting for.
const drainTime = "4 seconds"

/** Access to incoming requests before the framework handles them. */
export class Requests extends Context.Service<
  Requests,
  {
    /** Replaces the server's listener with one that wraps it. */
    putInFront(listenerBefore: (framework: RequestListener) => RequestListener): void
  }
>()("licensing/http/Requests") {}

/** Listens at the configured address, with some limits overridden: a test cannot wait for half a minute. */
export const layerWith = (overrides: Partial<Limits>) =>
  Layer.effectContext(Effect.suspend(() => listen({ ...limitsDefault, ...overrides })))

/** Listens at the configured address. On shutdown it waits for requests in flight, then closes the remaining connections. */
export const layer = layerWith({})

const listen = Effect.fnUntraced(function* (limits: Limits) {
  const { host, port } = yield* Settings
  // `requestFault` checks the Host header, so that the response has the envelope.
  const server = createServer({ ...limits, requireHostHeader: false })
  server.maxConnections = limits.connectionsMax
  server.timeout = limits.silenceTimeout
  // An unknown expectation can be ignored (RFC 9110, 10.1.1); Node would refuse it without an envelope.
  server.on("checkExpectation", (request, response) => server.emit("request", request, response))
  yield* refuseUnreadable(server, limits)
  const listening = yield* NodeHttpServer.make(() => server, { host, port, gracefulShutdownTimeout: drainTime })
  yield* Effect.addFinalizer(() => Effect.sync(() => server.closeAllConnections()))
  return Context.make(HttpServer.HttpServer, listening).pipe(Context.add(Requests, requestsOf(server)))
})

const requestsOf = (server: Server): Requests["Service"] =>
  Requests.of({
    putInFront: (listenerBefore) => {
      const [framework] = server.listeners("request") as Array<RequestListener>
      server.off("request", framework!).on("request", listenerBefore(framework!))
    }
  })

// A socket destroyed at once would reset the connection before the client has read the response.
const destroyDelayMillis = 500

/** Refuses input that never becomes a request: malformed HTTP, and CONNECT, which asks for a tunnel. */
const refuseUnreadable = Effect.fnUntraced(function* (server: Server, limits: Limits) {
  const identifiers = yield* Identifiers
  const context = yield* Effect.context<never>()
  const respond = (socket: Duplex, status: 400 | 405, refusal: Refusal): void => {
    const envelope = Effect.flatMap(identifiers.make("request"), (id) =>
      Effect.map(Clock.currentTimeMillis, (now) => ({ id, body: JSON.stringify(errorEnvelope(refusal, id, now)) }))
    )
    const { id, body } = Effect.runSyncWith(context)(envelope)
    socket.end(
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nX-Request-Id: ${id}\r\nContent-Type: application/json\r\n` +
        `Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n${status === 405 ? "Allow: \r\n" : ""}` +
        `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`
    )
    setTimeout(() => socket.destroy(), destroyDelayMillis).unref()
  }
  server.on("clientError", (error: NodeJS.ErrnoException, socket: Duplex) => {
    // Bytes after the last request of a connection are ignored (RFC 9112, 9.6); the request itself still gets its response.
    if (error.code === "HPE_CLOSED_CONNECTION") return
    if (mayRespond(socket)) respond(socket, 400, refusalOf(error, limits))
    else socket.destroy(error)
  })
  server.on("connect", (_request, socket) => {
    // The client may disconnect before it has the response.
    socket.on("error", () => socket.destroy())
    respond(socket, 405, noProxy)
  })
})

const noProxy = refuse("METHOD_NOT_ALLOWED", "The service is not a proxy: send requests directly, without CONNECT.")

/** Not after a reset, and not in the middle of another response. */
const mayRespond = (socket: Duplex & { readonly _httpMessage?: { readonly headersSent: boolean } }): boolean =>
  socket.writable && socket._httpMessage?.headersSent !== true

const refusalOf = ({ code }: NodeJS.ErrnoException, limits: Limits) =>
  code === "HPE_HEADER_OVERFLOW"
    ? refuse(
        "BAD_REQUEST",
        `The request's head is larger than ${limits.maxHeaderSize} bytes: shorten the path or the headers.`
      )
    : code === "ERR_HTTP_REQUEST_TIMEOUT"
      ? refuse("BAD_REQUEST", "The request did not arrive in time: send it again.")
      : refuse("BAD_REQUEST", "The request is not valid HTTP: check its request line and headers.")
