/**
 * The open connections and the clients that hold them. A client is an address; behind a trusted proxy each request names its
 * own client, so a proxy's connections are not limited.
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import type { Socket } from "node:net"
import type { Duplex } from "node:stream"
import { interceptRequests } from "./NodeParts.ts"

/** The requests in progress that share limits. */
export interface Pool {
  /** The position of its count in `Client.inProgress`. */
  readonly index: 0 | 1 | 2 | 3 | 4 | 5
  inProgress: number
  readonly max: number
  readonly maxOfClient: number
  readonly queue: Queue
}

/** Calls `begin` when it is the client's turn; not if the client has disconnected by then. */
export type Queue = (client: Client, response: ServerResponse, begin: () => void) => void

export interface Client {
  readonly address: string
  connections: number
  /** Requests in progress by pool. */
  readonly inProgress: [number, number, number, number, number, number]
}

interface Waiting {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly handle: (request: IncomingMessage, response: ServerResponse) => void
}

/** The state of one connection. Its requests are handled one after the other. */
export interface Connection {
  /** Undefined for a trusted proxy. */
  readonly client: Client | undefined
  /** The response to the request in progress, with the counts that it is part of. */
  current: ServerResponse | undefined
  currentClient: Client | undefined
  currentPool: Pool | undefined
  /** Requests that arrived while another was in progress. */
  readonly waiting: Array<Waiting>
  /** No more requests are taken: the connection is closed after its last response. */
  isClosing: boolean
}

// Each takes some 30 microseconds to parse and 4 KB until its turn comes. Node parses what it has read, up to 64 KiB, in one go.
const waitingOfConnectionMax = 16

const property = Symbol("licensing/edge/listener/Connections")
type Taken = { [property]?: Connection }

/** The state of the connection that a request came on. */
export const connectionOf = ({ socket }: IncomingMessage): Connection | undefined =>
  (socket as Socket & Taken)[property]

/** Whether the connection takes no more requests. */
export const isClosing = (socket: Duplex): boolean => (socket as Duplex & Taken)[property]?.isClosing === true

export type Clients = ReturnType<typeof makeClients>

/** The clients that have a connection or a request in progress. */
export const makeClients = () => {
  const byAddress = new Map<string, Client>()
  return {
    of: (address: string): Client => {
      const existing = byAddress.get(address)
      if (existing !== undefined) return existing
      const client: Client = { address, connections: 0, inProgress: [0, 0, 0, 0, 0, 0] }
      byAddress.set(address, client)
      return client
    },
    get: (address: string | undefined): Client | undefined =>
      address === undefined ? undefined : byAddress.get(address),
    count: (): number => byAddress.size,
    /** Forgets a client that holds nothing. */
    release: (client: Client): void => {
      const { address, connections, inProgress } = client
      if (connections === 0 && inProgress.every((count) => count === 0)) byAddress.delete(address)
    }
  }
}

interface Options {
  readonly clients: Clients
  /** The address of a peer, undefined for a trusted proxy. */
  readonly addressOf: (peer: string) => string | undefined
  /** Connections that one client may hold, 0 = any number. */
  readonly maxOfClient: number
}

/** Takes new connections, and closes those that are too many of one client. */
export const makeConnections = ({ addressOf, clients, maxOfClient }: Options) => {
  const open = new Set<Socket>()
  const isFull = ({ connections }: Client): boolean => maxOfClient !== 0 && connections >= maxOfClient

  const take = (socket: Socket & Taken): void => {
    // A connection comes again, with another parser, after an offer of an upgrade was ignored.
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

  /** Whether a new connection of this peer would be closed. */
  const refuses = (peer: string): boolean => {
    const client = clients.get(addressOf(peer))
    return client !== undefined && isFull(client)
  }

  return { open, refuses, take }
}

/** Makes Node's parser leave the rest of what it has read. */
const stopParsing = -1

/** Takes no more requests of a connection on which too many wait: it is closed once these have their responses. */
const limitPipelined = (socket: Socket, connection: Connection): void =>
  interceptRequests(socket, (onRequest) => (request, keepsAlive) => {
    if (connection.waiting.length < waitingOfConnectionMax) return onRequest(request, keepsAlive)
    connection.isClosing = true
    connection.waiting.at(-1)!.response.shouldKeepAlive = false
    return stopParsing
  })
