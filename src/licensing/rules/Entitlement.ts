/** The payloads of runtime responses, derived from the state after a decision. */
import { cacheText, canonicalize, replaceCached } from "../../contract/api/CanonicalJson.ts"
import type { Metadata } from "../../contract/api/Metadata.ts"
import { formatTimestamp, latest } from "../../contract/api/Timestamp.ts"
import { featureEndsAt, shownEnd } from "../model/FeatureExpiry.ts"
import { dueAt } from "../model/Heartbeat.ts"
import type {
  Assignment,
  CachedViews,
  DeviceRecord,
  FeaturesText,
  LeaseRecord,
  LicenseRecord,
  LicenseView,
  PolicyRecord
} from "../model/LicenseRecords.ts"
import { shownLimits } from "../model/Limits.ts"
import type {
  Deactivation,
  Eligibility,
  Entitlement,
  FloatingCheckout,
  FloatingLease,
  OwnDevicesFacts
} from "../model/Payloads.ts"
import { accessEndsAt, entitlementVersionAt, statusAt } from "./Lifecycle.ts"
import { quotaOf, quotaUsed } from "./Quota.ts"
import { borrowedUntil } from "./Seats.ts"

const minuteMillis = 60_000

/** The members are in alphabetical order, as in the canonical form. */
const commonOf = <const Kind extends string>(view: LicenseView, kind: Kind, device: DeviceRecord, now: number) => ({
  ...accessEndOf(view.license, view.policy),
  binding_hash: device.binding_hash,
  binding_kind: device.binding_kind,
  device_id: device.id,
  ...licenseFactsOf(view, kind, now)
})

const licenseFactsOf = <const Kind extends string>(view: LicenseView, kind: Kind, now: number) => {
  const { license, policy, productCode } = view
  return {
    entitlement_version: entitlementVersionAt(license, policy, view.expiredFeatures(now).length, now),
    ...(license.expires_at === undefined ? undefined : { expires_at: formatTimestamp(license.expires_at) }),
    issued_at: formatTimestamp(now),
    kind,
    license_id: license.id,
    license_type: policy.license_type,
    ...shownOf(license, policy),
    policy_id: license.policy_id,
    product_code: productCode,
    product_id: license.product_id,
    status: statusAt(license, policy, now)
  }
}

interface Shown {
  readonly licensee?: { readonly name: string }
  readonly metadata?: Metadata
}

type Owned = Pick<LicenseRecord, "customer_name" | "metadata">
type Choice = Pick<PolicyRecord, "show_licensee" | "show_metadata">

/** What signed payloads show of a license's owner and metadata: what its policy chooses. */
const shownOf = (license: Owned, policy: Choice): Shown | undefined => {
  if (!policy.show_licensee && policy.show_metadata.length === 0) return undefined
  const name = policy.show_licensee ? license.customer_name : undefined
  const members = policy.show_metadata.filter((member) => Object.hasOwn(license.metadata, member))
  return {
    ...(name === undefined ? undefined : { licensee: { name } }),
    ...(members.length === 0
      ? undefined
      : { metadata: Object.fromEntries(members.map((member) => [member, license.metadata[member]!])) })
  }
}

export const isShownAlike = (before: Owned, after: Owned, policy: Choice): boolean =>
  canonicalize({ ...shownOf(before, policy) }) === canonicalize({ ...shownOf(after, policy) })

/** The end of access: expires_at and the policy's grace, at most the latest instant that a response can contain. */
export const accessEndOf = (license: LicenseView["license"], policy: LicenseView["policy"]) => {
  const end = accessEndsAt(license, policy)
  return end === undefined ? undefined : { access_ends_at: formatTimestamp(Math.min(end, latest)) }
}

/**
 * The next check: after the policy's interval, but not after the end of access or the next end of an included feature.
 * If the policy requires heartbeats, after two thirds of the interval, so that one lost request does no harm; and a third
 * before the device's heartbeat is due, which only some responses move.
 */
