/** Assigns features to a license and removes them. */
import { unknownId } from "../../contract/api/Failure.ts"
import type { Metadata } from "../../contract/api/Metadata.ts"
import { changesOf } from "../../ledger/events/Changes.ts"
import type { NewEvent } from "../../ledger/events/EventLog.ts"
import { isExpiryRecorded, shownEnd } from "../model/FeatureExpiry.ts"
import type { LicenseFeature } from "../model/License.ts"
import type { Assignment, LedgerEntry, LicenseView } from "../model/LicenseRecords.ts"
import { accept, licenseEvent, type Refused, type Rule, reject } from "../rules/LicenseCommand.ts"
import { accessEndsAt, statusAt } from "../rules/Lifecycle.ts"
import { keptCount, keptCounts } from "./KeptCounts.ts"

/** Absent fields keep their value; null removes it. */
export interface AssignCommand {
  readonly feature_id: string
  readonly enabled?: boolean
  readonly max_consumptions?: number | null
  readonly expires_at?: number | null
  readonly expires_with_license?: boolean
  readonly metadata?: Metadata
}

/** Refuses every write to a revoked license. */
export const refuseRevoked = (view: LicenseView, now: number): Refused<"LICENSE_STATE_CONFLICT"> | undefined =>
  statusAt(view.license, view.policy, now) === "revoked"
    ? reject("LICENSE_STATE_CONFLICT", "The license is revoked and cannot be changed: issue a new one.", {
        detail: "revoked"
      })
    : undefined

export const assign: Rule<AssignCommand, LicenseFeature, "LICENSE_STATE_CONFLICT" | "NOT_FOUND" | "LINKAGE_MISMATCH"> =
  {
    name: "assign",
    needs: ({ feature_id }) => ({ featureId: feature_id }),
    decide: (view, command, now) => {
      const revoked = refuseRevoked(view, now)
      if (revoked !== undefined) return revoked
      const feature = view.feature(command.feature_id)
      if (feature === undefined)
        return reject("NOT_FOUND", unknownId("feature", command.feature_id), { detail: "feature_id" })
      if (feature.product_id !== view.license.product_id) {
        return reject(
          "LINKAGE_MISMATCH",
          "The feature belongs to another product than the license: choose a feature of the license's product.",
          { detail: "feature_id" }
        )
      }
      const before = view.assignmentById(feature.id)
      const kept = keptCount(view, feature.id)
      const enabled = command.enabled ?? before?.enabled ?? true
      const expiry = expiryAfter(command, before)
      const assignment: Assignment = {
        feature_id: feature.id,
        feature_code: feature.code,
        feature_name: feature.name,
        enabled,
        max_consumptions: updatedValue(command.max_consumptions, before?.max_consumptions),
        total_consumptions: before?.total_consumptions ?? kept,
        ...expiry,
        expiry_recorded: isExpiryRecorded(before, { enabled, ...expiry }, now),
        from_policy: false,
        metadata: command.metadata ?? before?.metadata ?? {},
        created_at: before?.created_at ?? now,
        updated_at: now
      }
      // The event contains `from_policy` only if it changes.
      const changes = changesOf<Partial<Assignment>>(before ?? { from_policy: false }, assignment, [
        "enabled",
        "max_consumptions",
        "expires_at",
        "expires_with_license",
        "from_policy",
        "metadata"
      ])
      const reply = (after: LicenseView) => featureOf(after, assignment)
      const isWaitingAsBefore = before?.expires_after_days === assignment.expires_after_days
      if (before !== undefined && Object.keys(changes).length === 0 && isWaitingAsBefore) return accept({}, reply)
      return accept(
        {
          license: {
            ...(kept === 0 ? undefined : { kept_counts: keptCounts(view, [assignment], []) }),
            updated_at: now
          },
          entitlement: true,
          assignments: [assignment],
          ledger: before !== undefined && "max_consumptions" in changes ? [limitEntry(assignment)] : [],
          events: [assignmentEvent(view, "license.feature_assigned", assignment, { changes })]
        },
        reply
      )
    }
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
        ledger: assignment.total_consumptions > 0 ? [removalEntry(assignment)] : [],
        events: [assignmentEvent(view, "license.feature_removed", assignment, {})]
      },
      () => undefined
    )
  }
}

/** The ledger entry of a new maximum; without a maximum the feature is unlimited. */
export const limitEntry = ({ feature_id, max_consumptions, total_consumptions }: Assignment): LedgerEntry => ({
  feature_id,
  action: "set_limit",
  amount: max_consumptions ?? 0,
  balance_after: total_consumptions,
  max_after: max_consumptions
})

/** The ledger entry of an assignment that was removed by hand. Its count is lost: a later assignment of the feature starts from zero. */
const removalEntry = ({ feature_id, total_consumptions }: Assignment): LedgerEntry => ({
  feature_id,
  action: "reset",
  amount: -total_consumptions,
  balance_after: 0
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

const updatedValue = (value: number | null | undefined, before: number | undefined): number | undefined =>
  value === undefined ? before : (value ?? undefined)

export const featureOf = ({ license, policy }: LicenseView, assignment: Assignment): LicenseFeature =>
  presentAssignment(license.id, assignment, accessEndsAt(license, policy))

/** An assignment as the management API shows it. */
export const presentAssignment = (
  license_id: string,
  assignment: { readonly [K in keyof Omit<Assignment, "expiry_recorded">]: Assignment[K] | null },
  accessEnds: number | undefined
): LicenseFeature => {
  const { max_consumptions, total_consumptions } = assignment as Assignment
  const expires_at = shownEnd(assignment as Assignment, accessEnds)
  return {
    license_id,
    feature_id: assignment.feature_id as string,
    feature_code: assignment.feature_code as string,
    feature_name: assignment.feature_name as string,
    enabled: assignment.enabled as boolean,
    total_consumptions,
    from_policy: assignment.from_policy as boolean,
    metadata: assignment.metadata ?? {},
    ...(max_consumptions == null
      ? undefined
      : { max_consumptions, remaining: Math.max(0, max_consumptions - total_consumptions) }),
    ...(expires_at === undefined ? undefined : { expires_at }),
    ...(assignment.expires_with_license === true ? { expires_with_license: true } : undefined)
  }
}

const assignmentEvent = (
  { license }: LicenseView,
  event_type: "license.feature_assigned" | "license.feature_removed",
  { feature_code, feature_id }: Assignment,
  metadata: NewEvent["metadata"]
) => licenseEvent(event_type, license.id, { feature_id, feature_code, ...metadata })
