/** A license as the management API returns it, with the clock applied. */
import { expiredFeatures } from "../model/FeatureExpiry.ts"
import type { License } from "../model/License.ts"
import type { LicenseRecord, LicenseSnapshot, PolicyRecord } from "../model/LicenseRecords.ts"
import { limitsOf, shownLimits } from "../model/Limits.ts"
import { entitlementVersionAt, statusAt } from "../rules/Lifecycle.ts"

/** Members that the management API does not return. */
const internal: ReadonlySet<string> = new Set<keyof LicenseRecord>([
  "key_hash",
  "revision",
  "entitlement_counter",
  "activation_limit_recorded_at",
  "not_due_before",
  "heartbeat_from",
  "term_days",
  "kept_counts",
  "self_deactivated_at",
  "slots_held_until"
])

/** `expiredFeatures`: the number of features with an unrecorded expiry. */
export const presentLicense = (
  license: LicenseRecord,
  policy: PolicyRecord,
  expiredFeatures: number,
  now: number
): License => {
  const present = Object.fromEntries(
    Object.entries(license).filter(([name, value]) => value !== undefined && !internal.has(name))
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
