/**
 * Begins requests in short rounds, those of different clients in turn. So however many of them arrive, requests of the fast
 * path, whose license key is known, wait for one round at most in each turn of the event loop.
 */
import type { RequestListener, ServerResponse } from "node:http"
import { type Client, type Clients, connectionOf, type Queue } from "./Connections.ts"

interface Options {
  readonly nowNanos: () => bigint
  /** What the requests of one round may take. */
  readonly roundNanos: bigint
  /** Calls back when the next round may begin. */
  readonly later: (next: () => void) => void
}

/** After a pause, in which other requests are handled; if there is only one client, after what has arrived. */
export const pauseBetween =
  (clients: Clients, pauseMillis: number): Options["later"] =>
  (next) => {
    if (clients.count() > 1) setTimeout(next, pauseMillis)
    else setImmediate(next)
  }

/** `RequestLimits` limits how many requests wait. */
export const makeFairQueue = ({ later, nowNanos, roundNanos }: Options): Queue => {
  /** The clients whose requests wait, the next one first. */
  const queues = new Map<Client, Array<Waiting>>()
  let usedNanos = 0n
  let isScheduled = false

  const run = (begin: () => void): void => {
    if (!isScheduled) {
      isScheduled = true
      later(nextRound)
    }
    const began = nowNanos()
    begin()
    usedNanos += nowNanos() - began
  }

  const nextRound = (): void => {
    isScheduled = false
    usedNanos = 0n
    for (const [client, queue] of queues) {
      if (usedNanos >= roundNanos) return
      // Behind the others; the loop reaches it again.
      queues.delete(client)
      const { begin, response } = queue.shift()!
      if (queue.length > 0) queues.set(client, queue)
      if (!response.destroyed) run(begin)
    }
  }

  return (client, response, begin) => {
    if (queues.size === 0 && usedNanos < roundNanos) return run(begin)
    const queue = queues.get(client)
    if (queue === undefined) queues.set(client, [{ response, begin }])
    else queue.push({ response, begin })
  }
}

/** Lets the requests of a listener wait in the queue of their pool. */
export const inFairTurns =
  (handle: RequestListener): RequestListener =>
  (request, response) => {
    const connection = connectionOf(request)
    const client = connection?.currentClient
    const pool = connection?.currentPool
    if (client === undefined || pool === undefined) handle(request, response)
    else pool.queue(client, response, () => handle(request, response))
  }

interface Waiting {
  readonly response: ServerResponse
  readonly begin: () => void
}
