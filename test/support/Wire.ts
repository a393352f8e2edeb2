/** A wire to the database that can be cut and mended, as networks are. */
import { connect, createServer, type Socket } from "node:net"
import { Context, Effect, Layer, Redacted } from "effect"
import { Database } from "./Database.ts"

export class Wire extends Context.Service<
  Wire,
  {
    /** Breaks every connection and refuses new ones. */
    readonly cut: Effect.Effect<void>
    readonly mend: Effect.Effect<void>
  }
>()("licensing/test/Wire") {
  /** A database of one's own at the end of a wire. */
  static readonly layer: Layer.Layer<Wire | Database> = Layer.effectContext(
    Effect.gen(function* () {
      const { url } = yield* Database
      const address = new URL(Redacted.value(url))
      const [host, port] = [address.hostname, Number(address.port)]
      const sockets = new Set<Socket>()
      const server = createServer((near) => {
        const far = connect(port, host)
        for (const [socket, other] of [
          [near, far],
          [far, near]
        ] as const) {
          sockets.add(socket)
          socket.on("error", () => {})
          socket.on("close", () => {
            sockets.delete(socket)
            other.destroy()
          })
          socket.pipe(other)
        }
      })
      const listen = (at: number) =>
        Effect.callback<void>((resume) => void server.listen(at, "127.0.0.1", () => resume(Effect.void)))
      const cut = Effect.callback<void>((resume) => {
        server.close(() => resume(Effect.void))
        for (const socket of sockets) socket.destroy()
      })
      yield* listen(0)
      yield* Effect.addFinalizer(() => cut)
      const own = (server.address() as { port: number }).port
      address.host = `127.0.0.1:${own}`
      return Context.make(Wire, Wire.of({ cut, mend: listen(own) })).pipe(
        Context.add(Database, Database.of({ url: Redacted.make(address.href) }))
      )
    })
  ).pipe(Layer.provide(Database.layerUrl))
}
