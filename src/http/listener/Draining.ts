/**
 * Closes a server without losing requests: it stops accepting connections, answers what has arrived on those that it has, and
 * closes each once it is idle.
 */
import type { Server } from "node:http"
import { Server as NetServer, type Socket } from "node:net"
import { Clock, Effect } from "effect"

interface Options {
  readonly server: Server
  readonly open: ReadonlySet<Socket>
  /** Seconds until the connections that are left are closed, whatever they do. */
  readonly seconds: number
}

const checkMillis = 50
// A client that has just connected is about to send its request.
const firstRequestMillis = 1_000

export const drain = Effect.fnUntraced(function* ({ open, seconds, server }: Options) {
  if (!server.listening) return
  const started = yield* Clock.currentTimeMillis
  // After the event loop has accepted the connections that were waiting; the system would reset these.
  yield* afterPoll
  // Node's HTTP server would also close connections at once, without an idle one's request that is being received.
  NetServer.prototype.close.call(server)
  while (open.size > 0) {
    const elapsed = (yield* Clock.currentTimeMillis) - started
    if (elapsed >= seconds * 1_000) break
    yield* afterPoll
    server.closeIdleConnections()
    if (elapsed >= firstRequestMillis) for (const socket of open) if (socket.bytesRead === 0) socket.destroy()
    if (open.size > 0) yield* Effect.sleep(checkMillis)
  }
  server.closeAllConnections()
})

/** Continues when the event loop has received all that had arrived. */
const afterPoll = Effect.callback<void>((resume) => {
  setImmediate(() => resume(Effect.void))
})