const nextCheckAt = (view: LicenseView, device: DeviceRecord, now: number): number => {
  const { license, policy } = view
  const interval = policy.validation_interval_minutes * minuteMillis
  const due = dueAt(device, license, policy)
  return Math.min(
    now + (policy.require_heartbeat ? (interval * 2) / 3 : interval),
    // A device whose activation has lapsed has a seat.
    due < now ? Number.POSITIVE_INFINITY : Math.max(now, due - interval / 3),
    accessEndsAt(license, policy) ?? Number.POSITIVE_INFINITY,
    nextFeatureEndsAt(view, now)
  )
}

/** The cached list of features, if it is valid now. A renewal or a longer grace moves the ends that it shows. */
const cachedFeatures = ({ cachedViews, license, policy }: LicenseView, now: number): FeaturesText | undefined => {
  const cached = cachedViews?.features
  return cached !== undefined &&
    cached.since <= now &&
    now < cached.until &&
    cached.accessEnds === accessEndsAt(license, policy)
    ? cached
    : undefined
}

/** When the next included feature expires before the license; infinity = none. */
const nextFeatureEndsAt = (view: LicenseView, now: number): number => {
  const cached = cachedFeatures(view, now)
  if (cached !== undefined) return cached.until
  let next = Number.POSITIVE_INFINITY
  for (const assignment of view.assignments) {
    const endsAt = featureEndsAt(assignment)
    if (assignment.enabled && endsAt > now) next = Math.min(next, endsAt)
  }
  return next
}

const usageOf = (assignment: Assignment) => {
  const { extra_credits, overage, overage_max, reset_period, resets_at, total_consumptions: consumed } = assignment
  const quota = quotaOf(assignment)
  if (quota === undefined) return undefined
  const usage = { quota, consumed, remaining: Math.max(0, quota - quotaUsed(assignment)) }
  // Most quotas have none of these.
  if (reset_period === undefined && extra_credits === undefined && overage_max === undefined && overage === undefined)
    return usage
  return {
    ...usage,
    ...(reset_period === undefined && extra_credits === undefined ? undefined : { extra_credits: extra_credits ?? 0 }),
    ...(overage_max === undefined && overage === undefined ? undefined : { overage: overage ?? 0 }),
    ...(resets_at === undefined ? undefined : { resets_at: formatTimestamp(resets_at) })
  }
}

/** The minimum number of features in a cached list. Shorter lists are not worth the memory. */
const cachedFeaturesMin = 16

/**
 * The cached views after a change of assignments. If only counts change, only these entries are replaced: serialising
 * 200 features again took half of the time of a consumption.
 */
export const cachedViewsAfter = (view: LicenseView, changed: ReadonlyArray<Assignment>): CachedViews | undefined => {
  // A recorded expiry does not change the list.
  if (changed.every((assignment) => isListedAlike(view.assignmentByCode(assignment.feature_code), assignment)))
    return view.cachedViews
  let cached = view.cachedViews?.features
  if (cached === undefined) return view.assignments.length < cachedFeaturesMin ? undefined : {}
  for (const assignment of changed) {
    const { feature_code } = assignment
    const before = view.assignmentByCode(feature_code)
    if (!endsAlike(before, assignment)) return {}
    const index = indexOfCode(cached.features, feature_code)
    if (index !== undefined)
      cached = { ...cached, features: replaceCached(cached.features, index, featureOf(assignment, cached.accessEnds)) }
  }
  return { features: cached }
}

const isListedAlike = (before: Assignment | undefined, after: Assignment): boolean =>
  endsAlike(before, after) &&
  before?.total_consumptions === after.total_consumptions &&
  before.max_consumptions === after.max_consumptions &&
  before.extra_credits === after.extra_credits &&
  before.overage === after.overage &&
  before.overage_max === after.overage_max &&
  before.reset_period === after.reset_period &&
  before.resets_at === after.resets_at &&
  before.rolled_over === after.rolled_over

const endsAlike = (before: Assignment | undefined, after: Assignment): boolean =>
  before?.feature_id === after.feature_id &&
  before.enabled === after.enabled &&
  before.expires_at === after.expires_at &&
  before.expires_with_license === after.expires_with_license

