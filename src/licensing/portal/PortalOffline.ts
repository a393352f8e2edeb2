/** The air-gap exchange of the customer's page: the request of a machine, answered by the runtime's own rules. */
import { Context, Effect, Layer } from "effect"
import { CurrentActor } from "../../access/CurrentActor.ts"
import { LicenseIdCache } from "../runtime/credentials/LicenseIdCache.ts"
import { keyIn } from "../runtime/credentials/PresentedKey.ts"
import { unknownKey } from "../runtime/credentials/RuntimeAuthorization.ts"
import { Runtime } from "../runtime/Runtime.ts"
import type { OfflineRequest } from "../runtime/RuntimeRequests.ts"
import type { PortalOwner } from "./PortalAccess.ts"
import { PortalLicenses } from "./PortalLicenses.ts"

const make = Effect.gen(function* () {
  const runtime = yield* Runtime
  const licenses = yield* PortalLicenses
  const licenseIds = yield* LicenseIdCache

  /** The envelope is encrypted with the license key, which nothing stores: the page sends it. */
  const exchange = Effect.fn("PortalOffline.exchange")(function* (
    owner: PortalOwner,
    licenseId: string,
    { license_key, request }: { readonly license_key: string; readonly request: OfflineRequest }
  ) {
    yield* licenses.own(owner, licenseId)
    const key = keyIn(license_key.trim(), licenseIds)
    if (key === undefined) return yield* unknownKey
    // The computer cannot activate itself before.
    const answer = runtime.offline({ ...key, licenseId }, { ...request, activate: true })
    return yield* Effect.provideService(answer, CurrentActor, { actor_type: "license", actor_id: licenseId })
  })

  return { exchange }
})

export class PortalOffline extends Context.Service<PortalOffline, Effect.Success<typeof make>>()(
  "licensing/licensing/portal/PortalOffline"
) {
  static readonly layer = Layer.effect(PortalOffline, make)
}
