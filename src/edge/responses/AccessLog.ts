/**
 * One log record per request: method, route, status, duration, refusal code, caller. A record never contains a path or query as
 * sent, a header or a body, because these contain keys and tokens. Management requests are logged at level info. Runtime
 * requests and probes, thousands a second, are logged at debug, and so are rate-limited requests, which may be as many.
 */
import { Effect, LogLevel } from "effect"
import type { RequestContext } from "../../contract/api/RequestContext.ts"
import type { ResponseSummary } from "./RequestMetrics.ts"

export const logResponse = ({
  actor,
  durationNanos,
  method,
  refused,
  route,
  status
}: ResponseSummary): Effect.Effect<void> =>
  Effect.withFiber((fiber) => {
    const level = status === 429 ? "Debug" : levelOf(route)
    if (LogLevel.isGreaterThan(fiber.cache.minimumLogLevel, level)) return Effect.void
    return Effect.logWithLevel(level)("Answered a request.", {
      method,
      route: route ?? "none",
      status,
      duration_ms: millisOf(durationNanos),
      ...(refused === undefined ? undefined : { code: refused }),
      ...(actor === undefined ? undefined : { actor })
    })
  })

/** Warns of a 503. Probes are left out: a service that is not ready answers each of them so. */
export const logTurnedAway = (
  { durationNanos, method, route }: ResponseSummary,
  { unavailable }: RequestContext
): Effect.Effect<void> =>
  unavailable === undefined || route?.startsWith("/api/") === false
    ? Effect.void
    : Effect.logWarning("A request was turned away.", {
        method,
        route,
        ...unavailable,
        waited_ms: millisOf(durationNanos)
      })

const millisOf = (nanos: bigint): number => Number(nanos / 1_000n) / 1_000

const levelOf = (route: string | undefined) =>
  route?.startsWith("/api/v1/") && !route.startsWith("/api/v1/license/") ? "Info" : "Debug"
