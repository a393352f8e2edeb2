/** Webhooks: a receiver on loopback, endpoints, deliveries in the database, and nodes that deliver when a test runs them. */

import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import * as NodeDns from "@effect/platform-node/NodeDns"
import { Effect, Layer, Queue, Redacted } from "effect"
import type { Dns } from "effect/net"
import { SqlClient } from "effect/sql"
import type { NewEvent } from "../../../src/ledger/events/Entry.ts"
import { EventLog } from "../../../src/ledger/events/EventLog.ts"
import { Delivery } from "../../../src/ledger/webhooks/Delivery.ts"
import { Addresses } from "../../../src/ledger/webhooks/DeliveryAddress.ts"
import { EndpointCache } from "../../../src/ledger/webhooks/EndpointCache.ts"
import { Sender } from "../../../src/ledger/webhooks/Sender.ts"
import type { WebhookEndpointCreate } from "../../../src/ledger/webhooks/Webhook.ts"
import { Webhooks } from "../../../src/ledger/webhooks/Webhooks.ts"
import { Settings } from "../../../src/platform/config/Config.ts"
import { MasterKey } from "../../../src/platform/signing/MasterKey.ts"
import * as RehearsalClock from "../../../src/platform/telemetry/RehearsalClock.ts"
import * as Workers from "../../../src/Workers.ts"
import { Foundations } from "../database/Services.ts"
import { poll } from "../rules/Poll.ts"
import { TestServer } from "./TestServer.ts"

/** A delivery as received. */
export interface Received {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
  /** The client's port: requests over one connection have the same. */
  readonly connection: number
}

/** A status with headers, a handler of the response, or no answer at all. */
type Reply =
  | { readonly status: number; readonly headers?: { readonly [name: string]: string }; readonly body?: string }
  | { readonly respond: (response: ServerResponse) => void }
  | "hang"

export interface Receiver {
  readonly url: string
  readonly port: number
  /** The next delivery; each is returned once. */
  readonly next: Effect.Effect<Received>
  /** All deliveries so far. */
  readonly received: ReadonlyArray<Received>
  /** Sets the answer to later deliveries; it is 204 at first. */
  answer(reply: (received: Received) => Reply): void
}

/** Listens until the scope ends. */
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

type Values = Parameters<typeof Settings.layerTest>[0]

const layerNode = Delivery.layer.pipe(Layer.provide([Sender.layer, EndpointCache.layer]))

/** Endpoints may be on loopback. Names are resolved by the machine unless `dns` is given. */
export const layerWebhooks = (settings: Values = {}, dns: Layer.Layer<Dns.Dns> = NodeDns.layer) =>
  Layer.mergeAll(Webhooks.layer, layerNode).pipe(
    Layer.provideMerge(Addresses.layer),
    Layer.provideMerge(
      Layer.mergeAll(
        dns,
        Settings.layerTest({ webhookAllowLocal: true, ...settings }),
        MasterKey.layerFromKey(Redacted.make(Buffer.alloc(32, 7).toString("base64"))).pipe(Layer.orDie)
      )
    ),
    Layer.provideMerge(Foundations)
  )

/** Another node on the same database, with its own leases, limits and connections. */
export const makeDeliveryNode = Effect.map(Layer.build(Layer.fresh(layerNode)), (node) => node)

/** Creates an endpoint for a receiver, without a delivery of its creation. */
export const makeEndpoint = Effect.fnUntraced(function* (
  url: string,
  input: Partial<typeof WebhookEndpointCreate.Type> = {}
) {
  const sql = yield* SqlClient.SqlClient
  const made = yield* (yield* Webhooks).create({ name: "a receiver", url, ...input })
  yield* sql`DELETE FROM webhook_deliveries WHERE endpoint_id = ${made.webhook.id}`
  return made
})

/** Appends an event and returns its sequence number. */
export const appendEvent = Effect.fnUntraced(function* (event: Partial<NewEvent> = {}) {
  const sql = yield* SqlClient.SqlClient
  const log = yield* EventLog
  return yield* sql.withTransaction(
    Effect.gen(function* () {
      yield* log.append({
        event_type: "product.created",
        resource_type: "product",
        resource_id: "prod_1",
        metadata: {},
        ...event
      })
      const [row] = yield* sql<{ last: number }>`SELECT last FROM event_sequence`
      return row!.last
    })
  )
})

export interface DeliveryRow {
  readonly sequence: number
  readonly status: string
  readonly attempts: number
  readonly due_at: number
  readonly leased_until: number | null
  readonly finished_at: number | null
}

/** An endpoint's deliveries in the order of their events. */
export const deliveriesOf = Effect.fnUntraced(function* (endpointId: string) {
  const sql = yield* SqlClient.SqlClient
  return yield* sql<DeliveryRow>`
    SELECT sequence, status, attempts, due_at, leased_until, finished_at FROM webhook_deliveries
    WHERE endpoint_id = ${endpointId} ORDER BY sequence`
})

/** Waits until an endpoint's deliveries are as wanted: a node writes the result after its receiver has answered. */
export const untilDeliveries = (endpointId: string, wanted: (rows: ReadonlyArray<DeliveryRow>) => boolean) =>
  poll(deliveriesOf(endpointId), wanted)

/** Waits until no delivery of an endpoint is in progress. */
export const untilSettled = (endpointId: string) =>
  untilDeliveries(endpointId, (rows) => rows.every(({ leased_until }) => leased_until === null))

/** Runs a pass and waits until the given number of an endpoint's deliveries have been answered and recorded. */
export const runPass = Effect.fnUntraced(function* (receiver: Receiver, endpointId: string, count = 1) {
  yield* (yield* Delivery).pass
  const received = yield* Effect.replicateEffect(receiver.next, count)
  yield* untilSettled(endpointId)
  return received
})

/** The whole service with its workers; deliveries to loopback are allowed. */
export const layerService = (settings: Values = {}) =>
  Workers.layer.pipe(
    Layer.provide(EventLog.layer),
    Layer.provide(RehearsalClock.layer(() => 0)),
    Layer.provideMerge(TestServer.layerWith({ webhookAllowLocal: true, ...settings }))
  )
