/**
 * Closes a server without losing requests: it stops accepting connections, and handles requests on open ones. Each
 * response closes its connection. Idle connections are closed at the end: a request sent at that moment is lost, and
 * HTTP clients retry it.
 */
import type { Server } from "node:http"
import { Server as NetServer, type Socket } from "node:net"
import { Clock, Effect } from "effect"
import { monotonicMillis } from "../../platform/postgres/driver/Deadline.ts"
import { refuseNewConnections } from "./NodeParts.ts"

interface Options {
  readonly server: Server
  readonly open: ReadonlySet<Socket>
  readonly seconds: number
  /** Keeps idle connections until then; otherwise they are closed at once. */
  readonly keepsIdle: boolean
}

const checkMillis = 50
// A new client is about to send its request.
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
  // Only the HTTP server's own method ends the timer that checks connections, which keeps the whole service in memory.
  server.close()
})

/**
 * When a server closes, the system resets connections that wait to be accepted. So the backlog is first set to 0: new
 * clients are refused, and the server accepts the waiting connections, one per turn of the event loop. Linux still lets one
 * wait: that one is reset if it comes between the last look and the close.
 */
const stopAccepting = Effect.fnUntraced(function* (server: Server) {
  refuseNewConnections(server)
  yield* Effect.timeoutOption(nothingWaits(server), acceptingMax)
  // The HTTP server's own method would also close connections that are about to receive a request.
  yield* turns(1, () => NetServer.prototype.close.call(server))
})

// Otherwise clients that keep retrying would never let a server close.
const acceptingMax = "500 millis"

// The first turn may end before the event loop has looked for connections.
const quietTurns = 3

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

/** Closes idle connections after the event loop has received pending input. */
const closeIdle = (server: Server, open: ReadonlySet<Socket>, includesUnused: boolean): Effect.Effect<void> =>
  turns(2, () => {
    server.closeIdleConnections()
    if (includesUnused) for (const socket of open) if (socket.bytesRead === 0) socket.destroy()
  })

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
