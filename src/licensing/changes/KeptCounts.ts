/**
 * The usage of features that a policy took away. It continues when a feature returns, by a policy or by hand: the count until the
 * end of its period, bought credits without an end.
 */
import type { NewEvent } from "../../ledger/events/Entry.ts"
import type { Assignment, LicenseRecord, LicenseView } from "../model/LicenseRecords.ts"
import type { KeptCount, LedgerEntry, Usage } from "../model/Usage.ts"
import { type ClosedPeriod, closePeriod, periodClosedEvent, periodEntry } from "../rules/UsagePeriods.ts"

export type KeptCounts = LicenseRecord["kept_counts"]

const usageFields = [
  "credits_used",
  "overage",
  "rolled_over",
  "extra_credits",
  "period_start",
  "resets_at"
] as const satisfies ReadonlyArray<keyof Usage>

/** The usage in an assignment, or what is kept of it. */
export const usageIn = (usage: Usage): Usage => ({
  total_consumptions: usage.total_consumptions,
  ...Object.fromEntries(usageFields.flatMap((field) => (usage[field] === undefined ? [] : [[field, usage[field]]])))
})

export const keptUsage = ({ license }: LicenseView, featureId: string): Usage | undefined => {
  const kept = license.kept_counts?.[featureId]
  return typeof kept === "number" ? { total_consumptions: kept } : kept
}

/** A feature that a command assigns, and what is recorded of the end of its period. */
interface Returned {
  readonly assignment: Assignment
  readonly ledger: ReadonlyArray<LedgerEntry>
  readonly events: ReadonlyArray<NewEvent>
}

/**
 * Ends the period of a feature that returns after it. Nothing is rolled over, because the license did not have the feature
 * since. All other periods are ended by the clock.
 */
export const returned = (
  view: LicenseView,
  before: Assignment | undefined,
  assignment: Assignment,
  now: number
): Returned => {
  const closed =
    before === undefined ? (closePeriod(assignment, false, now) ?? closeKept(view, assignment, now)) : undefined
  if (closed?.periods === undefined) return { assignment, ledger: [], events: [] }
  const period = { ...closed, after: { ...closed.after, rolled_over: undefined } }
  return {
    assignment: period.after,
    ledger: [periodEntry(period)],
    events: [periodClosedEvent(view.license.id, period)]
  }
}

/** The same of a feature that returns without periods. */
const closeKept = (view: LicenseView, assignment: Assignment, now: number): ClosedPeriod | undefined => {
  const { period_start, resets_at } = keptUsage(view, assignment.feature_id) ?? {}
  if (assignment.reset_period !== undefined || resets_at === undefined || resets_at > now) return undefined
  const after = { ...assignment, total_consumptions: 0, credits_used: undefined, overage: undefined }
  return { before: { ...assignment, period_start, resets_at }, after, periods: 1 }
}

/** The kept counts after a policy took features away and others were assigned. */
export const keptCounts = (
  { license }: LicenseView,
  assigned: ReadonlyArray<Assignment>,
  lost: ReadonlyArray<Assignment>
): KeptCounts => {
  const counts = new Map<string, KeptCount>(Object.entries(license.kept_counts ?? {}))
  for (const { feature_id } of assigned) counts.delete(feature_id)
  for (const assignment of lost) if (isUsed(assignment)) counts.set(assignment.feature_id, keptOf(usageIn(assignment)))
  return counts.size === 0 ? undefined : Object.fromEntries(counts)
}

const isUsed = ({ total_consumptions, extra_credits = 0, rolled_over = 0 }: Usage): boolean =>
  total_consumptions > 0 || extra_credits > 0 || rolled_over > 0

/** A count without periods is a plain number, which earlier versions read. */
const keptOf = ({ total_consumptions, ...rest }: Usage): KeptCount =>
  Object.keys(rest).length === 0 ? total_consumptions : { total_consumptions, ...rest }
