/** Signs customers in at their page. */
import { Context, Effect, Layer } from "effect"
import { CurrentActor } from "../../access/CurrentActor.ts"
import type { Refusal } from "../../contract/api/Failure.ts"
import { LicenseIdCache } from "../runtime/credentials/LicenseIdCache.ts"
import { keyIn } from "../runtime/credentials/PresentedKey.ts"
import { unknownKey } from "../runtime/credentials/RuntimeAuthorization.ts"
import type { PortalSession } from "./PortalAccess.ts"
import { PortalLinks } from "./PortalLinks.ts"
import { PortalSessions } from "./PortalSessions.ts"

interface SignedIn {
  readonly token: string
  readonly session: PortalSession["Service"]
}

export class PortalSignIns extends Context.Service<
  PortalSignIns,
  {
    byKey(licenseKey: string): Effect.Effect<SignedIn, Refusal<"LICENSE_KEY_INVALID">>
    byLink(token: string): Effect.Effect<SignedIn, Refusal<"TOKEN_INVALID">>
  }
>()("licensing/licensing/portal/PortalSignIns") {
  static readonly layer = Layer.effect(
    PortalSignIns,
    Effect.gen(function* () {
      const sessions = yield* PortalSessions
      const licenseIds = yield* LicenseIdCache
      const links = yield* PortalLinks

      const byKey = Effect.fn("PortalSignIns.byKey")(function* (text: string) {
        const key = keyIn(text.trim(), licenseIds)
        const licenseId = key && (yield* licenseIds.find(key.keyHash))
        if (key === undefined || licenseId === undefined) return yield* unknownKey
        return yield* Effect.provideService(
          sessions.begin({ kind: "license", licenseId, keyHash: key.keyHash }),
          CurrentActor,
          { actor_type: "license", actor_id: licenseId }
        )
      })

      const byLink = Effect.fn("PortalSignIns.byLink")(function* (token: string) {
        const address = yield* links.redeem(token)
        return yield* Effect.provideService(sessions.begin({ kind: "address", address }), CurrentActor, {
          actor_type: "system",
          actor_id: "customer-page"
        })
      })

      return PortalSignIns.of({ byKey, byLink })
    })
  )
}
