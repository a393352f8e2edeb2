/**
 * Starts requests in short rounds, one client after another. So however many of them arrive, requests of the fast
 * path, whose license key is known, wait for at most one round in each turn of the event loop.
 */
import type { RequestListener, ServerResponse } from "node:http"
import { type Client, type Clients, connectionOf, type Queue } from "./Connections.ts"

interface Options {
  readonly nowNanos: () => bigint
  readonly roundNanos: bigint
  readonly later: (next: () => void) => void
}

/** Pauses so that other requests run; with only one client it handles pending input instead. */
export const pauseBetween =
  (clients: Clients, pauseMillis: number): Options["later"] =>
  (next) => {
    if (clients.count() > 1) setTimeout(next, pauseMillis)
    else setImmediate(next)
  }

/** `RequestLimits` limits how many requests wait. */
export const makeFairQueue = ({ later, nowNanos, roundNanos }: Options): Queue => {
  /** The clients with waiting requests; the next client is first. */
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
      // Moves the client to the end; the loop reaches it again.
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
