/** Assigns features to a license and removes them. */
import { unknownId } from "../../contract/api/Failure.ts"
import { type Metadata, noMetadata } from "../../contract/api/Metadata.ts"
import { changesOf } from "../../ledger/events/Changes.ts"
import type { NewEvent } from "../../ledger/events/Entry.ts"
import { allowanceNames, type ResetAnchor, type ResetPeriod } from "../../vendor/policies/ResetPeriod.ts"
import { isExpiryRecorded, shownEnd } from "../model/FeatureExpiry.ts"
import type { LicenseStatus } from "../model/License.ts"
import type { LicenseFeature } from "../model/LicenseFeature.ts"
import type { Assignment, FeatureRecord, LicenseView } from "../model/LicenseRecords.ts"
import type { LedgerEntry } from "../model/Usage.ts"
import { accept, licenseEvent, type Refused, type Rule, reject } from "../rules/LicenseCommand.ts"
import { accessEndsAt, statusAt } from "../rules/Lifecycle.ts"
import { quotaOf, remainingOf } from "../rules/Quota.ts"
import { inCurrentPeriod, withPeriods } from "../rules/UsagePeriods.ts"
import { periodSource, quotaAfter, refuseQuota } from "./AssignedQuota.ts"
import { keptCounts, keptUsage, returned } from "./KeptCounts.ts"

/** Absent fields keep their value; null removes it. */
export interface AssignCommand {
  readonly feature_id: string
  readonly enabled?: boolean
  readonly max_consumptions?: number | null
  readonly expires_at?: number | null
  readonly expires_with_license?: boolean
  readonly reset_period?: ResetPeriod | null
  readonly reset_anchor?: ResetAnchor | null
  readonly rollover_max?: number | null
  readonly overage_max?: number | null
  readonly metadata?: Metadata
}

const assignedFields = [
  "enabled",
  "max_consumptions",
  "expires_at",
  "expires_with_license",
  ...allowanceNames,
  "from_policy",
  "metadata"
] as const

/** Refuses every write to a revoked license. */
export const refuseRevoked = (view: LicenseView, now: number): Refused<"LICENSE_STATE_CONFLICT"> | undefined =>
  statusAt(view.license, view.policy, now) === "revoked"
    ? reject("LICENSE_STATE_CONFLICT", "The license is revoked and cannot be changed: issue a new one.", {
        detail: "revoked"
      })
    : undefined

type AssignCode = "LICENSE_STATE_CONFLICT" | "NOT_FOUND" | "LINKAGE_MISMATCH" | "VALIDATION_ERROR"

export const assign: Rule<AssignCommand, LicenseFeature, AssignCode> = {
  name: "assign",
  needs: ({ feature_id }) => ({ featureId: feature_id, ownSubscription: true }),
  decide: (view, command, now) => {
    const revoked = refuseRevoked(view, now)
    if (revoked !== undefined) return revoked
    const feature = featureToAssign(view, command.feature_id)
    if ("accepted" in feature) return feature
    const before = view.assignmentById(feature.id)
    const kept = keptUsage(view, feature.id)
    const enabled = command.enabled ?? before?.enabled ?? true
    const expiry = expiryAfter(command, before)
    const quota = quotaAfter(before, command)
    const refused = refuseQuota(view, quota, command)
    if (refused !== undefined) return refused
    const assigned: Assignment = {
      ...(before ?? kept ?? { total_consumptions: 0 }),
      feature_id: feature.id,
      feature_code: feature.code,
      feature_name: feature.name,
      enabled,
      ...quota,
      ...expiry,
      expiry_recorded: isExpiryRecorded(before, { enabled, ...expiry }, now),
      from_policy: false,
      metadata: command.metadata ?? before?.metadata ?? noMetadata,
      created_at: before?.created_at ?? now,
      updated_at: now
    }
    const placed = withPeriods(assigned, periodSource(view), now)
    const { assignment, ...ended } = returned(view, before, placed, now)
    // The event contains `from_policy` only if it changes.
    const changes = changesOf<Partial<Assignment>>(before ?? { from_policy: false }, assignment, assignedFields)
    // A period of the subscription that has begun already ends the current one.
    const reply = (after: LicenseView) => featureOf(after, inCurrentPeriod(assignment, false, now))
    const isWaitingAsBefore = before?.expires_after_days === assignment.expires_after_days
    if (Object.keys(changes).length === 0 && isWaitingAsBefore) return accept({}, reply)
    return accept(
      {
        license: {
          ...(kept === undefined ? undefined : { kept_counts: keptCounts(view, [assignment], []) }),
          updated_at: now
        },
        entitlement: true,
        assignments: [assignment],
        ledger: before !== undefined && "max_consumptions" in changes ? [limitEntry(assignment)] : ended.ledger,
        events: [assignmentEvent(view, "license.feature_assigned", assignment, { changes }), ...ended.events]
      },
      reply
    )
  }
}

const featureToAssign = (
  view: LicenseView,
  featureId: string
): FeatureRecord | Refused<"NOT_FOUND" | "LINKAGE_MISMATCH"> => {
  const feature = view.feature(featureId)
  const detail = { detail: "feature_id" }
  if (feature === undefined) return reject("NOT_FOUND", unknownId("feature", featureId), detail)
  return feature.product_id === view.license.product_id
    ? feature
    : reject(
        "LINKAGE_MISMATCH",
        "The feature belongs to another product than the license: choose a feature of the license's product.",
        detail
      )
}

