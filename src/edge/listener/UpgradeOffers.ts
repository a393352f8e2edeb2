/**
 * Requests that offer an upgrade to another protocol, as Java's HttpClient and `curl --http2` do over plain HTTP. The service
 * takes no offer, and ignores it (RFC 9110, 7.8): the request is handled as if the header were missing.
 *
 * Node cannot ignore an offer by itself: after such a request its parser drops what else has arrived, so a pipelined request
 * would get no response. It hands the connection over instead, and here the request goes back to it without the offer.
 */
import type { IncomingMessage, Server } from "node:http"
import type { Socket } from "node:net"
import type { Duplex } from "node:stream"
import { responseOn } from "./NodeParts.ts"

/** Ignores all offers to this server. No other listener may take them. */
export const ignoreUpgradeOffers = (server: Server): void => {
  server.on("upgrade", (request: IncomingMessage, socket: Duplex, rest: Buffer) => {
    const bytes = bytesWithoutOffer(request, rest)
    if (bytes === undefined) socket.destroy()
    else afterResponses(socket, () => handBack(server, socket, bytes))
  })
}

/** Node's listener of its own connections parses the bytes, and all that the connection receives after them. */
const handBack = (server: Server, socket: Duplex, bytes: Buffer): void => {
  server.emit("connection", socket as Socket)
  socket.emit("data", bytes)
}

/** Calls back once the connection has sent the responses to the requests before, because responses are sent in order. */
const afterResponses = (socket: Duplex, then: () => void): void => {
  const pending = responseOn(socket)
  if (pending === undefined) {
    if (!socket.destroyed) then()
    return
  }
  const onError = () => socket.destroy()
  socket.on("error", onError)
  // Node starts the next response while this one finishes.
  pending.once("close", () => {
    socket.off("error", onError)
    afterResponses(socket, then)
  })
}

const offerHeaders = new Set(["upgrade", "http2-settings"])

/** The request with what followed it, as it would have been sent without the offer; undefined if that is unknown. */
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

/** The part of the body that was already parsed, as it was sent: Node leaves all of it in the rest, Deno parses it. */
const parsedBody = (request: IncomingMessage): Buffer | undefined => {
  const bytes = request.read() as Buffer | null
  if (bytes === null) return nothing
  if (request.headers["transfer-encoding"] === undefined) return bytes
  // The place of the parser within a chunk is unknown.
  return request.complete
    ? Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from("\r\n0\r\n\r\n")])
    : undefined
}
