/**
 * The open connections and their clients. A client is an address, of IPv6 all addresses with the same first half; behind a trusted
 * proxy each request names its client, so a proxy's connections are not limited.
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import type { Socket } from "node:net"
import type { Duplex } from "node:stream"
import { networkOf } from "../../access/rateLimits/CountedNetwork.ts"
import { interceptRequests } from "./NodeParts.ts"

/** Requests in progress that share limits. */
export interface Pool {
  /** The position of the count in `Client.inProgress`. */
  readonly index: 0 | 1 | 2 | 3 | 4 | 5
  inProgress: number
  readonly max: number
  readonly maxOfClient: number
  readonly queue: Queue
}

/** Calls `begin` in the client's turn, unless the client has disconnected. */
export type Queue = (client: Client, response: ServerResponse, begin: () => void) => void

export interface Client {
  /** Its address, or the first half of an IPv6 address. */
  readonly network: string
  connections: number
  readonly inProgress: [number, number, number, number, number, number]
}

interface Waiting {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly handle: (request: IncomingMessage, response: ServerResponse) => void
}

/** The state of one connection. It handles one request at a time. */
export interface Connection {
  /** Undefined for a trusted proxy. */
  readonly client: Client | undefined
  current: ServerResponse | undefined
  currentClient: Client | undefined
  currentPool: Pool | undefined
  readonly waiting: Array<Waiting>
  /** Takes no more requests: the connection closes after its last response. */
  isClosing: boolean
}

// Each request takes about 30 microseconds to parse, and 4 KB while it waits. Node parses all it has read, up to 64 KiB, at once.
const waitingOfConnectionMax = 16

const property = Symbol("licensing/edge/listener/Connections")
type Taken = { [property]?: Connection }

export const connectionOf = ({ socket }: IncomingMessage): Connection | undefined =>
  (socket as Socket & Taken)[property]

export const isClosing = (socket: Duplex): boolean => (socket as Duplex & Taken)[property]?.isClosing === true

export type Clients = ReturnType<typeof makeClients>

export const makeClients = () => {
  const byNetwork = new Map<string, Client>()
  return {
    of: (address: string): Client => {
      const network = networkOf(address)
      const existing = byNetwork.get(network)
      if (existing !== undefined) return existing
      const client: Client = { network, connections: 0, inProgress: [0, 0, 0, 0, 0, 0] }
      byNetwork.set(network, client)
      return client
    },
    get: (address: string | undefined): Client | undefined =>
      address === undefined ? undefined : byNetwork.get(networkOf(address)),
    count: (): number => byNetwork.size,
    release: (client: Client): void => {
      const { connections, inProgress, network } = client
      if (connections === 0 && inProgress.every((count) => count === 0)) byNetwork.delete(network)
    }
  }
}

interface Options {
  readonly clients: Clients
  /** Undefined for a trusted proxy. */
  readonly addressOf: (peer: string) => string | undefined
  /** 0 means unlimited. */
  readonly maxOfClient: number
}

export const makeConnections = ({ addressOf, clients, maxOfClient }: Options) => {
  const open = new Set<Socket>()
  const isFull = ({ connections }: Client): boolean => maxOfClient !== 0 && connections >= maxOfClient

  const take = (socket: Socket & Taken): void => {
    // A connection is handed back with another parser after `UpgradeOffers` ignored an offer.
    const existing = socket[property]
    if (existing !== undefined) return void limitPipelined(socket, existing)
    const peer = socket.remoteAddress
    if (peer === undefined) return void socket.destroy()
    const address = addressOf(peer)
    const client = address === undefined ? undefined : clients.of(address)
    if (client !== undefined) {
      if (isFull(client)) return void socket.destroy()
      client.connections++
    }
    const connection: Connection = {
      client,
      current: undefined,
      currentClient: undefined,
      currentPool: undefined,
      waiting: [],
      isClosing: false
    }
    socket[property] = connection
    limitPipelined(socket, connection)
    open.add(socket)
    socket.once("close", () => {
      open.delete(socket)
      if (client === undefined) return
      client.connections--
      clients.release(client)
    })
  }

  const refuses = (peer: string): boolean => {
    const client = clients.get(addressOf(peer))
    return client !== undefined && isFull(client)
  }

  return { open, refuses, take }
}

/** Makes Node's parser leave its remaining input. */
const stopParsing = -1

/** A connection with too many waiting requests takes no more, and is closed after the responses to these. */
const limitPipelined = (socket: Socket, connection: Connection): void =>
  interceptRequests(socket, (onRequest) => (request, keepsAlive) => {
    if (connection.waiting.length < waitingOfConnectionMax) return onRequest(request, keepsAlive)
    connection.isClosing = true
    connection.waiting.at(-1)!.response.shouldKeepAlive = false
    return stopParsing
  })
