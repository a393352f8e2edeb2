import { Context, Effect, Layer, Redacted } from "effect"
import type { HttpServerRequest } from "effect/http"
import { authorizationHeader } from "../../access/AuthorizationHeader.ts"
import { RateLimits } from "../../access/rateLimits/RateLimits.ts"
import { type Refusal, refuse } from "../../contract/api/Failure.ts"
import { Settings } from "../../platform/config/Config.ts"
import { sha256 } from "../../platform/signing/Digest.ts"
import { Exposition } from "./MetricsExposition.ts"

type Denied = Refusal<"TOKEN_MISSING" | "TOKEN_MALFORMED" | "TOKEN_INVALID">

export class MetricsAccess extends Context.Service<
  MetricsAccess,
  {
    metrics(request: HttpServerRequest.HttpServerRequest): Effect.Effect<string, Denied | Refusal<"RATE_LIMITED">>
  }
>()("licensing/insight/ops/MetricsAccess") {
  static readonly layer = Layer.effect(
    MetricsAccess,
    Effect.gen(function* () {
      const { metricsToken } = yield* Settings
      const { text } = yield* Exposition
      const { failure } = yield* RateLimits
      if (metricsToken === undefined) return MetricsAccess.of({ metrics: () => text })
      const expected = hashOf(Redacted.value(metricsToken))
      return MetricsAccess.of({
        metrics: (request) => {
          const denied = denial(request, expected)
          if (denied === undefined) return text
          return Effect.andThen(denied.code === "TOKEN_MISSING" ? Effect.void : failure, Effect.fail(denied))
        }
      })
    })
  )
}

const denial = (request: HttpServerRequest.HttpServerRequest, expected: Buffer): Denied | undefined => {
  const { scheme, credential, repeated } = authorizationHeader(request)
  if (!repeated && (scheme === "" || (scheme === "bearer" && credential === ""))) {
    return refuse("TOKEN_MISSING", "Send the metrics token: Authorization: Bearer <METRICS_TOKEN>.")
  }
  if (repeated || scheme !== "bearer") {
    return refuse("TOKEN_MALFORMED", "Send the metrics token once, as Authorization: Bearer <METRICS_TOKEN>.")
  }
  return hashOf(credential).equals(expected)
    ? undefined
    : refuse("TOKEN_INVALID", "The metrics token is wrong: use the one from the service's settings.")
}

// Comparing digests leaks nothing about the token by timing.
const hashOf = (token: string): Buffer => Buffer.from(sha256(Buffer.from(token, "latin1")))
