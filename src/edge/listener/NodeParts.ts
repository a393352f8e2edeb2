/**
 * Undocumented parts of Node's HTTP server. Only this file uses them, and the service does not start on
 * a Node that lacks one. On Deno the cases that need a missing part do not occur.
 */
import { createServer, IncomingMessage, type Server, ServerResponse } from "node:http"
import { Socket } from "node:net"
import type { Duplex } from "node:stream"
import { Effect } from "effect"

/** A negative result makes the parser fail, so that it leaves its remaining input. */
type OnRequest = (request: IncomingMessage, keepsAlive: boolean) => number

type Parts = Duplex & {
  readonly parser?: { onIncoming?: OnRequest | null; resume?(): void } | null
  _paused?: boolean
  readonly _httpMessage?: ServerResponse | null
}

type Listening = Server & { readonly _handle?: { listen?(backlog: number): number } | null }

export const checkNodeParts = Effect.fnUntraced(function* (server: Server) {
  const missing = "Deno" in globalThis ? [] : missingParts(server)
  if (missing.length === 0) return
  return yield* Effect.die(
    new Error(`This version of Node has no ${missing.join(", ")}: start the service with the version of package.json.`)
  )
})

/** `server` must listen. */
export const missingParts = (server: Listening, other = createServer()): ReadonlyArray<string> => {
  const socket: Parts & Socket = new Socket()
  other.emit("connection", socket)
  const response = new ServerResponse(new IncomingMessage(socket))
  response.assignSocket(socket)
  const parts = {
    "parser.onIncoming": typeof socket.parser?.onIncoming === "function",
    "parser.resume": typeof socket.parser?.resume === "function",
    _paused: socket._paused === false,
    _httpMessage: socket._httpMessage === response,
    "_handle.listen": typeof server._handle?.listen === "function"
  }
  socket.destroy()
  return Object.entries(parts).flatMap(([name, isThere]) => (isThere ? [] : [name]))
}

export const interceptRequests = ({ parser }: Parts, intercept: (onRequest: OnRequest) => OnRequest): void => {
  const onIncoming = parser?.onIncoming
  if (parser && onIncoming) parser.onIncoming = intercept(onIncoming)
}

export const responseOn = ({ _httpMessage }: Parts): ServerResponse | undefined => _httpMessage ?? undefined

/** Node's server then stops its parser, too, and does not resume while `_paused` is set. */
export const pause = (socket: Parts): void => {
  if (socket._paused === true) return
  socket._paused = true
  socket.pause()
}

export const resume = (socket: Parts): void => {
  if (socket._paused !== true) return
  socket._paused = false
  // Without a parser `UpgradeOffers` is about to hand the connection back: its bytes would be lost.
  if (!socket.parser) return
  socket.parser.resume?.()
  socket.resume()
}

/** Connections that wait to be accepted stay. */
export const refuseNewConnections = (server: Listening): void => {
  server._handle?.listen?.(0)
}
