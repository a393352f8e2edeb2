/** A license as the management API returns it, with the clock applied. */
import { expiredFeatures } from "../model/FeatureExpiry.ts"
import type { License } from "../model/License.ts"
import type { LicenseRecord, LicenseSnapshot, PolicyRecord } from "../model/LicenseRecords.ts"
import { limitsOf, shownLimits } from "../model/Limits.ts"
import { entitlementVersionAt, statusAt } from "../rules/Lifecycle.ts"

/** Members that the management API does not return. */
const internal = {
  key_hash: true,
  revision: true,
  entitlement_counter: true,
  activation_limit_recorded_at: true,
  not_due_before: true,
  heartbeat_from: true,
  term_days: true,
  term_began_at: true,
  kept_counts: true,
  self_deactivated_at: true,
  slots_held_until: true
} as const satisfies Record<Exclude<keyof LicenseRecord, keyof License>, true>

/** `expiredFeatures`: the number of features with an unrecorded expiry. */
export const presentLicense = (
  license: LicenseRecord,
  policy: PolicyRecord,
  expiredFeatures: number,
  now: number
): License => {
  const present = Object.fromEntries(
    Object.entries(license).filter(([name, value]) => value !== undefined && !(name in internal))
  )
  return {
    ...(present as unknown as License),
    limits: shownLimits(limitsOf(license, policy)),
    status: statusAt(license, policy, now),
    entitlement_version: entitlementVersionAt(license, policy, expiredFeatures, now)
  }
}

export const presentSnapshot = ({ assignments, license, policy }: LicenseSnapshot, now: number): License =>
  presentLicense(license, policy, expiredFeatures(assignments, now).length, now)
