/** The changes by the clock to the features of a license: expiries, and periods of quotas that have ended. */
import type { NewEvent } from "../../ledger/events/Entry.ts"
import type { Assignment, LicenseView } from "../model/LicenseRecords.ts"
import type { LedgerEntry } from "../model/Usage.ts"
import { featureExpiredEvent } from "./ClockEvents.ts"
import { closePeriod, periodClosedEvent, periodEntry } from "./UsagePeriods.ts"

interface SettledFeatures {
  readonly assignments: ReadonlyArray<Assignment>
  /** How many recorded expiries raise the entitlement version. */
  readonly expiries: number
  readonly ledger: ReadonlyArray<LedgerEntry>
  readonly events: ReadonlyArray<NewEvent>
}

/** Undefined if nothing is due. Of a revoked license nothing is recorded. */
export const settleFeatures = (view: LicenseView, isRecorded: boolean, now: number): SettledFeatures | undefined => {
  const expired = view.expiredFeatures(now)
  const ended = view.endedPeriods(now)
  if (expired.length === 0 && ended.length === 0) return undefined
  const closed = ended.flatMap((assignment) => closePeriod(assignment, !isRecorded, now) ?? [])
  const assignments = new Map(closed.map(({ after }) => [after.feature_id, after]))
  for (const { feature_id, ...expiring } of expired)
    assignments.set(feature_id, {
      ...(assignments.get(feature_id) ?? { feature_id, ...expiring }),
      expiry_recorded: true
    })
  const recorded = isRecorded ? expired : []
  const renewed = closed.filter(({ periods }) => periods !== undefined)
  return {
    assignments: Array.from(assignments.values()),
    expiries: recorded.length,
    ledger: renewed.map(periodEntry),
    events: [
      ...recorded.map((assignment) => featureExpiredEvent(view.license.id, assignment)),
      ...renewed.map((period) => periodClosedEvent(view.license.id, period))
    ]
  }
}
