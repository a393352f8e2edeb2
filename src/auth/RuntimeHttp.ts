/**
 * Lets a runtime request in by its license key. A key that is mistyped fails its check and touches no storage; one that is
 * right is looked up by its hash, once per node. What the cache says is only which license to ask: the license's actor
 * compares the hash with the one it holds, so a rotated or foreign key is refused there whatever is cached here.
 */
import { Effect, Layer, Option } from "effect"
import { HttpServerRequest } from "effect/http"
import { refuse } from "../api/Failure.ts"
import * as LicenseKey from "../licenses/LicenseKey.ts"
import { LicenseStore } from "../licenses/LicenseStore.ts"
import { CurrentActor } from "./CurrentActor.ts"
import { LicenseCredential, RuntimeAuthorization } from "./Runtime.ts"

/** Licenses whose key hash is remembered; the oldest is forgotten beyond. */
const rememberedMax = 50_000

const missing = refuse("LICENSE_KEY_MISSING", "Send the license key as `Authorization: License <LICENSE_KEY>`.")
const invalid = refuse("LICENSE_KEY_INVALID", "The license key is not valid: check it for typing errors.")

export const layer = Layer.effect(
  RuntimeAuthorization,
  Effect.gen(function* () {
    const store = yield* LicenseStore
    const remembered = new Map<string, string>()

    const licenseIdOf = (keyHash: string): Effect.Effect<string | undefined> => {
      const known = remembered.get(keyHash)
      return known === undefined
        ? Effect.tap(store.licenseIdOf(keyHash), (found) => Effect.sync(() => remember(keyHash, found)))
        : Effect.succeed(known)
    }

    const remember = (keyHash: string, licenseId: string | undefined): void => {
      if (licenseId === undefined) return
      if (remembered.size >= rememberedMax) remembered.delete(remembered.keys().next().value as string)
      remembered.set(keyHash, licenseId)
    }

    const authorize = Effect.fnUntraced(function* <A, E, R>(handler: Effect.Effect<A, E, R | LicenseCredential>) {
      const { headers } = yield* HttpServerRequest.HttpServerRequest
      const credential = /^license +(.*)$/i.exec(headers.authorization ?? "")
      if (credential === null) return yield* missing
      const key = LicenseKey.parse(credential[1]!.trim())
      if (Option.isNone(key)) return yield* invalid
      const keyHash = LicenseKey.hashHex(key.value)
      const licenseId = yield* licenseIdOf(keyHash)
      if (licenseId === undefined) return yield* invalid
      return yield* handler.pipe(
        Effect.provideService(LicenseCredential, { licenseId, keyHash }),
        Effect.provideService(CurrentActor, { actor_type: "license", actor_id: licenseId })
      )
    })

    return RuntimeAuthorization.of({ LicenseKey: (handler) => authorize(handler) })
  })
)
