/**
 * The periods of a feature's quota. An assignment has the boundaries that it needs, so that the clock, lists and sweeps read
 * nothing else: changes of the license's start or of its subscription set them anew. A period that has ended is closed once,
 * however many periods have passed since.
 */
import { formatTimestamp } from "../../contract/api/Timestamp.ts"
import type { NewEvent } from "../../ledger/events/Entry.ts"
import {
  boundaryAfter,
  boundaryBefore,
  boundaryOf,
  type Grid,
  isOfSubscription,
  nextReset,
  periodsSince,
  type ResetPeriod
} from "../../vendor/policies/ResetPeriod.ts"
import type { Assignment, LicenseRecord, LinkRecord } from "../model/LicenseRecords.ts"
import type { LedgerEntry, Quota } from "../model/Usage.ts"
import { licenseEvent } from "./LicenseCommand.ts"
import { presentAmount, quotaOf, quotaUsed } from "./Quota.ts"

/** What the periods of a license's features begin with. */
export interface PeriodSource {
  readonly license: Pick<
    LicenseRecord,
    "starts_at" | "created_at" | "term_days" | "term_began_at" | "expires_at" | "maintenance_expires_at"
  >
  /** The subscription that the license is linked to. */
  readonly subscription: Pick<LinkRecord, "period_start" | "period_end"> | undefined
}

type Boundaries = Pick<Assignment, "period_anchor" | "periods_end_at" | "period_start" | "resets_at">

const gridOf = (quota: Quota, { license, subscription }: PeriodSource): Grid | undefined => {
  if (quota.reset_period === undefined) return undefined
  if (!isOfSubscription(quota)) {
    const anchor = licenseAnchor(license)
    return anchor === undefined ? undefined : { anchor }
  }
  const { period_end, period_start } = subscription ?? {}
  return period_start === undefined ? undefined : { anchor: period_start, end: period_end }
}

/** Undefined while a term waits for the first use. */
const licenseAnchor = ({
  created_at,
  expires_at,
  maintenance_expires_at,
  starts_at,
  term_began_at,
  term_days
}: PeriodSource["license"]): number | undefined => {
  const isPending = term_days !== undefined && expires_at === undefined && maintenance_expires_at === undefined
  return starts_at ?? (isPending ? undefined : (term_began_at ?? created_at))
}

/** The assignment with the boundaries of its periods. A period that has ended already stays, for the clock to close it. */
export const withPeriods = (assignment: Assignment, source: PeriodSource, now: number): Assignment => {
  const grid = gridOf(assignment, source)
  const { period_anchor, period_start, periods_end_at, reset_period, resets_at, rolled_over } = assignment
  if (reset_period === undefined)
    return (period_start ?? period_anchor ?? rolled_over) === undefined
      ? assignment
      : { ...assignment, ...noBoundaries, rolled_over: undefined }
  if (grid === undefined) return { ...assignment, ...noBoundaries, period_start }
  // A first period that has not begun moves with the license's start.
  const isAhead = grid.end === undefined && period_start === period_anchor && (period_start ?? now) > now
  const start = isAhead || period_start === undefined ? firstStart(reset_period, grid, now) : period_start
  const isDue = resets_at !== undefined && resets_at <= now && resets_at < (periods_end_at ?? Number.POSITIVE_INFINITY)
  return {
    ...assignment,
    period_anchor: grid.anchor,
    periods_end_at: grid.end,
    period_start: start,
    resets_at: isDue ? resets_at : nextReset(reset_period, grid, start, now)
  }
}

const noBoundaries: Required<Boundaries> = {
  period_anchor: undefined,
  periods_end_at: undefined,
  period_start: undefined,
  resets_at: undefined
}

const firstStart = (period: ResetPeriod, { anchor, end }: Grid, now: number): number =>
  period === "subscription" || (end === undefined && now < anchor)
    ? anchor
    : boundaryOf(period, anchor, periodsSince(period, anchor, now))

/** Whether the periods wait for the term of the license to begin. */
export const periodsWait = (assignment: Assignment): boolean =>
  assignment.reset_period !== undefined && !isOfSubscription(assignment) && assignment.period_anchor === undefined

export const beginPeriods = (assignment: Assignment, begins: number, now: number): Assignment =>
  withPeriods(assignment, { license: { created_at: begins }, subscription: undefined }, now)

