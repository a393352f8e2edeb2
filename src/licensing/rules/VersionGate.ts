/** Whether a license is entitled to an application version (docs/API.md, "Entitlements and versions"). */
import { formatTimestamp } from "../../contract/api/Timestamp.ts"
import type { LicenseType } from "../../vendor/policies/Policy.ts"
import type { LicenseView } from "../model/LicenseRecords.ts"
import type { Eligibility } from "../model/Payloads.ts"
import { type Refused, reject } from "./LicenseCommand.ts"
import { pendingTermEndsAt, renewable } from "./Terms.ts"

/** Versions released until this instant belong to the license; undefined = all. This use may begin a pending term. */
const cutoffOf = (view: LicenseView, now: number): number | undefined => {
  const { license, policy } = view
  const ends = policy.license_type === "perpetual" ? license.maintenance_expires_at : license.expires_at
  return ends ?? pendingTermEndsAt(view, now)
}

/** The remedy depends on the type: only some licenses can be renewed, and a perpetual license has maintenance. */
const notEntitledMessage = (type: LicenseType): string => {
  if (type === "perpetual")
    return "This application version was released after the license's maintenance ended: ask the vendor to extend the maintenance, or use an earlier version."
  const remedy = renewable.has(type) ? "renew the license" : "ask the vendor to extend the license"
  return `This application version was released after the end of the license: ${remedy}, or use an earlier version.`
}

/** Nothing is checked if the request names no version; nothing is enforced if the product lists none. */
export const gateVersion = (
  view: LicenseView,
  appVersion: string | undefined,
  now: number
): Eligibility | undefined | Refused<"VERSION_UNKNOWN" | "VERSION_NOT_ENTITLED"> => {
  if (appVersion === undefined) return undefined
  const { enforced, released_at } = view.version(appVersion)
  const cutoff = cutoffOf(view, now)
  const through = cutoff === undefined ? undefined : { eligible_through: formatTimestamp(cutoff) }
  if (!enforced) return { app_version: appVersion, is_entitled: true, enforced: false, ...through }
  if (released_at === undefined) {
    return reject(
      "VERSION_UNKNOWN",
      "This application version is not in the product's catalog: ask the vendor to add it.",
      { detail: "app_version" }
    )
  }
  if (cutoff !== undefined && released_at > cutoff) {
    return reject("VERSION_NOT_ENTITLED", notEntitledMessage(view.policy.license_type), {
      detail: "app_version",
      ...(through === undefined ? undefined : { facts: through })
    })
  }
  return {
    app_version: appVersion,
    is_entitled: true,
    enforced: true,
    released_at: formatTimestamp(released_at),
    ...through
  }
}