export const unassign: Rule<{ readonly feature_id: string }, void, "LICENSE_STATE_CONFLICT" | "NOT_FOUND"> = {
  name: "unassign",
  decide: (view, { feature_id }, now) => {
    const revoked = refuseRevoked(view, now)
    if (revoked !== undefined) return revoked
    const assignment = view.assignmentById(feature_id)
    if (assignment === undefined)
      return reject(
        "NOT_FOUND",
        "The license does not have this feature: use the feature_id of one that is assigned.",
        { detail: "feature_id" }
      )
    return accept(
      {
        license: { updated_at: now },
        entitlement: true,
        removedAssignments: [feature_id],
        ledger: isUnused(assignment) ? [] : [removalEntry(assignment)],
        events: [assignmentEvent(view, "license.feature_removed", assignment, { changes: removalOf(assignment) })]
      },
      () => undefined
    )
  }
}

/** What the assignment had. Not what a new one has without being given it. */
const removalOf = (assignment: Assignment) =>
  changesOf<Partial<Assignment>>(assignment, { total_consumptions: 0, from_policy: false, metadata: noMetadata }, [
    ...assignedFields,
    "expires_after_days",
    "total_consumptions",
    "extra_credits",
    "overage"
  ])

/** The ledger entry of a new maximum; without a maximum the feature is unlimited. */
export const limitEntry = (assignment: Assignment): LedgerEntry => ({
  feature_id: assignment.feature_id,
  action: "set_limit",
  amount: assignment.max_consumptions ?? 0,
  balance_after: assignment.total_consumptions,
  max_after: quotaOf(assignment)
})

/** The ledger entry of an assignment that was removed by hand. Its count is lost: a later assignment of the feature starts from zero. */
const removalEntry = ({ extra_credits, feature_id, overage, total_consumptions }: Assignment): LedgerEntry => ({
  feature_id,
  action: "reset",
  amount: 0 - total_consumptions,
  balance_after: 0,
  ...(extra_credits === undefined ? undefined : { credits: -extra_credits }),
  ...(overage === undefined ? undefined : { overage: -overage })
})

/** A given or removed expiry replaces every other, the policy's days included. */
export const expiryAfter = (
  { expires_at, expires_with_license }: Pick<AssignCommand, "expires_at" | "expires_with_license">,
  before: Assignment | undefined
) => {
  if (expires_with_license === true || expires_at !== undefined)
    return {
      expires_at: expires_at ?? undefined,
      expires_after_days: undefined,
      expires_with_license: expires_with_license === true || undefined
    }
  return {
    expires_at: before?.expires_at,
    expires_after_days: before?.expires_after_days,
    expires_with_license: expires_with_license === false ? undefined : before?.expires_with_license
  }
}

const isUnused = ({ extra_credits = 0, total_consumptions }: Assignment): boolean =>
  total_consumptions === 0 && extra_credits === 0

export const featureOf = ({ license, policy }: LicenseView, assignment: Assignment): LicenseFeature =>
  presentAssignment(license.id, assignment, accessEndsAt(license, policy))

/** An assignment as the management API shows it. */
const presentAssignment = (
  license_id: string,
  assignment: Assignment,
  accessEnds: number | undefined
): LicenseFeature => {
  const { extra_credits, max_consumptions, overage, overage_max, reset_period } = assignment
  const remaining = remainingOf(assignment)
  const expires_at = shownEnd(assignment, accessEnds)
  const hasCredits = reset_period !== undefined || extra_credits !== undefined
  const hasOverage = overage_max !== undefined || overage !== undefined
  return {
    license_id,
    feature_id: assignment.feature_id,
    feature_code: assignment.feature_code,
    feature_name: assignment.feature_name,
    enabled: assignment.enabled,
    total_consumptions: assignment.total_consumptions,
    from_policy: assignment.from_policy,
    metadata: assignment.metadata,
    ...(max_consumptions === undefined || remaining === undefined ? undefined : { max_consumptions, remaining }),
    ...(hasCredits ? { extra_credits: extra_credits ?? 0 } : undefined),
    ...(hasOverage ? { overage: overage ?? 0 } : undefined),
    ...present(assignment, [...allowanceNames, "rolled_over", "period_start", "resets_at", "expires_with_license"]),
    ...(expires_at === undefined ? undefined : { expires_at })
  }
}

/** The same at an instant, before the end of a period is recorded. */
export const presentAt = (
  license_id: string,
  assignment: Assignment,
  accessEnds: number | undefined,
  status: LicenseStatus,
  now: number
): LicenseFeature => presentAssignment(license_id, inCurrentPeriod(assignment, status === "revoked", now), accessEnds)

/** The fields that have a value. */
const present = <Field extends keyof Assignment>(assignment: Assignment, fields: ReadonlyArray<Field>) =>
  Object.fromEntries(
    fields.flatMap((field) => (assignment[field] === undefined ? [] : [[field, assignment[field]]]))
  ) as { readonly [F in Field]?: Exclude<Assignment[F], undefined> }

const assignmentEvent = (
  { license }: LicenseView,
  event_type: "license.feature_assigned" | "license.feature_removed",
  { feature_code, feature_id }: Assignment,
  metadata: NewEvent["metadata"]
) => licenseEvent(event_type, license.id, { feature_id, feature_code, ...metadata })
