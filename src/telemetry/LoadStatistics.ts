/** What this process does for those who wait for answers, for work in the background that takes it into account. */
import { type EventLoopUtilization, performance } from "node:perf_hooks"
import { Context } from "effect"

/** Requests that were answered since the start. */
export const LoadStatistics = Context.Reference<{ requests: number }>("licensing/telemetry/LoadStatistics", {
  defaultValue: () => ({ requests: 0 })
})

/** A function that gives the share of the time since its last call in which the event loop had something to do, 0 to 1. */
export const makeUtilization = (): (() => number) => {
  let last: EventLoopUtilization = performance.eventLoopUtilization()
  return () => {
    const now = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(now, last)
    last = now
    return utilization
  }
}
