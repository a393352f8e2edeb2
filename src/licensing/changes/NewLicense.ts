/** Decides the creation of a license: its links, dates, term and first features. */
import { unknownId } from "../../contract/api/Failure.ts"
import { noMetadata } from "../../contract/api/Metadata.ts"
import { recordedValue } from "../../ledger/events/Changes.ts"
import type { NewEvent } from "../../ledger/events/Entry.ts"
import { withoutNulls } from "../../platform/postgres/queries/Sql.ts"
import { heartbeatDueAt } from "../../vendor/policies/Policy.ts"
import { isExpiryRecorded } from "../model/FeatureExpiry.ts"
import type { LicenseCreate } from "../model/License.ts"
import type { Assignment, FeatureRecord, LicenseRecord, TargetPolicy } from "../model/LicenseRecords.ts"
import { limitNames } from "../model/Limits.ts"
import { recordedAssignment } from "../model/RecordedAssignment.ts"
import { licenseEvent, type Refused, reject } from "../rules/LicenseCommand.ts"
import { refusePast, refuseTerms, termBeginsAt, termOf } from "../rules/Terms.ts"
import { withPeriods } from "../rules/UsagePeriods.ts"
import { quotaAfter, refuseQuota } from "./AssignedQuota.ts"
import { expiryAfter } from "./Assignments.ts"
import { grantedFeature } from "./GrantedFeatures.ts"
import type { RotateKeyCommand } from "./KeyRotation.ts"
import { type Links, refuseLinks } from "./Linkage.ts"

export type NewLicenseInput = typeof LicenseCreate.Type

/** The records that a request names, and the generated id and key. */
export interface NewLicenseBasis {
  readonly target: TargetPolicy
  readonly links: Links
  /** The features that the request names, by id. */
  readonly features: ReadonlyMap<string, FeatureRecord>
  readonly id: string
  readonly key: RotateKeyCommand
}

/** An accepted license with all its rows. */
export interface NewLicense {
  readonly accepted: true
  readonly license: LicenseRecord
  readonly assignments: ReadonlyArray<Assignment>
  readonly event: NewEvent
}

type NewLicenseCode = "NOT_FOUND" | "LINKAGE_MISMATCH" | "VALIDATION_ERROR" | "EXPIRY_NOT_IN_FUTURE"

export const newLicense = (
  input: NewLicenseInput,
  basis: NewLicenseBasis,
  now: number
): NewLicense | Refused<NewLicenseCode> => {
  const { links, target } = basis
  const { policy } = target
  const unlinked = refuseForeignPolicy(input, target) ?? refuseLinks(input.product_id, links)
  if (unlinked !== undefined) return unlinked
  const dated = { ...input, ...termOf(policy, input, now) }
  const refused = refuseTerms(policy.license_type, dated) ?? refusePast(input, now)
  if (refused !== undefined) return refused
  const drafted = assignmentsOf(input, basis, termBeginsAt(dated, now), now)
  if ("accepted" in drafted) return drafted
  const { features: _, license_key: __, send_key: ___, ...given } = dated
  const license = withoutNulls<LicenseRecord>({
    metadata: noMetadata,
    ...given,
    subscription_id: input.subscription_id ?? links.order?.subscription_id,
    ...initialState,
    id: basis.id,
    ...basis.key,
    heartbeat_from: heartbeatDueAt(policy, now),
    created_at: now,
    updated_at: now
  } as never)
  const source = { license, subscription: links.subscription ?? links.order }
  const assignments = drafted.map((assignment) => withPeriods(assignment, source, now))
  return { accepted: true, license, assignments, event: createdEvent(license, policy.license_type, assignments) }
}

const initialState = {
  status: "active",
  active_device_count: 0,
  times_activated: 0,
  times_transferred: 0,
  total_consumptions: 0,
  entitlement_counter: 1,
  revision: 1
} as const

const refuseForeignPolicy = ({ product_id }: NewLicenseInput, target: TargetPolicy) =>
  target.product_id === product_id
    ? undefined
    : reject(
        "LINKAGE_MISMATCH",
        "The policy belongs to another product than the license: use a policy of the license's product.",
        { detail: "policy_id" }
      )

/** The features that come with the policy, and those that the request adds or overrides. */
const assignmentsOf = (
  input: NewLicenseInput,
  { features, links, target }: NewLicenseBasis,
  termBegins: number | undefined,
  now: number
): ReadonlyArray<Assignment> | Refused<"NOT_FOUND" | "LINKAGE_MISMATCH" | "VALIDATION_ERROR"> => {
  const assignments = new Map(
    target.features.map((feature) => [feature.feature_id, grantedFeature(feature, undefined, termBegins, now)])
  )
  const named = new Set<string>()
  for (const [index, { feature_id, ...given }] of (input.features ?? []).entries()) {
    const feature = features.get(feature_id)
    const detail = { detail: `features[${index}].feature_id` }
    if (feature === undefined) return reject("NOT_FOUND", unknownId("feature", feature_id), detail)
    if (feature.product_id !== input.product_id) return reject("LINKAGE_MISMATCH", foreignFeature, detail)
    if (named.has(feature_id)) return reject("VALIDATION_ERROR", repeatedFeature, detail)
    named.add(feature_id)
    const granted = assignments.get(feature_id) ?? plainAssignment(feature, now)
    const assignment = withoutNulls<Assignment>({
      ...granted,
      ...given,
      ...quotaAfter(granted, given),
      ...expiryAfter(given, granted),
      from_policy: false
    } as never)
    const subscription_id = input.subscription_id ?? links.order?.subscription_id
    const refused = refuseQuota({ license: { subscription_id } }, assignment, given)
    if (refused !== undefined) return { ...refused, detail: `features[${index}].${refused.detail}` }
    assignments.set(feature_id, { ...assignment, expiry_recorded: isExpiryRecorded(undefined, assignment, now) })
  }
  return Array.from(assignments.values())
}

const foreignFeature =
  "The feature belongs to another product than the license: choose a feature of the license's product."
const repeatedFeature = "The feature is listed twice: list it once."

const plainAssignment = (feature: FeatureRecord, now: number): Assignment =>
  grantedFeature(
    {
      feature_id: feature.id,
      feature_code: feature.code,
      feature_name: feature.name,
      enabled: true,
      metadata: noMetadata
    },
    undefined,
    now,
    now
  )

const createdEvent = (license: LicenseRecord, license_type: string, assignments: ReadonlyArray<Assignment>): NewEvent =>
  licenseEvent("license.created", license.id, {
    product_id: license.product_id,
    policy_id: license.policy_id,
    license_type,
    ...Object.fromEntries(
      recordedFields.flatMap((field) =>
        license[field] === undefined ? [] : [[field, recordedValue(field, license[field])]]
      )
    ),
    ...(license.term_days === undefined
      ? undefined
      : { [license_type === "perpetual" ? "maintenance_days" : "duration_days"]: license.term_days }),
    ...(assignments.length === 0
      ? undefined
      : {
          features: assignments.map((assignment) => ({
            feature_id: assignment.feature_id,
            feature_code: assignment.feature_code,
            from_policy: assignment.from_policy,
            ...recordedAssignment(assignment)
          }))
        })
  })

const recordedFields = [
  "customer_id",
  "order_id",
  "subscription_id",
  "starts_at",
  "expires_at",
  "maintenance_expires_at",
  ...limitNames
] as const
