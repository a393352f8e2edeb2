/** What the customer's page does to a license: by the rules of the runtime, with the license as the actor. */
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { CurrentActor } from "../../access/CurrentActor.ts"
import { RateLimits } from "../../access/rateLimits/RateLimits.ts"
import { LicenseActors } from "../engine/LicenseActors.ts"
import { Licenses } from "../management/Licenses.ts"
import { refuseUnknownLicense } from "../model/UnknownLicense.ts"
import { deactivateOwn } from "../rules/OwnDevices.ts"
import { LicenseIdCache } from "../runtime/credentials/LicenseIdCache.ts"
import { keyIn } from "../runtime/credentials/PresentedKey.ts"
import { unknownKey } from "../runtime/credentials/RuntimeAuthorization.ts"
import { Runtime } from "../runtime/Runtime.ts"
import type { OfflineRequest } from "../runtime/RuntimeRequests.ts"
import type { PortalOwner } from "./PortalAccess.ts"
import { mailAddress, PortalLicenses } from "./PortalLicenses.ts"

const make = Effect.gen(function* () {
  const runtime = yield* Runtime
  const licenses = yield* PortalLicenses
  const management = yield* Licenses
  const limits = yield* RateLimits
  const licenseIds = yield* LicenseIdCache
  const actors = yield* LicenseActors
  const sql = yield* SqlClient.SqlClient
  const asLicense = (licenseId: string) =>
    Effect.provideService(CurrentActor, { actor_type: "license" as const, actor_id: licenseId })

  /** An address has no key, so the rule compares the license's current one. */
  const deactivate = Effect.fn("PortalActions.deactivate")(function* (
    owner: PortalOwner,
    licenseId: string,
    deviceId: string
  ) {
    yield* licenses.own(owner, licenseId)
    const [row] = yield* Effect.orDie(
      sql<{
        readonly key_hash: string
      }>`SELECT encode(key_hash, 'hex') AS key_hash FROM licenses WHERE id = ${licenseId}`
    )
    if (row === undefined) return yield* refuseUnknownLicense(licenseId)
    const command = { keyHash: row.key_hash, productCode: undefined, deviceId }
    yield* asLicense(licenseId)(actors.ask(licenseId, deactivateOwn, command))
  })

  const mailAddressOf = Effect.fnUntraced(function* (licenseId: string) {
    const [row] = yield* sql<{ readonly address: string | null }>`
      SELECT ${sql.literal(mailAddress)} AS address FROM licenses l LEFT JOIN customers c ON c.id = l.customer_id
      WHERE l.id = ${licenseId}`
    return row?.address ?? undefined
  }, Effect.orDie)

  /**
   * Replaces the key at once. Only the mail contains the new one. It ends the sessions that began with the old one. Who has only a
   * key may have started trials with the address of someone else.
   */
  const mailKey = Effect.fn("PortalActions.mailKey")(function* (owner: PortalOwner, licenseId: string) {
    yield* licenses.own(owner, licenseId)
    yield* limits.portalKey(licenseId)
    const address = owner.kind === "license" ? yield* mailAddressOf(licenseId) : undefined
    if (address !== undefined) yield* limits.trialMail(address)
    const signedInBy = owner.kind === "license" ? "key" : "link"
    yield* asLicense(licenseId)(management.rotateKey(licenseId, { send_key: true }, signedInBy))
  })

  /** The envelope is encrypted with the license key, which nothing stores: the page sends it. */
  const exchange = Effect.fn("PortalActions.exchange")(function* (
    owner: PortalOwner,
    licenseId: string,
    { license_key, request }: { readonly license_key: string; readonly request: OfflineRequest }
  ) {
    yield* licenses.own(owner, licenseId)
    const key = keyIn(license_key.trim(), licenseIds)
    if (key === undefined) return yield* unknownKey
    // The computer cannot activate itself before.
    const answer = runtime.offline({ ...key, licenseId }, { ...request, activate: true })
    return yield* asLicense(licenseId)(answer)
  })

  return { deactivate, exchange, mailKey }
})

export class PortalActions extends Context.Service<PortalActions, Effect.Success<typeof make>>()(
  "licensing/licensing/portal/PortalActions"
) {
  static readonly layer = Layer.effect(PortalActions, make)
}
