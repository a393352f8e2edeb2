/**
 * Which license a key belongs to, by the key's hash. What is remembered says only which license to ask: its actor compares the
 * hash with the one it holds, so a rotated or foreign key is refused there whatever is remembered here.
 */
import { Context, Effect, Layer } from "effect"
import type { Refusal } from "../../api/Failure.ts"
import { RateLimits } from "../../auth/rateLimits/RateLimits.ts"
import { makeRecencyCache } from "../../auth/rateLimits/RecencyCache.ts"
import { LicenseStore } from "../../licenses/engine/LicenseStore.ts"
import { unknownKey } from "./RuntimeAuthorization.ts"

/** Licenses whose key hash is remembered. */
const rememberedMax = 50_000

export class LicenseIdCache extends Context.Service<
  LicenseIdCache,
  {
    /** The license that is remembered, or undefined. */
    remembered(keyHash: string): string | undefined
    /** The license that has this key now, or undefined. */
    find(keyHash: string): Effect.Effect<string | undefined>
    forget(keyHash: string): void
    /** Counts a failed credential, and refuses it. */
    readonly refused: Effect.Effect<never, Refusal<"LICENSE_KEY_INVALID" | "RATE_LIMITED">>
  }
>()("licensing/runtime/credentials/LicenseIdCache") {
  static readonly layer = Layer.effect(
    LicenseIdCache,
    Effect.gen(function* () {
      const store = yield* LicenseStore
      const limits = yield* RateLimits
      const known = makeRecencyCache<string>(rememberedMax)
      return LicenseIdCache.of({
        remembered: known.get,
        find: (keyHash) =>
          Effect.tap(store.licenseIdOf(keyHash), (found) =>
            Effect.sync(() => (found === undefined ? known.delete(keyHash) : known.set(keyHash, found)))
          ),
        forget: known.delete,
        refused: Effect.andThen(limits.failure, Effect.fail(unknownKey))
      })
    })
  )
}
