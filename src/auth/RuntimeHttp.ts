/**
 * Lets a runtime request in by its license key. A key that is mistyped fails its check and touches no storage; one that is
 * right is looked up by its hash, once per node. What the cache says is only which license to ask: the license's actor
 * compares the hash with the one it holds, so a rotated or foreign key is refused there whatever is cached here. What is
 * answered without the actor, a kept answer or what is wrong with a body, is answered only to a key that was looked up anew.
 */
import { Context, Effect, Layer, Option, Predicate, Redacted } from "effect"
import { type HttpRouter, HttpServerRequest } from "effect/http"
import type { HttpApiEndpoint } from "effect/http-api"
import { isRefusal, refuse } from "../api/Failure.ts"
import { RequestContext } from "../api/RequestContext.ts"
import * as LicenseKey from "../licenses/LicenseKey.ts"
import { LicenseStore } from "../licenses/LicenseStore.ts"
import { authorizationHeader } from "./AuthorizationHeader.ts"
import { CurrentActor } from "./CurrentActor.ts"
import { makeGenerations } from "./Generations.ts"
import { RateLimits } from "./RateLimits.ts"
import { IsActivation, LicenseCredential, RuntimeAuthorization } from "./Runtime.ts"

/** Licenses whose key hash is remembered. */
const rememberedMax = 50_000

const missing = refuse("LICENSE_KEY_MISSING", "Send the license key as `Authorization: License <LICENSE_KEY>`.")
const invalid = refuse("LICENSE_KEY_INVALID", "The license key is not valid: check it for typing errors.")
/** What requests are refused with before their license is asked. */
const unasked = new Set<string>(["INVALID_JSON", "VALIDATION_ERROR"])

export const layer = Layer.effect(
  RuntimeAuthorization,
  Effect.gen(function* () {
    const store = yield* LicenseStore
    const limits = yield* RateLimits
    const remembered = makeGenerations<string>(rememberedMax)
    const refused = Effect.andThen(limits.failure, Effect.fail(invalid))

    const licenseIdOf = (keyHash: string) =>
      Effect.tap(store.licenseIdOf(keyHash), (found) =>
        Effect.sync(() => (found === undefined ? remembered.delete(keyHash) : remembered.set(keyHash, found)))
      )

    const failed = Effect.fnUntraced(function* <E>(error: E, keyHash: string) {
      const code = codeOf(error)
      // The key was the license's until it was rotated: by now it is a failed credential like any other.
      if (code === invalid.code) remembered.delete(keyHash)
      else if (!unasked.has(code ?? "") || (yield* licenseIdOf(keyHash)) !== undefined) return yield* Effect.fail(error)
      return yield* refused
    })

    /** Lets the holder of the key in, and runs the handler for it. */
    const admit = (
      handler: Handler,
      endpoint: HttpApiEndpoint.Top,
      license: LicenseCredential["Service"]
    ): Admitted => {
      const { keyHash, licenseId } = license
      const run = Effect.withFiber((fiber): Handler => {
        fiber.getRef(RequestContext).runtimeCall = { licenseId, operation: endpoint.identifier }
        return handler
      }).pipe(
        Effect.catch((error) => failed(error, keyHash)),
        // Both in one step.
        Effect.updateContext((context: Context.Context<HttpRouter.Provided>) =>
          Context.add(Context.add(context, LicenseCredential, license), CurrentActor, {
            actor_type: "license",
            actor_id: licenseId
          })
        )
      )
      return Effect.andThen(limits.runtime(licenseId, Context.get(endpoint.annotations, IsActivation)), run)
    }

    const authorize = (handler: Handler, endpoint: HttpApiEndpoint.Top) =>
      Effect.flatMap(HttpServerRequest.HttpServerRequest, (request): Admitted => {
        const { scheme, credential, repeated } = authorizationHeader(request)
        if (repeated) return refused
        if (scheme !== "license" || credential === "") return Effect.fail(missing)
        const key = LicenseKey.parse(credential)
        if (Option.isNone(key)) return refused
        const keyHash = LicenseKey.hashHex(key.value)
        const licenseKey = () => Redacted.make(key.value)
        // A request with an Idempotency-Key asks the database several times anyway.
        const known = request.headers["idempotency-key"] === undefined ? remembered.get(keyHash) : undefined
        if (known !== undefined) return admit(handler, endpoint, { licenseId: known, keyHash, licenseKey })
        return Effect.flatMap(licenseIdOf(keyHash), (licenseId) =>
          licenseId === undefined ? refused : admit(handler, endpoint, { licenseId, keyHash, licenseKey })
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
