/**
 * The HTTP server with its limits. Input that never becomes a request, such as malformed HTTP or a head that
 * never ends, is refused here, in the same envelope.
 */
import { createServer, type RequestListener, type Server } from "node:http"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Context, Effect, Layer } from "effect"
import { HttpServer } from "effect/http"
import { Settings } from "../../platform/config/Config.ts"
import { canonicalPeer, isTrustedBy } from "../responses/ClientAddress.ts"
import { type Clients, makeClients, makeConnections } from "./Connections.ts"
import { drain } from "./Draining.ts"
import { checkNodeParts } from "./NodeParts.ts"
import { makeStartingListener } from "./Starting.ts"
import { refuseUnreadable } from "./Unreadable.ts"
import { ignoreUpgradeOffers } from "./UpgradeOffers.ts"

const limitsDefault = {
  // Request line and headers. A token, a key and a trace need a tenth of this.
  maxHeaderSize: 16_384,
  // A slower head is a slow-loris attack.
  headersTimeout: 10_000,
  // Enough for a body of 256 KiB over a slow mobile network.
  requestTimeout: 30_000,
  // Longer than the idle time of common load balancers (60 s); otherwise they send requests on closing connections.
  keepAliveTimeout: 65_000,
  // The longest delay until Node detects that a head or a request has timed out.
  connectionsCheckingInterval: 5_000,
  // A client that neither sends nor receives for this long during an exchange has disconnected.
  silenceTimeout: 120_000,
  // Descriptors are finite (often 65,536 for a process); beyond this, connections are refused rather than files and databases.
  connectionsMax: 10_000
}
type Limits = typeof limitsDefault

export class Requests extends Context.Service<
  Requests,
  {
    /** Wraps the server's listener. */
    putInFront(before: (listener: RequestListener) => RequestListener): void
    readonly clients: Clients
    /** Stops accepting connections, waits for requests on those that are open, and closes them. */
    drain(options: { readonly keepsIdle: boolean }): Effect.Effect<void>
  }
>()("licensing/edge/listener/Requests") {}

/** Tests override limits, because they cannot wait for half a minute. */
export const layerWith = (overrides: Partial<Limits>) =>
  Layer.effectContext(Effect.suspend(() => listen({ ...limitsDefault, ...overrides })))

/** Until an application is served, the response says that the service is starting. */
export const layer = layerWith({})

const listen = Effect.fnUntraced(function* (limits: Limits) {
  const { connectionsPerAddress, drainSeconds, host, port, trustedProxies } = yield* Settings
  // `requestFault` checks the Host header, so that the response has the envelope.
  const server = createServer({ ...limits, requireHostHeader: false })
  server.maxConnections = limits.connectionsMax
  server.timeout = limits.silenceTimeout
  // The size of a head limits its headers. Deno would drop the last of more than a thousand, such as a proxy's X-Forwarded-For.
  server.maxHeadersCount = 0
  // A client may end its half of the connection after its last request, and still reads the responses.
  Object.assign(server, { httpAllowHalfOpen: true })

  const clients = makeClients()
  const isTrusted = isTrustedBy(trustedProxies)
  const addressOf = (peer: string): string | undefined => {
    const address = canonicalPeer(peer)
    return isTrusted(address) ? undefined : address
  }
  const { open, refuses, take } = makeConnections({ clients, addressOf, maxOfClient: connectionsPerAddress })
  server.on("connection", take)
  // Node checks this list before it makes a socket, which costs ten times as much. Deno does not check it.
  Object.assign(server, { blockList: { check: refuses } })

  yield* refuseUnreadable(server, limits.maxHeaderSize)
  const front = makeFront(server, yield* makeStartingListener)
  // `drain` closes the server.
  const listening = yield* NodeHttpServer.make(() => server, { host, port, disablePreemptiveShutdown: true })
  yield* checkNodeParts(server)
  yield* Effect.addFinalizer(() => Effect.sync(() => server.closeAllConnections()))
  const serve = ((application: Parameters<typeof listening.serve>[0]) =>
    Effect.andThen(listening.serve(application), Effect.sync(front.takeOver))) as typeof listening.serve
  return Context.make(HttpServer.HttpServer, HttpServer.HttpServer.of({ ...listening, serve })).pipe(
    Context.add(
      Requests,
      Requests.of({
        putInFront: front.put,
        clients,
        drain: ({ keepsIdle }) => drain({ server, open, seconds: drainSeconds, keepsIdle })
      })
    )
  )
})

/** The starting listener, and later the framework's listener behind those put in front. */
const makeFront = (server: Server, starting: RequestListener) => {
  let current = { request: starting, checkContinue: starting }
  server.on("request", (request, response) => current.request(request, response))
  server.on("checkContinue", (request, response) => current.checkContinue(request, response))
  // An unknown expectation can be ignored (RFC 9110, 10.1.1); Node would refuse it without an envelope.
  server.on("checkExpectation", (request, response) => current.request(request, response))
  ignoreUpgradeOffers(server)

  const taken = (event: string): RequestListener => {
    const listener = server.listeners(event).at(-1) as RequestListener
    server.off(event, listener)
    return listener
  }
  return {
    takeOver: () => {
      current = { request: taken("request"), checkContinue: taken("checkContinue") }
      // No operation uses upgrades.
      taken("upgrade")
    },
    put: (before: (listener: RequestListener) => RequestListener) => {
      current = { request: before(current.request), checkContinue: before(current.checkContinue) }
    }
  }
}
