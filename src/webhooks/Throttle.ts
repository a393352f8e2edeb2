/**
 * How fast deliveries are taken. With nobody waiting for answers there is no limit; beside requests a backlog must leave the
 * processor to those who wait. Without this a backlog of 60,000 made the runtime API up to 3.4 times slower.
 */

/** Deliveries a second beside requests. */
const besideRequestsMax = 4_000
/** And where the event loop has hardly a free moment. */
const besideManyMax = 1_200
const fewFreeMoments = 0.7
/** Requests a second from which on somebody is waiting for answers. */
const requestsFew = 50

/** What happened on this node since the pass before. */
export interface LoadSample {
  readonly millis: number
  /** Requests that were answered. */
  readonly requests: number
  /** The share of the time in which the event loop had something to do, 0 to 1. */
  readonly utilization: number
}

/** Milliseconds to rest after so many deliveries were taken. */
export const restMillisAfter = (taken: number, { millis, requests, utilization }: LoadSample): number => {
  if (requests * 1_000 <= requestsFew * millis) return 0
  return (taken * 1_000) / (utilization > fewFreeMoments ? besideManyMax : besideRequestsMax)
}
