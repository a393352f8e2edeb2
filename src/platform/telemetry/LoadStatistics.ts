/** The load of this process. Background work throttles itself accordingly. */
import { type EventLoopUtilization, performance } from "node:perf_hooks"
import { Context } from "effect"

/** Requests answered since the start. */
export const LoadStatistics = Context.Reference<{ requests: number }>("licensing/platform/telemetry/LoadStatistics", {
  defaultValue: () => ({ requests: 0 })
})

/** Makes a function that returns the share of time since its last call in which the event loop was busy, 0 to 1. */
export const makeUtilization = (): (() => number) => {
  let last: EventLoopUtilization = performance.eventLoopUtilization()
  return () => {
    const now = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(now, last)
    last = now
    return utilization
  }
}
