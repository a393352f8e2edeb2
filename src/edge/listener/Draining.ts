/**
 * Closes a server without losing requests: it stops accepting connections, and answers what arrives on those that it has. Each
 * response closes its connection. Those that stay idle are closed at the end: a request sent at that moment is lost, and
 * HTTP clients send it again.
 */
import type { Server } from "node:http"
import { Server as NetServer, type Socket } from "node:net"
import { Clock, Effect } from "effect"
import { monotonicMillis } from "../../platform/postgres/driver/Deadline.ts"
import { refuseNewConnections } from "./NodeParts.ts"

interface Options {
  readonly server: Server
  readonly open: ReadonlySet<Socket>
  /** Seconds until all remaining connections are closed. */
  readonly seconds: number
  /** Whether idle connections are kept until then; otherwise they are closed at once. */
  readonly keepsIdle: boolean
}

const checkMillis = 50
// A client that has just connected is about to send its request.
const firstRequestMillis = 1_000

export const drain = Effect.fnUntraced(function* ({ keepsIdle, open, seconds, server }: Options) {
  if (!server.listening) return
  const clock = yield* Clock.Clock
  const started = monotonicMillis(clock)
  yield* stopAccepting(server)
  while (open.size > 0) {
    const elapsed = monotonicMillis(clock) - started
    if (elapsed >= seconds * 1_000) break
    if (!keepsIdle) yield* closeIdle(server, open, elapsed >= firstRequestMillis)
    if (open.size > 0) yield* Effect.sleep(checkMillis)
  }
  yield* closeIdle(server, open, true)
  server.closeAllConnections()
})

/**
 * The system resets connections that are waiting to be accepted when a server closes. So first its backlog is set to 0; later
 * clients try again, and are refused. Then the server accepts those that were waiting already, one in each turn of the event loop.
 */
const stopAccepting = Effect.fnUntraced(function* (server: Server) {
  refuseNewConnections(server)
  yield* Effect.timeoutOption(nothingWaits(server), acceptingMax)
  // The method of the HTTP server would also close connections that are about to receive a request.
  yield* turns(1, () => NetServer.prototype.close.call(server))
})

// Clients that try again and again would never let a server close.
const acceptingMax = "500 millis"

// The first may end before the event loop has looked for connections.
const quietTurns = 3

/** Waits until some turns of the event loop have accepted no connection. */
const nothingWaits = (server: Server): Effect.Effect<void> =>
  Effect.callback((resume) => {
    let accepted = true
    const onConnection = () => {
      accepted = true
    }
    server.on("connection", onConnection)
    const turn = (): void => {
      if (!accepted) resume(Effect.void)
      else {
        accepted = false
        afterTurns(quietTurns, turn)
      }
    }
    turn()
    return Effect.sync(() => {
      accepted = false
      server.off("connection", onConnection)
    })
  })

/** Closes what is idle after the event loop has received all that had arrived. */
const closeIdle = (server: Server, open: ReadonlySet<Socket>, includesUnused: boolean): Effect.Effect<void> =>
  turns(2, () => {
    server.closeIdleConnections()
    if (includesUnused) for (const socket of open) if (socket.bytesRead === 0) socket.destroy()
  })

/** Acts right after the event loop has received what had arrived, `count` times. */
const turns = (count: number, act: () => void): Effect.Effect<void> =>
  Effect.callback((resume) => {
    afterTurns(count, () => {
      act()
      resume(Effect.void)
    })
  })

const afterTurns = (count: number, then: () => void): void => {
  if (count === 0) then()
  else setImmediate(afterTurns, count - 1, then)
}
