/** What an answer of the runtime says: the payloads, derived from the state after a decision. */
import { cacheText, replaceCached } from "../../api/CanonicalJson.ts"
import { formatTimestamp } from "../../api/Timestamp.ts"
import type { Assignment, CachedViews, DeviceRecord, LeaseRecord, LicenseView } from "../model/LicenseRecords.ts"
import type { Deactivation, Eligibility, Entitlement, FloatingCheckout, FloatingLease } from "../model/Payloads.ts"
import { accessEndsAt, entitlementVersionAt, statusAt } from "./Lifecycle.ts"

const minuteMillis = 60_000

const commonOf = ({ license, policy }: LicenseView, deviceId: string, now: number) => ({
  license_id: license.id,
  status: statusAt(license, policy, now),
  license_type: policy.license_type,
  entitlement_version: entitlementVersionAt(license, policy, now),
  issued_at: formatTimestamp(now),
  device_id: deviceId,
  ...(license.expires_at === undefined ? undefined : { expires_at: formatTimestamp(license.expires_at) })
})

/** The next check: after the policy's interval, never past the end of access. */
const nextCheckAt = ({ license, policy }: LicenseView, now: number): number =>
  Math.min(
    now + policy.validation_interval_minutes * minuteMillis,
    accessEndsAt(license, policy) ?? Number.POSITIVE_INFINITY
  )

const metered = ({ max_consumptions: quota, total_consumptions: consumed }: Assignment) =>
  quota === undefined ? undefined : { quota, consumed, remaining: Math.max(0, quota - consumed) }

/** Features of a license from which on what is shown of them is kept: fewer are made in less time than it takes to be worth the memory. */
const keptMin = 16

/**
 * What is kept of assignments, some of which change now. Of many features those that are merely counted further are exchanged: writing
 * down two hundred again was half of what a consumption cost.
 */
export const cachedViewsAfter = (view: LicenseView, changed: ReadonlyArray<Assignment>): CachedViews | undefined => {
  let shown = view.kept?.shownFeatures
  if (shown === undefined) return view.assignments.length < keptMin ? undefined : {}
  for (const assignment of changed) {
    const { enabled, expires_at, feature_code, feature_id } = assignment
    const known = view.assignmentByCode(feature_code)
    if (known?.feature_id !== feature_id || known.enabled !== enabled || known.expires_at !== expires_at) return {}
    const place = placeOf(shown.features, feature_code)
    if (place !== undefined) shown = { ...shown, features: replaceCached(shown.features, place, featureOf(assignment)) }
  }
  return { shownFeatures: shown }
}

/** Where a code stands among features in its order; undefined where it does not. */
const placeOf = (features: Entitlement["features"], code: string): number | undefined => {
  let [low, high] = [0, features.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (features[middle]!.code < code) low = middle + 1
    else high = middle
  }
  return features[low]?.code === code ? low : undefined
}

const featureOf = (assignment: Assignment): Entitlement["features"][number] => ({
  code: assignment.feature_code,
  enabled: true,
  ...metered(assignment)
})

/** Assigned, enabled and unexpired features, by code. Two hundred cost as much as the rest of an answer, so they are kept. */
const featuresOf = ({ assignments, kept }: LicenseView, now: number): Entitlement["features"] => {
  const known = kept?.shownFeatures
  if (known !== undefined && known.since <= now && now < known.until) return known.features
  let [since, until] = [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY]
  const features: Array<Entitlement["features"][number]> = []
  for (const assignment of assignments) {
    const { enabled, expires_at = Number.POSITIVE_INFINITY } = assignment
    if (!enabled) continue
    if (expires_at <= now) since = Math.max(since, expires_at)
    else {
      until = Math.min(until, expires_at)
      features.push(featureOf(assignment))
    }
  }
  if (kept !== undefined && features.length >= keptMin)
    kept.shownFeatures = { since, until, features: cacheText(features) }
  return features
}

export const entitlementOf = (
  view: LicenseView,
  device: DeviceRecord,
  now: number,
  eligibility: Eligibility | undefined
): Entitlement => ({
  ...commonOf(view, device.id, now),
  next_check_at: formatTimestamp(nextCheckAt(view, now)),
  features: featuresOf(view, now),
  ...(eligibility === undefined ? undefined : { version_eligibility: eligibility })
})

export const deactivationOf = (view: LicenseView, device: DeviceRecord, now: number): Deactivation =>
  commonOf(view, device.id, now)

export const checkoutOf = (
  view: LicenseView,
  lease: LeaseRecord,
  lease_token: string,
  now: number,
  eligibility: Eligibility | undefined
): FloatingCheckout => ({
  ...leaseOf(view, lease, now),
  lease_token,
  features: featuresOf(view, now),
  ...(eligibility === undefined ? undefined : { version_eligibility: eligibility })
})

/** A lease that ended shows when it did, so that no answer about it can pass for a seat. */
export const leaseOf = (view: LicenseView, lease: LeaseRecord, now: number): FloatingLease => ({
  ...commonOf(view, lease.device_id, now),
  lease_expires_at: formatTimestamp(lease.ended_at ?? lease.expires_at)
})

/** A lease that goes on, with what it entitles to now. */
export const extendedLeaseOf = (view: LicenseView, lease: LeaseRecord, now: number): FloatingLease => ({
  ...leaseOf(view, lease, now),
  features: featuresOf(view, now)
})
