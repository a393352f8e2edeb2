/**
 * Ignores offers to upgrade to another protocol, which Java's HttpClient and `curl --http2` send over plain HTTP
 * (RFC 9110, 7.8): the request is handled as if the header were missing.
 *
 * Node cannot ignore an offer: after such a request its parser drops further input, so a pipelined request
 * would get no response. It hands the connection over, and this module hands it back without the offer.
 */
import type { IncomingMessage, Server, ServerResponse } from "node:http"
import type { Socket } from "node:net"
import type { Duplex } from "node:stream"
import { responseOn } from "./NodeParts.ts"

/** No other listener may handle `upgrade`. */
export const ignoreUpgradeOffers = (server: Server): void => {
  server.on("upgrade", (request: IncomingMessage, socket: Duplex, rest: Buffer) => {
    const bytes = bytesWithoutOffer(request, rest)
    if (bytes === undefined) return void socket.destroy()
    // Node no longer tells an earlier response that it can go on.
    const onDrain = () => responseOn(socket)?.emit("drain")
    socket.on("drain", onDrain)
    afterResponses(
      socket,
      () => true,
      () => {
        socket.off("drain", onDrain)
        handBack(server, socket, bytes)
      }
    )
  })
}

/** Node's own listener of connections parses the bytes and all later input. */
const handBack = (server: Server, socket: Duplex, bytes: Buffer): void => {
  server.emit("connection", socket as Socket)
  socket.emit("data", bytes)
  // The client sends no more, which only Node's earlier listeners were told.
  if (socket.readableEnded) socket.emit("end")
}

/** Responses are sent in order, so this waits for the responses to earlier requests. */
export const afterResponses = (
  socket: Duplex,
  isEarlier: (response: ServerResponse) => boolean,
  then: () => void
): void => {
  const pending = responseOn(socket)
  if (pending === undefined || !isEarlier(pending)) {
    if (!socket.destroyed) then()
    return
  }
  const onError = () => socket.destroy()
  socket.on("error", onError)
  // Node starts the next response while this one finishes.
  pending.once("close", () => {
    socket.off("error", onError)
    afterResponses(socket, isEarlier, then)
  })
}

const offerHeaders = new Set(["upgrade", "http2-settings"])

/** The request without the offer, and the input after it; undefined if the bytes are unknown. */
const bytesWithoutOffer = (request: IncomingMessage, rest: Buffer): Buffer | undefined => {
  const lines = [`${request.method} ${request.url} HTTP/${request.httpVersion}`]
  const { rawHeaders } = request
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]!
    const value = rawHeaders[index + 1]!
    if (name.toLowerCase() === "connection") {
      const options = value.split(",").filter((option) => !offerHeaders.has(option.trim().toLowerCase()))
      if (options.length > 0) lines.push(`${name}: ${options.join(",")}`)
    } else if (!offerHeaders.has(name.toLowerCase())) lines.push(`${name}: ${value}`)
  }
  const head = Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1")
  const body = parsedBody(request)
  return body === undefined ? undefined : Buffer.concat([head, body, rest])
}

const nothing = Buffer.alloc(0)

/** The parsed part of the body as it was sent: Node leaves all of it in the rest, Deno parses it. */
const parsedBody = (request: IncomingMessage): Buffer | undefined => {
  const bytes = request.read() as Buffer | null
  if (bytes === null) return nothing
  if (request.headers["transfer-encoding"] === undefined) return bytes
  // The parser's position in a chunk is unknown.
  return request.complete
    ? Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from("\r\n0\r\n\r\n")])
    : undefined
}
