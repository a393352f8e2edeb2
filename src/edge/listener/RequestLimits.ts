/**
 * Limits the requests in progress: one of a connection (pipelined ones wait, and reading pauses), some of
 * a client, some of all clients. A request beyond the limits gets 503 in its turn. Probes, documents and
 * large bodies are counted separately: probes work under load, few documents are sent at a time, and bodies take a
 * limited part of the memory. Clients behind a trusted proxy cannot use up the limit of its own probes.
 *
 * It runs for each request, so that it costs a few look-ups and additions.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http"
import type { Socket } from "node:net"
import { Clock, Context, Effect } from "effect"
import type { HttpApiEndpoint } from "effect/http-api"
import { Api } from "../../Api.ts"
import { errorEnvelope, refuse } from "../../contract/api/Failure.ts"
import { pathOf, type RequestHead } from "../../contract/api/RequestHead.ts"
import { BodyBytesMax, bodyBytesMax } from "../../contract/api/Requests.ts"
import { openApiPaths, referencePath, textPaths } from "../documents/publishing/DocumentPaths.ts"
import type { Responses } from "../responses/Responses.ts"
import { type Client, type Clients, type Connection, connectionOf, type Pool, type Queue } from "./Connections.ts"
import { pause, resume } from "./NodeParts.ts"

export interface Limits {
  readonly requestsMax: number

  readonly requestsOfClientMax: number
}

// Each waiting request takes about 4 KB.
const waitingMax = 10_000

const { metrics, ...cheapProbes } = Api.groups.probes.endpoints
// A scrape of the metrics runs several statements.
const probesMax = 64
const probesOfClientMax = 16
/** The probes of a trusted proxy, without metrics, which cost as much as a list. */
const ownProbePaths = new Set<string>(Object.values(cheapProbes).map(({ path }) => path))
// Each proxy sends one probe at a time.
const ownProbesMax = 64
const documentPaths = [referencePath, ...openApiPaths, ...textPaths]
// The largest document has some megabytes, and a slow client holds it for a while.
const documentsMax = 16
const documentsOfClientMax = 4
// A body has up to 256 KiB: these hold 128 MB.
const largeMax = 512
const largeOfClientMax = 128
/** The start of the paths whose operations declare a larger body. */
const batchPaths = Object.values(Api.groups)
  .flatMap(({ endpoints }) => Object.values<HttpApiEndpoint.Top>(endpoints))
  .filter(({ annotations }) => Context.get(annotations, BodyBytesMax) > bodyBytesMax)
  .map(({ path }) => path.split(":", 1)[0]!)
// A body has up to 4 MiB: these hold 64 MB.
const batchesMax = 16
const batchesOfClientMax = 4

const tooMany = refuse(
  "NOT_READY",
  "The service has too many requests in progress: send the request again in a moment."
)

interface Queues {
  readonly requests: Queue
  /** Probes, documents and refusals, which need no credential. */
  readonly others: Queue
}

export const makeRequestLimits = Effect.fnUntraced(function* (
  responses: Responses,
  clients: Clients,
  limits: Limits,
  queues: Queues
) {
  const poolOf = makePools(limits, queues)
  const turnAway = yield* makeTurnAway(responses)
  let waiting = 0

  const isFull = (pool: Pool, client: Client): boolean =>
    pool.inProgress >= pool.max || client.inProgress[pool.index] >= pool.maxOfClient

  const begin = (
    connection: Connection,
    request: IncomingMessage,
    response: ServerResponse,
    handle: RequestListener
  ): void => {
    connection.current = response
    response.on("close", ended)
    const pool = poolOf(request, connection.client === undefined)
    const client = connection.client ?? clientBehindProxy(request)
    if (isFull(pool, client)) {
      if (connection.client === undefined) clients.release(client)
      queues.others(client, response, () => turnAway(request, response, client))
      return
    }
    pool.inProgress++
    client.inProgress[pool.index]++
    connection.currentClient = client
    connection.currentPool = pool
    handle(request, response)
  }

  const clientBehindProxy = (request: IncomingMessage): Client =>
    clients.of(responses.addressOf(request.socket.remoteAddress, request.headers as RequestHead["headers"]) ?? "")

  function ended(this: ServerResponse): void {
    const { req: request } = this
    const connection = connectionOf(request)
    if (connection?.current !== this) return
    const { currentClient: client, currentPool: pool } = connection
    connection.current = undefined
    if (client !== undefined && pool !== undefined) {
      connection.currentClient = undefined
      connection.currentPool = undefined
      pool.inProgress--
      client.inProgress[pool.index]--
      if (connection.client === undefined) clients.release(client)
    }
    // One request per turn of the event loop, so that other connections run between.
    if (connection.waiting.length > 0) setImmediate(next, connection, request.socket)
  }

  const next = (connection: Connection, socket: Socket): void => {
    if (socket.destroyed) {
      waiting -= connection.waiting.length
      connection.waiting.length = 0
      return
    }
    const first = connection.waiting.shift()
    if (first === undefined) return
    waiting--
    if (connection.waiting.length === 0) resume(socket)
    begin(connection, first.request, first.response, first.handle)
  }

  const wait = (
    connection: Connection,
    request: IncomingMessage,
    response: ServerResponse,
    handle: RequestListener
  ): void => {
    if (waiting >= waitingMax) return void request.socket.destroy()
    waiting++
    connection.waiting.push({ request, response, handle })
    pause(request.socket)
  }

  return (handle: RequestListener): RequestListener =>
    (request, response) => {
      const connection = connectionOf(request)
      if (connection === undefined) return handle(request, response)
      if (connection.current === undefined && connection.waiting.length === 0)
        return begin(connection, request, response, handle)
      wait(connection, request, response, handle)
    }
})

