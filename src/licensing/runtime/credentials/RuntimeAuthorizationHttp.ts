/**
 * Authorizes a runtime request by its license key. A mistyped key, and any other text while there are no vendor keys,
 * is refused without storage access. A well-formed key is looked up by its hash, once per node. Refusals are signed
 * only after an actor has checked the key; an invalid body needs a separate check.
 */
import { Clock, Context, Effect, Layer, Predicate, Result } from "effect"
import { type HttpRouter, HttpServerRequest } from "effect/http"
import type { HttpApiEndpoint } from "effect/http-api"
import { CurrentActor } from "../../../access/CurrentActor.ts"
import { RateLimits } from "../../../access/rateLimits/RateLimits.ts"
import { readBody } from "../../../access/requests/RequestBody.ts"
import { isRefusal, noteRefused, type Refusal, refuse } from "../../../contract/api/Failure.ts"
import { RequestContext } from "../../../contract/api/RequestContext.ts"
import { nonceIn, signedErrorOf } from "../../../platform/signing/SignedAnswers.ts"
import { Signer } from "../../../platform/signing/Signer.ts"
import { LicenseActors } from "../../engine/LicenseActors.ts"
import { identify } from "../../rules/Explanation.ts"
import { LicenseIdCache } from "./LicenseIdCache.ts"
import { presentedKey } from "./PresentedKey.ts"
import { LicenseCredential, RuntimeAuthorization } from "./RuntimeAuthorization.ts"
import { admissionOf, forgetKey, isStaleKey, responseOf, treatmentOf } from "./RuntimeProtocol.ts"

const missing = refuse("LICENSE_KEY_MISSING", "Send the license key as `Authorization: License <LICENSE_KEY>`.")

export const layer = Layer.effect(
  RuntimeAuthorization,
  Effect.gen(function* () {
    const licenseIds = yield* LicenseIdCache
    const limits = yield* RateLimits
    const actors = yield* LicenseActors
    const signer = yield* Signer

    /** Signs a refusal of a request with a valid key. All other failures stay as they are. */
    const onFailure = Effect.fnUntraced(function* <E>(
      error: E,
      license: LicenseCredential["Service"],
      endpoint: HttpApiEndpoint.Top
    ) {
      const refusal = refusalIn(error)
      if (refusal === undefined) return yield* Effect.fail(error)
      const treatment = treatmentOf(refusal)
      if (treatment === "forgetKey") return yield* forgetKey(licenseIds, license.keyHash)
      if (treatment === "plain") return yield* Effect.fail(error)
      const facts = refusal.facts ?? (yield* factsOf(license))
      const signed = yield* signer.sign(signedErrorOf(refusal, facts, yield* requestedNonce(endpoint)))
      noteRefused(yield* RequestContext, refusal)
      return yield* responseOf(signed, refusal)
    })

    const factsOf = ({ keyHash, licenseId }: LicenseCredential["Service"]) =>
      Effect.catchIf(actors.ask(licenseId, identify, { keyHash }), isStaleKey, () => forgetKey(licenseIds, keyHash))

    const admit = (
      handler: Handler,
      endpoint: HttpApiEndpoint.Top,
      license: LicenseCredential["Service"]
    ): Admitted => {
      const { licenseId } = license
      const admission = admissionOf(endpoint, limits)
      const run = handler.pipe(
        Effect.catch((error) => onFailure(error, license, endpoint)),
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
        admission.note(licenseId, request)
        const refusal = admission.limit(licenseId, request, now)
        return refusal === undefined ? run : Effect.fail(refusal)
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

/** The nonce in the request's body or query, even if these are otherwise invalid. */
const requestedNonce = (endpoint: HttpApiEndpoint.Top) =>
  endpoint.method === "GET" ? nonceInQuery : nonceInBody(endpoint)

const nonceInQuery = Effect.map(HttpServerRequest.HttpServerRequest, ({ url }) => {
  const [nonce, ...others] = URL.parse(url, "http://localhost")?.searchParams.getAll("nonce") ?? []
  return others.length > 0 ? undefined : nonceIn({ nonce })
})

const nonceInBody = (endpoint: HttpApiEndpoint.Top) =>
  Effect.match(readBody(endpoint), {
    onFailure: () => undefined,
    onSuccess: ({ json }) => nonceIn(Result.getOrUndefined(json))
  })
