/** A receiver of webhook deliveries on loopback: it says how it answers, and shows what it was sent, byte for byte. */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { Effect, Queue } from "effect"

/** A delivery as it came. */
export interface Received {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
  /** The client's port: requests over one connection have the same. */
  readonly connection: number
}

/** A status with headers; nothing at all, for ever; or whatever is done with the response. */
type Reply =
  | { readonly status: number; readonly headers?: { readonly [name: string]: string }; readonly body?: string }
  | { readonly respond: (response: ServerResponse) => void }
  | "hang"

export interface Receiver {
  readonly url: string
  readonly port: number
  /** The next delivery that nobody has looked at yet. */
  readonly next: Effect.Effect<Received>
  /** Everything that came so far. */
  readonly received: ReadonlyArray<Received>
  /** From now on answers like this; 204 to begin with. */
  answer(reply: (received: Received) => Reply): void
}

/** Listens for as long as the scope lives. */
export const makeReceiver = Effect.gen(function* () {
  const queue = yield* Queue.unbounded<Received>()
  const received: Array<Received> = []
  let reply: (received: Received) => Reply = () => ({ status: 204 })
  const server = createServer((request, response) => {
    const chunks: Array<Buffer> = []
    request.on("data", (chunk: Buffer) => chunks.push(chunk))
    request.on("end", () => {
      const { headers, url = "", socket } = request
      const one: Received = { path: url, headers, body: Buffer.concat(chunks), connection: socket.remotePort ?? 0 }
      received.push(one)
      respond(response, reply(one))
      Queue.offerUnsafe(queue, one)
    })
  })
  yield* Effect.acquireRelease(
    Effect.callback<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void))),
    () =>
      Effect.callback<void>((resume) => {
        server.close(() => resume(Effect.void))
        server.closeAllConnections()
      })
  )
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/hooks?token=of-the-receiver`,
    port,
    next: Queue.take(queue),
    received,
    answer: (next) => {
      reply = next
    }
  } satisfies Receiver as Receiver
})

const respond = (response: ServerResponse, reply: Reply): void => {
  if (reply === "hang") return
  if ("respond" in reply) reply.respond(response)
  else response.writeHead(reply.status, reply.headers).end(reply.body)
}
