/**
 * Parts of Node's HTTP server that its documentation does not name. Only this file uses them, and the service does not start on
 * a Node that lacks one. On Deno, what a missing part is for does not happen.
 */
import { createServer, IncomingMessage, type Server, ServerResponse } from "node:http"
import { Socket } from "node:net"
import type { Duplex } from "node:stream"
import { Effect } from "effect"

/** Takes a parsed request; a negative result makes the parser fail, so that it leaves the rest of what it has read. */
type OnRequest = (request: IncomingMessage, keepsAlive: boolean) => number

type Parts = Duplex & {
  readonly parser?: { onIncoming?: OnRequest | null; resume?(): void } | null
  _paused?: boolean
  readonly _httpMessage?: ServerResponse | null
}

type Listening = Server & { readonly _handle?: { listen?(backlog: number): number } | null }

/** Dies if the platform lacks a part. The server must listen. */
export const checkNodeParts = Effect.fnUntraced(function* (server: Server) {
  const missing = "Deno" in globalThis ? [] : missingParts(server)
  if (missing.length === 0) return
  return yield* Effect.die(
    new Error(`This version of Node has no ${missing.join(", ")}: start the service with the version of package.json.`)
  )
})

/** The parts that a server which listens, or a connection of another, does not have. */
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

/** Puts a function in front of the one that takes the requests of a connection. */
export const interceptRequests = ({ parser }: Parts, intercept: (onRequest: OnRequest) => OnRequest): void => {
  const onIncoming = parser?.onIncoming
  if (parser && onIncoming) parser.onIncoming = intercept(onIncoming)
}

/** The response that is being sent on a connection. */
export const responseOn = ({ _httpMessage }: Parts): ServerResponse | undefined => _httpMessage ?? undefined

/** Reads no more of a connection. Node's server then stops its parser, too, and does not resume while `_paused` is set. */
export const pause = (socket: Parts): void => {
  if (socket._paused === true) return
  socket._paused = true
  socket.pause()
}

export const resume = (socket: Parts): void => {
  if (socket._paused !== true) return
  socket._paused = false
  // Without a parser the connection is about to be handed back by `UpgradeOffers`: its bytes would be lost.
  if (!socket.parser) return
  socket.parser.resume?.()
  socket.resume()
}

/** Lets the system refuse new connections. Those that wait to be accepted stay. */
export const refuseNewConnections = (server: Listening): void => {
  server._handle?.listen?.(0)
}
