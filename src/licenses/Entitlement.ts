/** What the runtime tells a client that it is entitled to: the payloads that are signed (contract, "Runtime shapes"). */
import { Schema } from "effect"
import { keepText, replaceKept } from "../api/CanonicalJson.ts"
import { Count } from "../api/Int64.ts"
import { formatTimestamp, Timestamp } from "../api/Timestamp.ts"
import { DeviceBindingKind } from "../devices/Device.ts"
import { LicenseType } from "../policies/Policy.ts"
import { LicenseStatus } from "./License.ts"
import type { Assignment, DeviceRecord, KeptViews, LeaseRecord, LicenseView } from "./LicenseState.ts"
import { accessEndsAt, entitlementVersionAt, statusAt } from "./Lifecycle.ts"

const minuteMillis = 60_000

const FeatureEntitlement = Schema.Struct({
  code: Schema.String,
  enabled: Schema.Boolean,
  quota: Schema.optionalKey(Count),
  consumed: Schema.optionalKey(Count),
  remaining: Schema.optionalKey(Count)
}).annotate({ identifier: "FeatureEntitlement" })

const VersionEligibility = Schema.Struct({
  app_version: Schema.String,
  is_entitled: Schema.Boolean,
  enforced: Schema.Boolean.annotate({ description: "False where the product has no version catalog." }),
  released_at: Schema.optionalKey(Timestamp),
  eligible_through: Schema.optionalKey(Timestamp)
}).annotate({ identifier: "VersionEligibility" })

const common = {
  license_id: Schema.String,
  status: LicenseStatus,
  license_type: LicenseType,
  entitlement_version: Count,
  issued_at: Timestamp,
  device_id: Schema.String,
  expires_at: Schema.optionalKey(Timestamp)
}

const features = Schema.Array(FeatureEntitlement)

const entitlement = {
  ...common,
  next_check_at: Timestamp,
  features,
  version_eligibility: Schema.optionalKey(VersionEligibility)
}

export const EntitlementPayload = Schema.Struct(entitlement).annotate({ identifier: "Entitlement" })

export const DeactivationPayload = Schema.Struct(common).annotate({ identifier: "Deactivation" })

const leaseEnd = Timestamp.annotate({ description: "When the seat is free again unless a heartbeat comes first." })

export const FloatingCheckoutPayload = Schema.Struct({
  ...common,
  lease_token: Schema.String.annotate({
    description: "Names the lease in heartbeats and at checkin. Shown only here."
  }),
  lease_expires_at: leaseEnd,
  features,
  version_eligibility: Schema.optionalKey(VersionEligibility)
}).annotate({ identifier: "FloatingCheckout" })

export const FloatingLeasePayload = Schema.Struct({
  ...common,
  lease_expires_at: leaseEnd,
  features: Schema.optionalKey(features),
  version_eligibility: Schema.optionalKey(VersionEligibility)
}).annotate({ identifier: "FloatingLease" })

/** What an offline envelope holds, signed, once it is decrypted. */
export const OfflineEntitlementPayload = Schema.Struct({
  ...entitlement,
  offline_expires_at: Timestamp.annotate({ description: "Until when the client may go without asking again." }),
  binding_kind: DeviceBindingKind,
  binding_hash: Schema.String.annotate({
    description: "SHA-256 of the binding key in lower-case hex: the fingerprint, or a container's digest."
  })
}).annotate({ identifier: "OfflineEntitlement" })

/** An offline entitlement and its signature, encrypted for whoever has the license key. All but the kid is base64. */
export const OfflineEnvelopePayload = Schema.Struct({
  kid: Schema.String.annotate({
    description: "The signing key of the payload inside; authenticated as additional data."
  }),
  salt: Schema.String.annotate({ description: "HKDF salt, 32 bytes." }),
  nonce: Schema.String.annotate({ description: "AES-GCM nonce, 12 bytes." }),
  ciphertext: Schema.String.annotate({ description: "The encrypted signed payload, its 16-byte tag at the end." })
}).annotate({ identifier: "OfflineEnvelope" })

/** As it is signed: JSON values, instants as text. Members without a value are left out. */
export type Entitlement = typeof EntitlementPayload.Encoded
export type Deactivation = typeof DeactivationPayload.Encoded
export type FloatingCheckout = typeof FloatingCheckoutPayload.Encoded
export type FloatingLease = typeof FloatingLeasePayload.Encoded
export type OfflineEntitlement = typeof OfflineEntitlementPayload.Encoded
export type SealedEnvelope = typeof OfflineEnvelopePayload.Encoded
export type Eligibility = typeof VersionEligibility.Encoded

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

/** The features of an answer: the same at every instant from `since` on, and before `until`. */
export interface ShownFeatures {
  readonly since: number
  readonly until: number
  readonly features: Entitlement["features"]
}

/** Features of a license from which on what is shown of them is kept: fewer are made in less time than it takes to be worth the memory. */
const keptMin = 16

/**
 * What is kept of assignments, some of which change now. Of many features those that are merely counted further are exchanged: writing
 * down two hundred again was half of what a consumption cost.
 */
export const keptAfter = (view: LicenseView, changed: ReadonlyArray<Assignment>): KeptViews | undefined => {
  let shown = view.kept?.shownFeatures
  if (shown === undefined) return view.assignments.length < keptMin ? undefined : {}
  for (const assignment of changed) {
    const { enabled, expires_at, feature_code, feature_id } = assignment
    const known = view.assignmentByCode(feature_code)
    if (known?.feature_id !== feature_id || known.enabled !== enabled || known.expires_at !== expires_at) return {}
    const place = placeOf(shown.features, feature_code)
    if (place !== undefined) shown = { ...shown, features: replaceKept(shown.features, place, featureOf(assignment)) }
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
    kept.shownFeatures = { since, until, features: keepText(features) }
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
