/** The features that a license gets from its policy, at its creation and when it moves to another policy. */

import { changesOf } from "../../ledger/events/Changes.ts"
import type { NewEvent } from "../../ledger/events/Entry.ts"
import type { PolicyFeatureRecord } from "../../vendor/policies/PolicyFeature.ts"
import { allowanceNames } from "../../vendor/policies/ResetPeriod.ts"
import { isExpiryRecorded } from "../model/FeatureExpiry.ts"
import type { Assignment, LicenseRecord, LicenseView, TargetPolicy } from "../model/LicenseRecords.ts"
import { changeOfFeature } from "../model/RecordedAssignment.ts"
import type { LedgerEntry, Usage } from "../model/Usage.ts"
import { begunFeatures, daysEndAt, termBeginsAt, termBegun } from "../rules/Terms.ts"
import { type PeriodSource, periodsWait, withPeriods } from "../rules/UsagePeriods.ts"
import { periodSource } from "./AssignedQuota.ts"
import { limitEntry } from "./Assignments.ts"
import { type KeptCounts, keptCounts, keptUsage, returned, usageIn } from "./KeptCounts.ts"

/**
 * The assignment of a feature that comes with a policy. Earlier consumption stays counted. The feature's days begin
 * with the license's term; while `termBegins` is undefined, they are pending.
 */
export const grantedFeature = (
  feature: PolicyFeatureRecord,
  before: (Usage & Partial<Assignment>) | undefined,
  termBegins: number | undefined,
  now: number
): Assignment => ({
  ...(before === undefined ? { total_consumptions: 0 } : usageIn(before)),
  feature_id: feature.feature_id,
  feature_code: feature.feature_code,
  feature_name: feature.feature_name,
  enabled: feature.enabled,
  max_consumptions: feature.max_consumptions,
  reset_period: feature.reset_period,
  reset_anchor: feature.reset_anchor,
  rollover_max: feature.rollover_max,
  overage_max: feature.overage_max,
  ...(termBegins === undefined || feature.expires_after_days === undefined
    ? { expires_at: undefined, expires_after_days: feature.expires_after_days }
    : { expires_at: daysEndAt(termBegins, feature.expires_after_days), expires_after_days: undefined }),
  expires_with_license: feature.expires_with_license,
  expiry_recorded: false,
  from_policy: true,
  metadata: feature.metadata,
  created_at: before?.created_at ?? now,
  updated_at: now
})

/**
 * A feature that came with the policy, as the policy has it now; undefined if that is what the license has. An expiry that is set
 * stays, unless the policy has no days for the feature any more.
 */
const appliedFeature = (
  feature: PolicyFeatureRecord,
  before: Assignment,
  termBegins: number | undefined,
  source: PeriodSource,
  now: number
): Assignment | undefined => {
  const granted = withPeriods(grantedFeature(feature, before, termBegins, now), source, now)
  const { expires_at } = before
  const after =
    expires_at === undefined || feature.expires_after_days === undefined
      ? granted
      : {
          ...granted,
          expires_at,
          expires_after_days: undefined,
          expiry_recorded: isExpiryRecorded(before, { enabled: granted.enabled, expires_at }, now)
        }
  const differing = changesOf(before, after, [
    "enabled",
    "max_consumptions",
    "expires_at",
    "expires_after_days",
    "expires_with_license",
    ...allowanceNames,
    "metadata"
  ])
  return Object.keys(differing).length === 0 ? undefined : after
}

interface ChangedFeature {
  readonly before: Assignment | undefined
  readonly after: Assignment
}

/** The changes that a move makes to the features of a license. */
interface MovedFeatures {
  readonly assignments: ReadonlyArray<Assignment>
  /** Feature ids. */
  readonly removed: ReadonlyArray<string>
  readonly ledger: ReadonlyArray<LedgerEntry>
  readonly events: ReadonlyArray<NewEvent>
  readonly kept_counts: KeptCounts
  /** For the event: `features.<code>` with the old and the new assignment. */
  readonly changes: ReturnType<typeof changesOf>
}

/**
 * The new policy's features replace those that came with the old one; features assigned by hand stay. With `keep`, only
 * missing features are added, and the others are the license's own from then on. A move to the same policy gives the license
 * what the policy has now. If the move begins the license's term, the pending days of the remaining features begin, too.
 */
export const featuresAfterMove = (
  view: LicenseView,
  { features, policy }: TargetPolicy,
  moved: LicenseRecord,
  keep: boolean,
  now: number
): MovedFeatures => {
  const termBegins = termBeginsAt(moved, now)
  const source = periodSource(view, { ...moved, ...termBegun(view.license, termBegins) })
  const begun = termBegins === undefined ? [] : begunFeatures(view, termBegins, now)
  const isSame = policy.id === view.policy.id
  const granted = features.flatMap((feature) => {
    const before = view.assignmentById(feature.feature_id)
    if (before !== undefined && (keep || !before.from_policy)) return []
    const after =
      isSame && before !== undefined
        ? appliedFeature(feature, before, termBegins, source, now)
        : withPeriods(
            grantedFeature(feature, before ?? keptUsage(view, feature.feature_id), termBegins, now),
            source,
            now
          )
    if (after === undefined) return []
    const { assignment, ...ended } = returned(view, before, after, now)
    return [{ before, after: assignment, ended }]
  })
  const comes = new Set(features.map(({ feature_id }) => feature_id))
  const goes = ({ feature_id, from_policy }: Assignment) => from_policy && !comes.has(feature_id)
  const lost = keep ? [] : view.assignments.filter(goes)
  const replaced = new Set([...granted.map(({ after }) => after), ...lost].map(({ feature_id }) => feature_id))
  const stays = staying(view, begun, keep && !isSame, source, now).filter(
    ({ after }) => !replaced.has(after.feature_id)
  )
  return {
    assignments: [...granted, ...stays].map(({ after }) => after),
    removed: lost.map(({ feature_id }) => feature_id),
    ledger: granted.flatMap(({ after, before, ended }) =>
      before !== undefined && before.max_consumptions !== after.max_consumptions ? [limitEntry(after)] : ended.ledger
    ),
    events: granted.flatMap(({ ended }) => ended.events),
    kept_counts: keptCounts(
      view,
      granted.map(({ after }) => after),
      lost
    ),
    changes: Object.assign(
      {},
      changesTo([...granted, ...stays]),
      ...lost.map((before) => changeOfFeature(before.feature_code, before, undefined))
    )
  }
}

/** The features that change although they stay. */
const staying = (
  { assignments }: LicenseView,
  begun: ReadonlyArray<ChangedFeature>,
  becomeOwn: boolean,
  source: PeriodSource,
  now: number
): ReadonlyArray<ChangedFeature> => {
  const afterBegin = new Map(begun.map(({ after }) => [after.feature_id, after]))
  return assignments.flatMap((before) => {
    const after = afterBegin.get(before.feature_id) ?? waiting(before, source, now)
    if (becomeOwn && before.from_policy) return [{ before, after: { ...after, from_policy: false, updated_at: now } }]
    return after === before ? [] : [{ before, after }]
  })
}

/** The periods of a feature that stays wait, too, for a term that the move makes wait. */
const waiting = (before: Assignment, source: PeriodSource, now: number): Assignment => {
  const after = withPeriods(before, source, now)
  return periodsWait(after) && !periodsWait(before) ? { ...after, updated_at: now } : before
}

const changesTo = (features: ReadonlyArray<ChangedFeature>): MovedFeatures["changes"] =>
  Object.assign({}, ...features.map(({ after, before }) => changeOfFeature(after.feature_code, before, after)))
