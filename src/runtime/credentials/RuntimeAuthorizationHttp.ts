/**
 * Lets a runtime request in by its license key. A key that is mistyped fails its check and touches no storage; one that is
 * right is looked up by its hash, once per node. What the cache says is only which license to ask: the license's actor
 * compares the hash with the one it holds, so a rotated or foreign key is refused there whatever is cached here. What is
 * answered without the actor, a kept answer or what is wrong with a body, is answered only to a key that was looked up anew.
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
/** What requests are refused with before their license is asked. */
const unasked = new Set<string>(["INVALID_JSON", "VALIDATION_ERROR"])

export const layer = Layer.effect(
  RuntimeAuthorization,
  Effect.gen(function* () {
    const known = yield* LicenseIdCache
    const limits = yield* RateLimits

    const failed = Effect.fnUntraced(function* <E>(error: E, keyHash: string) {
      const code = codeOf(error)
      // The key was the license's until it was rotated: by now it is a failed credential like any other.
      if (code === unknownKey.code) known.forget(keyHash)
      else if (!unasked.has(code ?? "") || (yield* known.find(keyHash)) !== undefined) return yield* Effect.fail(error)
      return yield* known.refused
    })

    /** Lets the holder of the key in, and runs the handler for it. */
    const admit = (
      handler: Handler,
      endpoint: HttpApiEndpoint.Top,
      license: LicenseCredential["Service"]
    ): Admitted => {
      const { keyHash, licenseId } = license
      const isActivation = Context.get(endpoint.annotations, IsActivation)
      const run = handler.pipe(
        Effect.catch((error) => failed(error, keyHash)),
        // Both in one step.
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
        if (presented === "invalid") return known.refused
        const { keyHash } = presented
        // A request with an Idempotency-Key asks the database several times anyway.
        const licenseId = request.headers["idempotency-key"] === undefined ? known.remembered(keyHash) : undefined
        if (licenseId !== undefined) return admit(handler, endpoint, { ...presented, licenseId })
        return Effect.flatMap(known.find(keyHash), (licenseId) =>
          licenseId === undefined ? known.refused : admit(handler, endpoint, { ...presented, licenseId })
        )
      })

    return RuntimeAuthorization.of({ LicenseKey: (handler, { endpoint }) => authorize(handler, endpoint) })
  })
)

type Middleware = RuntimeAuthorization["Service"]["LicenseKey"]
type Handler = Parameters<Middleware>[0]
type Admitted = ReturnType<Middleware>

/** The framework wraps what a handler fails with before a middleware for credentials sees it. */
const codeOf = (error: unknown): string | undefined => {
  const refusal = Predicate.hasProperty(error, "error") ? error.error : error
  return isRefusal(refusal) ? refusal.code : undefined
}
