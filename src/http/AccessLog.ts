/**
 * One record for each request: method, route, status, duration, why it was refused, who asked. Never the path or query as sent, a
 * header or a body: those hold keys and tokens. Management requests are told at level info; runtime requests and probes, of which
 * there are thousands a second, at debug, and so is what a limit turned away, which may be as much.
 */
import { Effect, LogLevel } from "effect"
import type { ResponseSummary } from "./RequestMetrics.ts"

/** Tells of an answered request. */
export const recorded = ({
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
      duration_ms: Number(durationNanos / 1_000n) / 1_000,
      ...(refused === undefined ? undefined : { code: refused }),
      ...(actor === undefined ? undefined : { actor })
    })
  })

const levelOf = (route: string | undefined) =>
  route?.startsWith("/api/v1/") && !route.startsWith("/api/v1/license/") ? "Info" : "Debug"
