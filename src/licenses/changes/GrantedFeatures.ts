/** The features that a license gets with its policy, when it is created and when it moves to another policy. */
import type { Schema } from "effect"
import type { PolicyFeatureRecord } from "../../catalog/policies/PolicyFeature.ts"
import { changesOf, recordedValue } from "../../events/Changes.ts"
import type { Assignment, LedgerEntry, LicenseView, TargetPolicy } from "../model/LicenseRecords.ts"
import { limitEntry, removalEntry } from "./Assignments.ts"

const dayMillis = 86_400_000

/** The assignment of a feature that comes with a policy. What was consumed of the feature before stays counted. */
export const grantedFeature = (
  feature: PolicyFeatureRecord,
  before: Assignment | undefined,
  now: number
): Assignment => ({
  feature_id: feature.feature_id,
  feature_code: feature.feature_code,
  feature_name: feature.feature_name,
  enabled: feature.enabled,
  max_consumptions: feature.max_consumptions,
  total_consumptions: before?.total_consumptions ?? 0,
  expires_at: feature.expires_after_days === undefined ? undefined : now + feature.expires_after_days * dayMillis,
  expiry_recorded: false,
  from_policy: true,
  metadata: feature.metadata,
  created_at: before?.created_at ?? now,
  updated_at: now
})

/** An assignment in an event. Its metadata is omitted: there may be 200 of them. */
export const recordedAssignment = (assignment: Assignment): { readonly [field: string]: Schema.Json } =>
  Object.fromEntries(
    (["enabled", "max_consumptions", "expires_at"] as const).flatMap((field) =>
      assignment[field] === undefined ? [] : [[field, recordedValue(field, assignment[field])]]
    )
  )

/** What a move changes about the features of a license. */
interface MovedFeatures {
  readonly assignments: ReadonlyArray<Assignment>
  /** Feature ids. */
  readonly removed: ReadonlyArray<string>
  readonly ledger: ReadonlyArray<LedgerEntry>
  /** For the event: `features.<code>` with the old and the new assignment. */
  readonly changes: ReturnType<typeof changesOf>
}

const noFeatures: MovedFeatures = { assignments: [], removed: [], ledger: [], changes: {} }

/**
 * The new policy's features replace those that came with the old one; features assigned by hand stay. If features are kept,
 * only those are added that the license does not have. A move to the same policy changes no feature.
 */
export const featuresAfterMove = (
  view: LicenseView,
  { features, policy }: TargetPolicy,
  keep: boolean,
  now: number
): MovedFeatures => {
  if (policy.id === view.policy.id) return noFeatures
  const granted = features.flatMap((feature) => {
    const before = view.assignmentById(feature.feature_id)
    const stays = before !== undefined && (keep || !before.from_policy)
    return stays ? [] : [{ before, after: grantedFeature(feature, before, now) }]
  })
  const comes = new Set(features.map(({ feature_id }) => feature_id))
  const goes = ({ feature_id, from_policy }: Assignment) => from_policy && !comes.has(feature_id)
  const lost = keep ? [] : view.assignments.filter(goes)
  return {
    assignments: granted.map(({ after }) => after),
    removed: lost.map(({ feature_id }) => feature_id),
    ledger: [
      ...granted.flatMap(({ after, before }) =>
        before !== undefined && before.max_consumptions !== after.max_consumptions ? [limitEntry(after)] : []
      ),
      ...lost.flatMap((before) => (before.total_consumptions > 0 ? [removalEntry(before)] : []))
    ],
    changes: Object.assign(
      {},
      ...granted.map(({ after, before }) => changeOf(after.feature_code, before, after)),
      ...lost.map((before) => changeOf(before.feature_code, before, undefined))
    )
  }
}

const changeOf = (code: string, before: Assignment | undefined, after: Assignment | undefined) => {
  const field = `features.${code}`
  const shown = (assignment: Assignment | undefined) => ({ [field]: assignment && recordedAssignment(assignment) })
  return changesOf<ReturnType<typeof shown>>(shown(before), shown(after), [field])
}
