/**
 * Authorizes a runtime request by its license key. A mistyped key fails its check and touches no storage; neither does other text
 * while there are no vendor keys. A well-formed key is looked up by its hash, once per node. The cache only selects the license's actor. The actor compares the hash with the
 * current one, so it refuses a rotated or foreign key even if the cache is stale. A refusal is signed once an actor has found the
 * key right; for the fault of a body, which needs no actor otherwise, one is asked.
 */
import { Clock, Context, Effect, Layer, Predicate, Result } from "effect"
import { type HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import type { HttpApiEndpoint } from "effect/http-api"
import { statuses } from "../../api/ErrorCode.ts"
import { isRefusal, noteRefused, type Refusal, refuse } from "../../api/Failure.ts"
import { bodyFault, parseBody } from "../../api/JsonText.ts"
import { currentMeta } from "../../api/Meta.ts"
import { RequestContext } from "../../api/RequestContext.ts"
import { CurrentActor } from "../../auth/CurrentActor.ts"
import { RateLimits } from "../../auth/rateLimits/RateLimits.ts"
import { bytesOf } from "../../http/Intake.ts"
import { LicenseActors } from "../../licenses/engine/LicenseActors.ts"
import { identify } from "../../licenses/rules/Explanation.ts"
import { isSignable, nonceIn, signedEnvelope, signedErrorOf } from "../../signing/SignedAnswers.ts"
import { Signer } from "../../signing/Signer.ts"
import { LicenseIdCache } from "./LicenseIdCache.ts"
import { presentedKey } from "./PresentedKey.ts"
import { IsActivation, LicenseCredential, RuntimeAuthorization, unknownKey } from "./RuntimeAuthorization.ts"

const missing = refuse("LICENSE_KEY_MISSING", "Send the license key as `Authorization: License <LICENSE_KEY>`.")

export const layer = Layer.effect(
  RuntimeAuthorization,
  Effect.gen(function* () {
    const licenseIds = yield* LicenseIdCache
    const limits = yield* RateLimits
    const actors = yield* LicenseActors
    const signer = yield* Signer

    /** Signs a refusal of a request whose key is right; every other failure stays as it is. */
    const onFailure = Effect.fnUntraced(function* <E>(error: E, license: LicenseCredential["Service"]) {
      const refusal = refusalIn(error)
      if (refusal === undefined) return yield* Effect.fail(error)
      if (refusal.code === unknownKey.code) return yield* refuseStale(license)
      if (!isSignable(refusal.code)) return yield* Effect.fail(error)
      const facts = refusal.facts ?? (yield* factsOf(license))
      const signed = yield* signer.sign(signedErrorOf(refusal, facts, yield* requestedNonce))
      yield* noteRefused(refusal)
      const text = signedEnvelope("error", signed, yield* currentMeta)
      return HttpServerResponse.text(text, { status: statuses[refusal.code], contentType: "application/json" })
    })

    /** The cached key was rotated, or its license deleted: it counts as a failed credential. */
    const refuseStale = ({ keyHash }: LicenseCredential["Service"]) => {
      licenseIds.forget(keyHash)
      return licenseIds.refuseKey
    }

    const factsOf = (license: LicenseCredential["Service"]) =>
      Effect.catchIf(actors.ask(license.licenseId, identify, { keyHash: license.keyHash }), isStale, () =>
        refuseStale(license)
      )

    /** Runs the handler for the license of the key, within its rate limits. */
    const admit = (
      handler: Handler,
      endpoint: HttpApiEndpoint.Top,
      license: LicenseCredential["Service"]
    ): Admitted => {
      const { licenseId } = license
      const isActivation = Context.get(endpoint.annotations, IsActivation)
      const run = handler.pipe(
        Effect.catch((error) => onFailure(error, license)),
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
        const presented = presentedKey(request, licenseIds)
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
const refusalIn = (error: unknown): Refusal | undefined => {
  const refusal = Predicate.hasProperty(error, "error") ? error.error : error
  return isRefusal(refusal) ? (refusal as Refusal) : undefined
}

const isStale = (refusal: Refusal): refusal is Refusal<"LICENSE_KEY_INVALID" | "NOT_FOUND"> =>
  refusal.code !== "NOT_READY"

/** The nonce in the request's body, even if the body is not valid otherwise. */
const requestedNonce = Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
  Effect.map(
    Effect.orElseSucceed(bytesOf(request), () => Buffer.alloc(0)),
    (bytes) => {
      const body = bodyFault(bytes) === undefined ? parseBody(Buffer.from(bytes).toString()) : undefined
      return body !== undefined && Result.isSuccess(body) ? nonceIn(body.success) : undefined
    }
  )
)
