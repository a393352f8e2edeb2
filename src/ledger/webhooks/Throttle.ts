/**
 * Limits the rate of claims while there are API requests: without it a backlog of 60,000 deliveries made the runtime
 * API up to 3.4 times slower.
 */

/** Deliveries a second during requests. */
const rateWithRequestsMax = 4_000
/** Deliveries a second while the event loop is busy. */
const rateWhenBusyMax = 1_200
const busyUtilization = 0.7
/** Up to this number of requests a second, deliveries are not throttled. */
const requestsFew = 50

/** The load of this node since the previous pass. */
export interface LoadSample {
  readonly millis: number
  /** Requests answered. */
  readonly requests: number
  /** The share of time in which the event loop was busy, 0 to 1. */
  readonly utilization: number
}

/** The pause after a claim of this number of deliveries. */
export const pauseMillisAfter = (claimed: number, { millis, requests, utilization }: LoadSample): number => {
  if (requests * 1_000 <= requestsFew * millis) return 0
  return (claimed * 1_000) / (utilization > busyUtilization ? rateWhenBusyMax : rateWithRequestsMax)
}