const makePools = ({ requestsMax, requestsOfClientMax }: Limits, { others, requests: queue }: Queues) => {
  const requests: Pool = { index: 0, inProgress: 0, max: requestsMax, maxOfClient: requestsOfClientMax, queue }
  const probes: Pool = { index: 1, inProgress: 0, max: probesMax, maxOfClient: probesOfClientMax, queue: others }
  // Own probes do not wait either: a proxy without a timely response removes the node.
  const ownProbes: Pool = {
    index: 5,
    inProgress: 0,
    max: ownProbesMax,
    maxOfClient: ownProbesMax,
    queue: (_client, response, begin) => {
      if (!response.destroyed) begin()
    }
  }
  const documents: Pool = {
    index: 2,
    inProgress: 0,
    max: documentsMax,
    maxOfClient: documentsOfClientMax,
    queue: others
  }
  const large: Pool = { index: 3, inProgress: 0, max: largeMax, maxOfClient: largeOfClientMax, queue }
  const batches: Pool = { index: 4, inProgress: 0, max: batchesMax, maxOfClient: batchesOfClientMax, queue }
  const pools = new Map([
    ...[...ownProbePaths, metrics.path].map((path) => [path, probes] as const),
    ...documentPaths.map((path) => [path, documents] as const)
  ])

  return (request: IncomingMessage, isOfProxy: boolean): Pool => {
    if (isOfProxy && isOwnProbe(request)) return ownProbes
    const { headers, url = "" } = request
    // The paths of the API begin with /a, unless they are written with percent signs or after a host.
    const pool = url.charCodeAt(1) === 97 ? undefined : pools.get(pathOf(url))
    return pool ?? (isLarge(headers) ? (mayBeBatch(url) ? batches : large) : requests)
  }
}

/** A proxy forwards its own probe for no client. */
const isOwnProbe = ({ headers, url = "" }: IncomingMessage): boolean =>
  ownProbePaths.has(url) && headers["x-forwarded-for"] === undefined && headers["forwarded"] === undefined

/** The router decodes percent signs, and takes a target with scheme and host. */
const mayBeBatch = (url: string): boolean =>
  batchPaths.some((path) => url.startsWith(path)) || url.includes("%") || !url.startsWith("/")

const isLarge = (headers: IncomingMessage["headers"]): boolean =>
  (headers["content-length"] ?? "").length > 4 || headers["transfer-encoding"] !== undefined

const warningNanos = 1_000_000_000n

/** Refuses requests with 503, and logs it at most once a second. */
const makeTurnAway = Effect.fnUntraced(function* (responses: Responses) {
  const clock = yield* Clock.Clock
  const services = yield* Effect.context<never>()
  const runSync = Effect.runSyncWith(services)
  const runFork = Effect.runForkWith(services)
  let warnedNanos = -warningNanos
  return (request: IncomingMessage, response: ServerResponse, client: Client): void => {
    const { method = "", url = "" } = request
    const startedNanos = clock.monotonicTimeNanosUnsafe()
    const head: RequestHead = { method, url, headers: request.headers as RequestHead["headers"], source: request }
    const requestId = runSync(responses.requestId(head.headers))
    const context = { requestId, clientAddress: client.network, refused: tooMany.code }
    const now = clock.currentTimeMillisUnsafe()
    const text = JSON.stringify(errorEnvelope(tooMany, requestId, now))
    const summary = {
      method,
      route: undefined,
      status: 503,
      durationNanos: 0n,
      refused: tooMany.code,
      actor: undefined
    }
    const headers = { "content-type": "application/json", "content-length": String(Buffer.byteLength(text)) }
    response.writeHead(503, responses.finish(head, { status: 503, headers }, summary, context, now))
    response.end(method === "HEAD" ? undefined : text)
    if (startedNanos - warnedNanos < warningNanos) return
    warnedNanos = startedNanos
    runFork(Effect.logWarning("Requests are refused: too many are in progress.", { address: client.network }))
  }
})
