/**
 * Finds a key's license by the key's hash. The cache only selects the license's actor. The actor compares the hash with
 * the current one, so it refuses a rotated or foreign key even if the cache is stale.
 */
import { Context, Effect, Layer } from "effect"
import { RateLimits } from "../../../access/rateLimits/RateLimits.ts"
import { makeRecencyCache } from "../../../access/rateLimits/RecencyCache.ts"
import type { Refusal } from "../../../contract/api/Failure.ts"
import { LicenseStore } from "../../lookups/LicenseStore.ts"
import { VendorKeys } from "../../management/VendorKeys.ts"
import { unknownKey } from "./RuntimeAuthorization.ts"

const cachedMax = 50_000

export class LicenseIdCache extends Context.Service<
  LicenseIdCache,
  {
    cached(keyHash: string): string | undefined
    /** Reads the license of this key from the database, and updates the cache. */
    find(keyHash: string): Effect.Effect<string | undefined>
    forget(keyHash: string): void
    /** Whether credentials that are not generated keys have to be looked up. */
    mayBeVendorKeys(): boolean
    /** Counts a failed credential, and refuses it. */
    readonly refuseKey: Effect.Effect<never, Refusal<"LICENSE_KEY_INVALID" | "RATE_LIMITED">>
  }
>()("licensing/licensing/runtime/credentials/LicenseIdCache") {
  static readonly layer = Layer.effect(
    LicenseIdCache,
    Effect.gen(function* () {
      const store = yield* LicenseStore
      const limits = yield* RateLimits
      const vendorKeys = yield* VendorKeys
      const cache = makeRecencyCache<string>(cachedMax)
      return LicenseIdCache.of({
        cached: cache.get,
        find: (keyHash) =>
          Effect.tap(store.licenseIdOf(keyHash), (licenseId) =>
            Effect.sync(() => (licenseId === undefined ? cache.delete(keyHash) : cache.set(keyHash, licenseId)))
          ),
        forget: cache.delete,
        mayBeVendorKeys: vendorKeys.mayExist,
        refuseKey: Effect.andThen(limits.failure, Effect.fail(unknownKey))
      })
    })
  )
}
