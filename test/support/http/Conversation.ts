/** Raw bytes over one connection to the test's service. */
import { connect } from "node:net"
import { Effect } from "effect"
import { TestServer } from "./TestServer.ts"

/**
 * Writes pieces one after the other, each as a packet of its own if possible, and then perhaps no more. Returns what was received until
 * the connection was closed.
 */
export const converse = (pieces: ReadonlyArray<string>, { ends = false }: { readonly ends?: boolean } = {}) =>
  Effect.flatMap(TestServer, ({ port }) =>
    Effect.callback<string>((resume) => {
      let received = ""
      const socket = connect({ port, host: "127.0.0.1", noDelay: true }, () => next(0))
      const next = (index: number): void => {
        const piece = pieces[index]
        if (piece === undefined) return void (ends && socket.end())
        socket.write(piece, () => setImmediate(() => setImmediate(() => next(index + 1))))
      }
      socket.on("data", (chunk) => {
        received += chunk.toString()
      })
      socket.on("error", () => {})
      socket.on("close", () => resume(Effect.succeed(received)))
    })
  )

/** The statuses of all responses in it. */
export const statuses = (text: string) => Array.from(text.matchAll(/HTTP\/1\.1 (\d+)/g), ([, status]) => Number(status))
