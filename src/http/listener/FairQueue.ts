/**
 * Begins the requests of the framework path in short rounds, those of different clients in turn. So however many of them
 * arrive, requests of the fast path, whose license key is known, wait for one round at most in each turn of the event loop.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http"
import { type Client, type Clients, connectionOf } from "./Connections.ts"

interface Options {
  readonly nowNanos: () => bigint
  /** Calls back when the next round may begin. */
  readonly later: (next: () => void) => void
}

// Some ten requests.
const roundNanos = 2_000_000n
const pauseMillis = 2

/** After a pause, in which other requests are handled; if there is only one client, after what has arrived. */
export const pauseBetween =
  (clients: Clients): Options["later"] =>
  (next) => {
    if (clients.count() > 1) setTimeout(next, pauseMillis)
    else setImmediate(next)
  }

/** Makes a function that lets the requests of a listener wait for their round. `RequestLimits` limits how many wait. */
export const makeFairQueue = ({ later, nowNanos }: Options) => {
  /** The clients whose requests wait, the next one first. */
  const queues = new Map<Client, Array<Waiting>>()
  let usedNanos = 0n
  let isScheduled = false

  const begin = ({ handle, request, response }: Waiting): void => {
    if (!isScheduled) {
      isScheduled = true
      later(nextRound)
    }
    const began = nowNanos()
    handle(request, response)
    usedNanos += nowNanos() - began
  }

  const nextRound = (): void => {
    isScheduled = false
    usedNanos = 0n
    for (const [client, queue] of queues) {
      if (usedNanos >= roundNanos) return
      // Behind the others; the loop reaches it again.
      queues.delete(client)
      const first = queue.shift()!
      if (queue.length > 0) queues.set(client, queue)
      // Of a client that has disconnected, nothing is begun.
      if (!first.response.destroyed) begin(first)
    }
  }

  return (handle: RequestListener): RequestListener =>
    (request, response) => {
      const client = connectionOf(request)?.currentClient
      const waiting = { handle, request, response }
      if (client === undefined || (queues.size === 0 && usedNanos < roundNanos)) return begin(waiting)
      const queue = queues.get(client)
      if (queue === undefined) queues.set(client, [waiting])
      else queue.push(waiting)
    }
}

interface Waiting {
  readonly handle: RequestListener
  readonly request: IncomingMessage
  readonly response: ServerResponse
}
