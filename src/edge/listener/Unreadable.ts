/** Refuses input that never becomes a request: malformed HTTP, and CONNECT. */
import { type Server, type ServerResponse, STATUS_CODES } from "node:http"
import type { Duplex } from "node:stream"
import { Clock, Effect } from "effect"
import { errorEnvelope, type Refusal, refuse } from "../../contract/api/Failure.ts"
import { Identifiers } from "../../contract/api/Identifier.ts"
import { Settings } from "../../platform/config/Config.ts"
import { fixedHeaders } from "../responses/ResponseHeaders.ts"
import { isClosing } from "./Connections.ts"
import { responseOn } from "./NodeParts.ts"
import { afterResponses } from "./UpgradeOffers.ts"

// Destroying the socket at once would reset the connection before the client has read the response.
const destroyDelayMillis = 500

export const refuseUnreadable = Effect.fnUntraced(function* (server: Server, headBytesMax: number) {
  const identifiers = yield* Identifiers
  const fixed = Object.entries(fixedHeaders((yield* Settings).baseUrl)).map(([name, value]) => `${name}: ${value}\r\n`)
  const context = yield* Effect.context<never>()
  const respond = (socket: Duplex, status: 400 | 405, refusal: Refusal): void => {
    const envelope = Effect.flatMap(identifiers.make("request"), (id) =>
      Effect.map(Clock.currentTimeMillis, (now) => ({ id, body: JSON.stringify(errorEnvelope(refusal, id, now)) }))
    )
    const { id, body } = Effect.runSyncWith(context)(envelope)
    socket.end(
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nX-Request-Id: ${id}\r\nContent-Type: application/json\r\n` +
        `${fixed.join("")}${status === 405 ? "Allow: \r\n" : ""}` +
        `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`
    )
    setTimeout(() => socket.destroy(), destroyDelayMillis).unref()
  }
  const refused = new WeakSet<Duplex>()
  server.on("clientError", (error: NodeJS.ErrnoException, socket: Duplex) => {
    if (isUnused(socket)) return void setImmediate(closeUnused, socket)
    // Bytes after the last request of a connection are ignored (RFC 9112, 9.6); the request itself still gets its response.
    if (error.code === "HPE_CLOSED_CONNECTION" || isClosing(socket)) return
    // The rest of the input fails, too.
    if (refused.has(socket)) return
    refused.add(socket)
    // The next response is that of the first request without one.
    afterResponses(socket, hasItsRequest, () => {
      if (mayRespond(socket)) respond(socket, 400, refusalOf(error, headBytesMax))
      else socket.destroy(error)
    })
  })
  server.on("connect", (_request, socket) => {
    // The client may disconnect before the response.
    socket.on("error", () => socket.destroy())
    respond(socket, 405, noProxy)
  })
})

const isUnused = (socket: Duplex): boolean => "bytesRead" in socket && socket.bytesRead === 0

/**
 * Browsers open connections ahead. A response would be taken for that of the request that they send at this moment; if the connection
 * closes, they send it again on another one. After a pause of the process the request may be there, but not read yet.
 */
const closeUnused = (socket: Duplex): void => {
  if (isUnused(socket)) socket.destroy()
}

const noProxy = refuse("METHOD_NOT_ALLOWED", "The service is not a proxy: send requests directly, without CONNECT.")

/** Whether the error is not in the request of this response, but after it. */
const hasItsRequest = ({ req }: ServerResponse): boolean => req.complete

/** Not after a reset, and not in the middle of another response. */
const mayRespond = (socket: Duplex): boolean => socket.writable && responseOn(socket)?.headersSent !== true

const refusalOf = ({ code }: NodeJS.ErrnoException, headBytesMax: number) =>
  code === "HPE_HEADER_OVERFLOW"
    ? refuse("BAD_REQUEST", `The request's head is larger than ${headBytesMax} bytes: shorten the path or the headers.`)
    : code === "ERR_HTTP_REQUEST_TIMEOUT"
      ? refuse("BAD_REQUEST", "The request did not arrive in time: send it again.")
      : refuse("BAD_REQUEST", "The request is not valid HTTP: check its request line and headers.")
