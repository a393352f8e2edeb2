/**
 * The expiry of assigned features. An expiry is recorded once: as an event, with a rise of the entitlement version. The
 * expiry of a disabled feature changes nothing that a license shows, so it is not recorded.
 */
import { clockLagMillisMax } from "./ClockLag.ts"
import type { Assignment } from "./LicenseRecords.ts"

type Expiring = Pick<Assignment, "enabled" | "expires_at" | "expiry_recorded">

/**
 * The instant from which the license does not have the feature; infinity = it does not end. An expiry that a clock ahead
 * of ours recorded is kept.
 */
export const featureEndsAt = ({ expires_at, expiry_recorded }: Assignment): number =>
  expires_at === undefined ? Number.POSITIVE_INFINITY : expires_at - (expiry_recorded ? clockLagMillisMax : 0)

/** The instant from which an expiry has to be recorded; infinity = never. */
export const expiryDueAt = ({ enabled, expires_at, expiry_recorded }: Expiring): number =>
  enabled && !expiry_recorded ? (expires_at ?? Number.POSITIVE_INFINITY) : Number.POSITIVE_INFINITY

/** The first of these instants. */
export const firstExpiryDueAt = (assignments: Iterable<Expiring>): number => {
  let first = Number.POSITIVE_INFINITY
  for (const assignment of assignments) first = Math.min(first, expiryDueAt(assignment))
  return first
}

/** The features that have expired without a record, in the order of their expiry. */
export const expiredFeatures = (assignments: ReadonlyArray<Assignment>, now: number): ReadonlyArray<Assignment> =>
  assignments
    .filter((assignment) => expiryDueAt(assignment) <= now)
    .toSorted((a, b) => expiryDueAt(a) - expiryDueAt(b) || (a.feature_code < b.feature_code ? -1 : 1))

/**
 * Whether an assignment's expiry needs no record after an edit. An edit to a date in the past ends a feature that the
 * license had until then: the clock records that next. A feature that the license did not have does not end.
 */
export const isExpiryRecorded = (
  before: Assignment | undefined,
  after: Omit<Expiring, "expiry_recorded">,
  now: number
) => {
  const { enabled, expires_at } = after
  if (expires_at === undefined) return false
  if (before?.expiry_recorded && before.expires_at === expires_at) return true
  return expires_at <= now && !(before !== undefined && isIncluded(before, now) && enabled)
}

/** Whether responses list the feature. */
const isIncluded = (assignment: Assignment, now: number): boolean =>
  assignment.enabled && featureEndsAt(assignment) > now
