/** What the runtime tells a client that it is entitled to: the payloads that are signed (contract, "Runtime shapes"). */
import { Schema } from "effect"
import { Count } from "../api/Int64.ts"
import { formatTimestamp, Timestamp } from "../api/Timestamp.ts"
import { LicenseType } from "../policies/Policy.ts"
import { LicenseStatus } from "./License.ts"
import type { Assignment, DeviceRecord, LicenseView } from "./LicenseState.ts"
import { accessEndsAt, entitlementVersionAt, statusAt } from "./Lifecycle.ts"

const minuteMillis = 60_000

export const FeatureEntitlement = Schema.Struct({
  code: Schema.String,
  enabled: Schema.Boolean,
  quota: Schema.optionalKey(Count),
  consumed: Schema.optionalKey(Count),
  remaining: Schema.optionalKey(Count)
}).annotate({ identifier: "FeatureEntitlement" })

export const VersionEligibility = Schema.Struct({
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

export const EntitlementPayload = Schema.Struct({
  ...common,
  next_check_at: Timestamp,
  features: Schema.Array(FeatureEntitlement),
  version_eligibility: Schema.optionalKey(VersionEligibility)
}).annotate({ identifier: "Entitlement" })

export const DeactivationPayload = Schema.Struct(common).annotate({ identifier: "Deactivation" })

/** As it is signed: JSON values, instants as text. Members without a value are left out. */
export type Entitlement = typeof EntitlementPayload.Encoded
export type Deactivation = typeof DeactivationPayload.Encoded
export type Eligibility = typeof VersionEligibility.Encoded

const commonOf = ({ license, policy }: LicenseView, device: DeviceRecord, now: number) => ({
  license_id: license.id,
  status: statusAt(license, policy, now),
  license_type: policy.license_type,
  entitlement_version: entitlementVersionAt(license, policy, now),
  issued_at: formatTimestamp(now),
  device_id: device.id,
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

/** Assigned, enabled and unexpired features, by code. */
const featuresOf = (view: LicenseView, now: number) =>
  view.assignments
    .filter((assignment) => assignment.enabled && (assignment.expires_at === undefined || now < assignment.expires_at))
    .map((assignment) => ({ code: assignment.feature_code, enabled: true, ...metered(assignment) }))

export const entitlementOf = (
  view: LicenseView,
  device: DeviceRecord,
  now: number,
  eligibility: Eligibility | undefined
): Entitlement => ({
  ...commonOf(view, device, now),
  next_check_at: formatTimestamp(nextCheckAt(view, now)),
  features: featuresOf(view, now),
  ...(eligibility === undefined ? undefined : { version_eligibility: eligibility })
})

export const deactivationOf = (view: LicenseView, device: DeviceRecord, now: number): Deactivation =>
  commonOf(view, device, now)
