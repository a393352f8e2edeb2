/**
 * A license as the management API returns it at an instant: stored state, clock, and the policy's part of the
 * entitlement version.
 */
import type { License } from "../model/License.ts"
import type { LicenseRecord, PolicyRecord } from "../model/LicenseRecords.ts"
import { entitlementVersionAt, statusAt } from "../rules/Lifecycle.ts"

export const presentLicense = (license: LicenseRecord, policy: PolicyRecord, now: number): License => {
  const { key_hash: _, revision: __, entitlement_counter: ___, ...shown } = license
  const { not_due_before: ____, heartbeat_from: _____, ...record } = shown
  const present = Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined))
  return {
    ...(present as unknown as License),
    status: statusAt(license, policy, now),
    entitlement_version: entitlementVersionAt(license, policy, now)
  }
}
