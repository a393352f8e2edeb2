/** Services that form a cluster, and the network between them, which a test cuts. */
import { createServer, connect as dial, type Server, type Socket } from "node:net"
import { Effect } from "effect"
import { freePort } from "../processes/FreePort.ts"
import { startService } from "../processes/Processes.ts"
import { poll } from "../rules/Poll.ts"
import { send } from "./Http.ts"

export type Service = Effect.Success<ReturnType<typeof startService>>

const unlimited = {
  LICENSING_RATE_RUNTIME: "0",
  LICENSING_RATE_MANAGEMENT: "0",
  LICENSING_RATE_ACTIVATION: "0",
  LICENSING_RATE_FAILURES: "0"
}

/** Starts a node. With a relay, other nodes reach it through that. */
export const startNode = Effect.fnUntraced(function* (through?: { readonly port: number; readonly target: number }) {
  const port = through?.target ?? (yield* freePort)
  const service = yield* startService({
    ...unlimited,
    LICENSING_CLUSTER: "true",
    LICENSING_CLUSTER_LISTEN: `127.0.0.1:${port}`,
    LICENSING_CLUSTER_ADDRESS: `127.0.0.1:${through?.port ?? port}`
  })
  return { ...service, clusterPort: port }
})

/** A metric's value, with its labels as they are written; 0 if there is none yet. */
export const metric = (service: Service, name: string): Effect.Effect<number> =>
  Effect.map(send(service.port, { path: "/metrics" }), ({ text }) => {
    const line = text.split("\n").find((line) => line.startsWith(`${name} `))
    return line === undefined ? 0 : Number(line.slice(name.length + 1).split(" ")[0])
  })

/** Asks again until the metric has the value. */
export const awaitMetric = (service: Service, name: string, holds: (value: number) => boolean) =>
  poll(metric(service, name), holds)

/** Waits until the node can hand commands over to so many others. */
export const awaitPeers = (service: Service, count: number) =>
  awaitMetric(service, 'licensing_cluster_peers{state="connected"}', (value) => value === count)

/** Forwards connections to a port until it is told to stay silent: then bytes are neither refused nor delivered. */
export const makeRelay = Effect.gen(function* () {
  const target = yield* freePort
  const sockets = new Set<Socket>()
  let isSilent = false
  const pass = (from: Socket, to: Socket) => {
    sockets.add(from)
    from.on("data", (bytes) => {
      if (!isSilent) to.write(bytes)
    })
    from.on("error", () => {})
    from.on("close", () => {
      sockets.delete(from)
      to.destroy()
    })
  }
  const server = yield* Effect.acquireRelease(
    Effect.callback<Server>((resume) => {
      const made = createServer((incoming) => {
        const outgoing = dial({ host: "127.0.0.1", port: target })
        pass(incoming, outgoing)
        pass(outgoing, incoming)
      }).listen(0, "127.0.0.1", () => resume(Effect.succeed(made)))
    }),
    (server) =>
      Effect.sync(() => {
        server.close()
        for (const socket of sockets) socket.destroy()
      })
  )
  return {
    target,
    port: (server.address() as { readonly port: number }).port,
    silence: Effect.sync(() => {
      isSilent = true
    }),
    /** What was sent meanwhile is lost, as after a partition: the connections end. */
    mend: Effect.sync(() => {
      isSilent = false
      for (const socket of sockets) socket.destroy()
    })
  }
})