/** The index of a code in features sorted by code; undefined if absent. */
const indexOfCode = (features: Entitlement["features"], code: string): number | undefined => {
  let [low, high] = [0, features.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (features[middle]!.code < code) low = middle + 1
    else high = middle
  }
  return features[low]?.code === code ? low : undefined
}

const featureOf = (assignment: Assignment, accessEnds: number | undefined): Entitlement["features"][number] => {
  const endsAt = shownEnd(assignment, accessEnds)
  return {
    code: assignment.feature_code,
    enabled: true,
    ...usageOf(assignment),
    ...(endsAt === undefined ? undefined : { expires_at: formatTimestamp(endsAt) })
  }
}

/** Enabled and unexpired features, sorted by code. Cached, because 200 take as long as the rest of a response. */
const featuresOf = (view: LicenseView, now: number): Entitlement["features"] => {
  const cached = cachedFeatures(view, now)
  if (cached !== undefined) return cached.features
  const { assignments, cachedViews, license, policy } = view
  const accessEnds = accessEndsAt(license, policy)
  let [since, until] = [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY]
  const features: Array<Entitlement["features"][number]> = []
  for (const assignment of assignments) {
    if (!assignment.enabled) continue
    const endsAt = featureEndsAt(assignment)
    if (endsAt <= now) since = Math.max(since, endsAt)
    else {
      until = Math.min(until, endsAt)
      features.push(featureOf(assignment, accessEnds))
    }
  }
  if (cachedViews !== undefined && features.length >= cachedFeaturesMin)
    cachedViews.features = { since, until, accessEnds, features: cacheText(features) }
  return features
}

export const entitlementOf = (
  view: LicenseView,
  device: DeviceRecord,
  now: number,
  eligibility: Eligibility | undefined
): Entitlement => ({
  ...commonOf(view, "entitlement", device, now),
  // Before next_check_at, which reads what a long list of features has cached.
  features: featuresOf(view, now),
  next_check_at: formatTimestamp(nextCheckAt(view, device, now)),
  ...(eligibility === undefined ? undefined : { version_eligibility: eligibility })
})

export const deactivationOf = (view: LicenseView, device: DeviceRecord, now: number): Deactivation =>
  commonOf(view, "deactivation", device, now)

export const ownDevicesOf = (
  view: LicenseView,
  self_deactivations_remaining: number,
  now: number
): OwnDevicesFacts => ({
  ...accessEndOf(view.license, view.policy),
  ...licenseFactsOf(view, "devices", now),
  limits: shownLimits(view.limits),
  self_deactivations_remaining
})

export const checkoutOf = (
  view: LicenseView,
  lease: LeaseRecord,
  lease_token: string,
  now: number,
  eligibility: Eligibility | undefined
): FloatingCheckout => ({
  ...borrowedOf(lease, now),
  ...commonOf(view, "floating_checkout", holderOf(view, lease), now),
  lease_expires_at: leaseEndOf(lease),
  lease_token,
  features: featuresOf(view, now),
  ...(eligibility === undefined ? undefined : { version_eligibility: eligibility })
})

/** The rules refuse leases without a device. */
const holderOf = (view: LicenseView, lease: LeaseRecord): DeviceRecord => view.deviceById(lease.device_id)!

/** An ended lease shows its end, so that no response about it looks like a seat. */
const leaseEndOf = (lease: LeaseRecord): string => formatTimestamp(lease.ended_at ?? lease.expires_at)

const borrowedOf = (lease: LeaseRecord, now: number) => {
  const until = borrowedUntil(lease, now)
  return until === undefined ? undefined : { borrowed_until: formatTimestamp(until) }
}

export const leaseOf = (view: LicenseView, lease: LeaseRecord, now: number): FloatingLease => ({
  ...borrowedOf(lease, now),
  ...commonOf(view, "floating_lease", holderOf(view, lease), now),
  lease_expires_at: leaseEndOf(lease)
})

export const extendedLeaseOf = (view: LicenseView, lease: LeaseRecord, now: number): FloatingLease => ({
  ...leaseOf(view, lease, now),
  features: featuresOf(view, now)
})
