/**
 * Authorizes a runtime request by its license key. A mistyped key fails its checksum and touches no storage; a well-formed key is
 * looked up by its hash, once per node. The cache only selects the license's actor. The actor compares the hash with the
 * current one, so it refuses a rotated or foreign key even if the cache is stale. Responses that need no actor, a stored response
 * or the fault of a body, are given only after the key was looked up in the database again.
 */
import { Clock, Context, Effect, Layer, Predicate } from "effect"
import { type HttpRouter, HttpServerRequest } from "effect/http"
import type { HttpApiEndpoint } from "effect/http-api"
import { isRefusal, refuse } from "../../api/Failure.ts"
import { RequestContext } from "../../api/RequestContext.ts"
import { CurrentActor } from "../../auth/CurrentActor.ts"
import { RateLimits } from "../../auth/rateLimits/RateLimits.ts"
import { LicenseIdCache } from "./LicenseIdCache.ts"
import { presentedKey } from "./PresentedKey.ts"
import { IsActivation, LicenseCredential, RuntimeAuthorization, unknownKey } from "./RuntimeAuthorization.ts"

const missing = refuse("LICENSE_KEY_MISSING", "Send the license key as `Authorization: License <LICENSE_KEY>`.")
/** The codes of refusals that precede the actor's check of the key. */
const bodyFaults = new Set<string>(["INVALID_JSON", "VALIDATION_ERROR"])

export const layer = Layer.effect(
  RuntimeAuthorization,
  Effect.gen(function* () {
    const licenseIds = yield* LicenseIdCache
    const limits = yield* RateLimits

    const onFailure = Effect.fnUntraced(function* <E>(error: E, keyHash: string) {
      const code = codeOf(error)
      // The cached key was rotated: it counts as a failed credential.
      if (code === unknownKey.code) licenseIds.forget(keyHash)
      else if (!bodyFaults.has(code ?? "") || (yield* licenseIds.find(keyHash)) !== undefined)
        return yield* Effect.fail(error)
      return yield* licenseIds.refuseKey
    })

    /** Runs the handler for the license of the key, within its rate limits. */
    const admit = (
      handler: Handler,
      endpoint: HttpApiEndpoint.Top,
      license: LicenseCredential["Service"]
    ): Admitted => {
      const { keyHash, licenseId } = license
      const isActivation = Context.get(endpoint.annotations, IsActivation)
      const run = handler.pipe(
        Effect.catch((error) => onFailure(error, keyHash)),
        // One step for both services.
        Effect.updateContext((context: Context.Context<HttpRouter.Provided>) =>
          Context.add(Context.add(context, LicenseCredential, license), CurrentActor, {
            actor_type: "license",
            actor_id: licenseId
          })
        )
      )
      return Effect.withFiber((fiber): Admitted => {
        const request = fiber.getRef(RequestContext)
        const now = fiber.getRef(Clock.Clock).currentTimeMillisUnsafe()
        const refusal = limits.runtime({ licenseId, isActivation }, request, now)
        if (refusal !== undefined) return Effect.fail(refusal)
        request.runtimeCall = { licenseId, operation: endpoint.identifier }
        return run
      })
    }

    const authorize = (handler: Handler, endpoint: HttpApiEndpoint.Top) =>
      Effect.flatMap(HttpServerRequest.HttpServerRequest, (request): Admitted => {
        const presented = presentedKey(request)
        if (presented === "missing") return Effect.fail(missing)
        if (presented === "invalid") return licenseIds.refuseKey
        const { keyHash } = presented
        const licenseId = licenseIds.cached(keyHash)
        if (licenseId !== undefined) return admit(handler, endpoint, { ...presented, licenseId })
        return Effect.flatMap(licenseIds.find(keyHash), (licenseId) =>
          licenseId === undefined ? licenseIds.refuseKey : admit(handler, endpoint, { ...presented, licenseId })
        )
      })

    return RuntimeAuthorization.of({ LicenseKey: (handler, { endpoint }) => authorize(handler, endpoint) })
  })
)

type Middleware = RuntimeAuthorization["Service"]["LicenseKey"]
type Handler = Parameters<Middleware>[0]
type Admitted = ReturnType<Middleware>

/** The framework wraps a handler's error before a credentials middleware sees it. */
const codeOf = (error: unknown): string | undefined => {
  const refusal = Predicate.hasProperty(error, "error") ? error.error : error
  return isRefusal(refusal) ? refusal.code : undefined
}
