/**
 * A license as the management API returns it at an instant: stored state, clock, and the policy's part of the
 * entitlement version.
 */

import { expiredFeatures } from "../model/FeatureExpiry.ts"
import type { License } from "../model/License.ts"
import type { LicenseRecord, LicenseSnapshot, PolicyRecord } from "../model/LicenseRecords.ts"
import { entitlementVersionAt, statusAt } from "../rules/Lifecycle.ts"

/** `expiredFeatures`: how many have expired without a record. */
export const presentLicense = (
  license: LicenseRecord,
  policy: PolicyRecord,
  expiredFeatures: number,
  now: number
): License => {
  const { key_hash: _, revision: __, entitlement_counter: ___, activation_limit_recorded_at: ____, ...shown } = license
  const { not_due_before: _____, heartbeat_from: ______, ...record } = shown
  const present = Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined))
  return {
    ...(present as unknown as License),
    status: statusAt(license, policy, now),
    entitlement_version: entitlementVersionAt(license, policy, expiredFeatures, now)
  }
}

export const presentSnapshot = ({ assignments, license, policy }: LicenseSnapshot, now: number): License =>
  presentLicense(license, policy, expiredFeatures(assignments, now).length, now)
