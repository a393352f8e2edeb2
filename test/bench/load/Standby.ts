/** A primary whose commits wait for a synchronous standby that is some milliseconds away. */
import { connect, createServer, type Socket } from "node:net"
import { Effect } from "effect"
import { replicateThrough } from "../../support/database/Replication.ts"

/** Passes bytes on after a delay, in order. */
const passLate = (from: Socket, to: Socket, delayMillis: number) => {
  from.on("data", (bytes) => void setTimeout(() => to.write(bytes), delayMillis))
  from.on("error", () => to.destroy())
  from.on("close", () => to.destroy())
}

/** Listens on a port of its own, and delays both directions to the other port. */
const delayed = (delayMillis: number) => (port: number) =>
  Effect.acquireRelease(
    Effect.promise(
      () =>
        new Promise<{ readonly port: number; readonly close: () => void }>((resolve) => {
          const server = createServer({ noDelay: true }, (near) => {
            const far = connect({ port, host: "127.0.0.1", noDelay: true })
            passLate(near, far, delayMillis)
            passLate(far, near, delayMillis)
          }).listen(0, "127.0.0.1", () =>
            resolve({ port: (server.address() as { port: number }).port, close: () => server.close() })
          )
        })
    ),
    ({ close }) => Effect.sync(close)
  ).pipe(Effect.map(({ port }) => port))

/** `millis`: the round trip to the standby. */
export const startReplicated = Effect.fnUntraced(function* (millis: number) {
  const { primary } = yield* replicateThrough(delayed(millis / 2))
  return { url: primary.url, pid: primary.pid }
})
