/**
 * Counts every response. It runs for each request, so it costs only a look-up by route and two additions. A route's series
 * are created with its first request.
 */
import { Effect, type Metric } from "effect"
import type { Code } from "../../contract/api/ErrorCode.ts"
import * as Metrics from "../../platform/telemetry/Metrics.ts"

interface RouteSeries {
  readonly seconds: Metric.Histogram<number>
  readonly byStatus: Map<number, Metric.Counter<number>>
}

export interface ResponseSummary {
  readonly method: string
  /** The path template; undefined if no route was found. */
  readonly route: string | undefined
  readonly status: number
  readonly durationNanos: bigint
  readonly refused: Code | undefined
  /** The caller of the management API. */
  readonly actor: string | undefined
}

// Callers may send any method; those without a route share one label.
const methods = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])

export const makeRequestMetrics = Effect.map(Effect.context<never>(), (context) => {
  const byMethod = new Map<string, Map<string, RouteSeries>>()
  const refusals = new Map<Code, Metric.Counter<number>>()

  const seriesOf = (method: string, route: string): RouteSeries => {
    const routes = entry(byMethod, method, () => new Map<string, RouteSeries>())
    return entry(routes, route, () => ({ seconds: Metrics.httpSeconds({ method, route }), byStatus: new Map() }))
  }

  return ({ method: sent, route = "none", status, durationNanos, refused }: ResponseSummary): void => {
    const method = methods.has(sent) ? sent : "other"
    const { seconds, byStatus } = seriesOf(method, route)
    seconds.updateUnsafe(Number(durationNanos) / 1e9, context)
    entry(byStatus, status, () => Metrics.httpRequests({ method, route, status: String(status) })).updateUnsafe(
      1,
      context
    )
    if (refused !== undefined) {
      entry(refusals, refused, () => Metrics.refusals({ code: refused })).updateUnsafe(1, context)
    }
  }
})

const entry = <K, V>(map: Map<K, V>, key: K, make: () => V): V => {
  const existing = map.get(key)
  if (existing !== undefined) return existing
  const created = make()
  map.set(key, created)
  return created
}
