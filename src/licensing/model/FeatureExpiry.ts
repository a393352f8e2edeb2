/**
 * The expiry of assigned features. It is recorded once, by an event and a new entitlement version. The expiry of a
 * disabled feature is not recorded, because it changes no response; nor is that of a feature that ends with its license's
 * access, because the end of the license is.
 */
import { latest } from "../../contract/api/Timestamp.ts"
import { clockLagMillisMax } from "./ClockLag.ts"
import type { Assignment } from "./LicenseRecords.ts"

type Expiring = Pick<Assignment, "enabled" | "expires_at" | "expiry_recorded">

/** The end of the feature; infinity = never. An expiry stays recorded if a clock ahead of this one has recorded it. */
export const featureEndsAt = ({ expires_at, expiry_recorded }: Assignment): number =>
  expires_at === undefined ? Number.POSITIVE_INFINITY : expires_at - (expiry_recorded ? clockLagMillisMax : 0)

/**
 * The end that responses show: the own date, else that of the license's access, if the feature ends with that. A node of
 * the previous version may have set a date without ending that.
 */
export const shownEnd = (
  {
    expires_at,
    expires_with_license
  }: { readonly [K in "expires_at" | "expires_with_license"]?: Assignment[K] | null },
  accessEnds: number | undefined
): number | undefined => {
  if (expires_at != null) return expires_at
  return expires_with_license === true && accessEnds !== undefined ? Math.min(accessEnds, latest) : undefined
}

/** When the expiry has to be recorded; infinity = never. */
export const expiryDueAt = ({ enabled, expires_at, expiry_recorded }: Expiring): number =>
  enabled && !expiry_recorded ? (expires_at ?? Number.POSITIVE_INFINITY) : Number.POSITIVE_INFINITY

export const firstExpiryDueAt = (assignments: Iterable<Expiring>): number => {
  let first = Number.POSITIVE_INFINITY
  for (const assignment of assignments) first = Math.min(first, expiryDueAt(assignment))
  return first
}

/** The features with an unrecorded expiry, in the order of expiry. */
export const expiredFeatures = (assignments: ReadonlyArray<Assignment>, now: number): ReadonlyArray<Assignment> =>
  assignments
    .filter((assignment) => expiryDueAt(assignment) <= now)
    .toSorted((a, b) => expiryDueAt(a) - expiryDueAt(b) || (a.feature_code < b.feature_code ? -1 : 1))

/** Whether an expiry needs no record after an edit. An edit to the past needs one if the license had the feature. */
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
