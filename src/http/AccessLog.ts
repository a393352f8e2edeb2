/**
 * One record for each request: method, route, status, duration. Never the path or query as sent, a header or a body: those hold
 * ids, keys and tokens. Management requests are told at level info; runtime requests and probes, of which there are thousands a
 * second, at debug.
 */
import { Context, Effect, LogLevel } from "effect"
import { HttpRouter, type HttpServerRequest, type HttpServerResponse } from "effect/http"

/** Tells of an answered request. Runs where the router has left the route that it found. */
export const recorded = (
  request: HttpServerRequest.HttpServerRequest,
  response: HttpServerResponse.HttpServerResponse,
  durationNanos: bigint
): Effect.Effect<void> =>
  Effect.withFiber((fiber) => {
    const route = Context.getOrUndefined(fiber.context, HttpRouter.RouteContext)?.route.path
    const level = levelOf(route)
    if (LogLevel.isGreaterThan(fiber.cache.minimumLogLevel, level)) return Effect.void
    return Effect.logWithLevel(level)("Answered a request.", {
      method: request.method,
      route: route ?? "none",
      status: response.status,
      duration_ms: Number(durationNanos / 1_000n) / 1_000
    })
  })

const levelOf = (route: string | undefined) =>
  route?.startsWith("/api/v1/") && !route.startsWith("/api/v1/license/") ? "Info" : "Debug"