/** A period that ended, and the assignment in the current one. */
export interface ClosedPeriod {
  readonly before: Assignment
  readonly after: Assignment
  /** How many periods have ended since. Undefined: no further period begins, and the usage stays as it is. */
  readonly periods: number | undefined
}

/** When the clock changes an assignment; infinity = never. */
export const periodEndsAt = ({ resets_at }: Pick<Assignment, "resets_at">): number =>
  resets_at ?? Number.POSITIVE_INFINITY

/** Closes a period that has ended; undefined if it has not. The quota of a revoked license does not begin anew. */
export const closePeriod = (before: Assignment, isRevoked: boolean, now: number): ClosedPeriod | undefined => {
  const { max_consumptions, period_anchor: anchor, periods_end_at: end, reset_period, resets_at, rollover_max } = before
  if (resets_at === undefined || resets_at > now) return undefined
  const isLast = isRevoked || resets_at >= (end ?? Number.POSITIVE_INFINITY)
  if (isLast || max_consumptions === undefined || reset_period === undefined || anchor === undefined)
    return { before, after: { ...before, resets_at: undefined }, periods: undefined }
  const { periods, start, next } = currentPeriod(reset_period, { anchor, end }, resets_at, now)
  const unused = Math.max(0, (quotaOf(before) ?? 0) - quotaUsed(before))
  const rolledOver = Math.min(rollover_max ?? 0, unused + (periods - 1) * max_consumptions)
  return {
    before,
    after: {
      ...before,
      total_consumptions: 0,
      credits_used: undefined,
      overage: undefined,
      rolled_over: presentAmount(rolledOver),
      period_start: start,
      resets_at: next
    },
    periods
  }
}

/** The period after those that have ended. `next` is absent if no further one is known by now. */
const currentPeriod = (period: ResetPeriod, { anchor, end }: Grid, ended: number, now: number) => {
  const later = (next: number | undefined) => (next !== undefined && next > now ? next : undefined)
  if (period === "subscription") {
    if (ended < anchor && anchor > now) return { periods: 1, start: ended, next: anchor }
    return { periods: ended < anchor ? 2 : 1, start: Math.max(ended, anchor), next: later(end) }
  }
  const until = end === undefined ? now : Math.min(now, end - 1)
  const [endedNumber, number] = [periodsSince(period, anchor, ended), periodsSince(period, anchor, until)]
  return {
    periods: 1 + Math.max(0, number - endedNumber),
    start: Math.max(ended, boundaryOf(period, anchor, number)),
    next: later(boundaryBefore(end, boundaryAfter(period, anchor, until)))
  }
}

/** An assignment as it is at an instant, before the end of its period is recorded. */
export const inCurrentPeriod = (assignment: Assignment, isRevoked: boolean, now: number): Assignment =>
  closePeriod(assignment, isRevoked, now)?.after ?? assignment

/** Sorted by the ends of the periods. */
export const endedPeriods = (assignments: ReadonlyArray<Assignment>, now: number): ReadonlyArray<Assignment> =>
  assignments
    .filter((assignment) => periodEndsAt(assignment) <= now)
    .toSorted((a, b) => periodEndsAt(a) - periodEndsAt(b) || (a.feature_code < b.feature_code ? -1 : 1))

export const firstPeriodEnd = (assignments: Iterable<Pick<Assignment, "resets_at">>): number => {
  let first = Number.POSITIVE_INFINITY
  for (const assignment of assignments) first = Math.min(first, periodEndsAt(assignment))
  return first
}

export const periodEntry = ({ before, after }: ClosedPeriod): LedgerEntry => ({
  feature_id: before.feature_id,
  action: "period_reset",
  amount: 0 - before.total_consumptions,
  balance_after: 0,
  max_after: quotaOf(after)
})

export const periodClosedEvent = (licenseId: string, { before, after, periods }: ClosedPeriod): NewEvent =>
  licenseEvent("usage.period_closed", licenseId, {
    feature_id: before.feature_id,
    feature_code: before.feature_code,
    ...(before.period_start === undefined ? undefined : { period_start: formatTimestamp(before.period_start) }),
    period_end: formatTimestamp(before.resets_at!),
    periods: periods ?? 0,
    consumed: before.total_consumptions,
    credits_used: before.credits_used ?? 0,
    overage: before.overage ?? 0,
    rolled_over: after.rolled_over ?? 0,
    ...(after.resets_at === undefined ? undefined : { resets_at: formatTimestamp(after.resets_at) })
  })
