/**
 * The periods after which a quota begins anew, by the UTC calendar. Boundaries are computed from the anchor, so that a month
 * from the 31st ends on the last day of a shorter month, and skipped periods cost nothing.
 */
import { Schema } from "effect"
import { Count, integer } from "../../contract/api/Int64.ts"
import { dayMillis, latest } from "../../contract/api/Timestamp.ts"

export const ResetPeriod = Schema.Literals(["day", "week", "month", "year", "subscription"]).annotate({
  identifier: "ResetPeriod",
  description:
    "After which time the quota begins anew, in UTC; subscription: with each period of the linked subscription."
})
export type ResetPeriod = typeof ResetPeriod.Type

export const ResetAnchor = Schema.Literals(["license", "subscription"]).annotate({
  identifier: "ResetAnchor",
  description:
    "Where the periods begin. license: at starts_at, otherwise when its term began, otherwise at its creation. subscription: at the current_period_start of the linked subscription, until its current_period_end."
})
export type ResetAnchor = typeof ResetAnchor.Type

/** What a policy's feature and an assignment say about their periods. */
export const allowanceFields = {
  reset_period: ResetPeriod,
  reset_anchor: ResetAnchor,
  rollover_max: Count.annotate({
    description: "The most of an unused quota that the next period gets in addition; absent: nothing."
  }),
  overage_max: integer(-1, Number.MAX_SAFE_INTEGER).annotate({
    format: "int64",
    description:
      "What may be consumed in a period beyond the quota and bought credits; -1: without limit; absent: nothing."
  })
}

export interface Allowance {
  readonly max_consumptions?: number | null | undefined
  readonly reset_period?: ResetPeriod | null | undefined
  readonly reset_anchor?: ResetAnchor | null | undefined
  readonly rollover_max?: number | null | undefined
  readonly overage_max?: number | null | undefined
}

export const allowanceNames = ["reset_period", "reset_anchor", "rollover_max", "overage_max"] as const

/** Why fields of an allowance contradict each other, and which field to change. */
export const allowanceFault = ({
  max_consumptions,
  overage_max,
  reset_anchor,
  reset_period,
  rollover_max
}: Allowance): { readonly field: keyof Allowance; readonly message: string } | undefined => {
  if (reset_period == null) {
    if (reset_anchor != null) return { field: "reset_anchor", message: withoutPeriod("reset_anchor") }
    if (rollover_max != null) return { field: "rollover_max", message: withoutPeriod("rollover_max") }
  }
  if (max_consumptions == null) {
    if (reset_period != null) return { field: "reset_period", message: withoutQuota("reset_period") }
    return overage_max == null ? undefined : { field: "overage_max", message: withoutQuota("overage_max") }
  }
  return rollover_max != null && rollover_max > max_consumptions
    ? {
        field: "rollover_max",
        message: "The rollover is above the quota: choose a rollover_max of at most max_consumptions."
      }
    : undefined
}

const withoutPeriod = (field: string) => `The quota has no periods: give a reset_period, or leave out ${field}.`
const withoutQuota = (field: string) =>
  `An unlimited feature has no quota: give max_consumptions, or leave out ${field}.`

/** Whether the periods depend on the linked subscription. */
export const isOfSubscription = ({ reset_anchor, reset_period }: Allowance): boolean =>
  reset_period === "subscription" || (reset_period != null && reset_anchor === "subscription")

export type CalendarPeriod = Exclude<ResetPeriod, "subscription">

/** How many periods after the anchor the instant is, rounded down. */
export const periodsSince = (period: CalendarPeriod, anchor: number, instant: number): number => {
  if (period === "day" || period === "week") return Math.floor((instant - anchor) / lengthOf[period])
  const estimate = Math.floor((monthOf(instant) - monthOf(anchor)) / lengthOf[period])
  return boundaryOf(period, anchor, estimate) > instant ? estimate - 1 : estimate
}

/** The start of the period with this number; the anchor is the start of number 0. */
export const boundaryOf = (period: CalendarPeriod, anchor: number, number: number): number =>
  period === "day" || period === "week"
    ? anchor + number * lengthOf[period]
    : monthsAfter(anchor, number * lengthOf[period])

/** The first boundary after an instant. */
export const boundaryAfter = (period: CalendarPeriod, anchor: number, instant: number): number =>
  boundaryOf(period, anchor, periodsSince(period, anchor, instant) + 1)

/** Where periods are counted from, and before which instant they begin. */
export interface Grid {
  readonly anchor: number
  readonly end?: number | undefined
}

/**
 * The end of the current period. A subscription's period that began after the current one ends it, at once if it has begun
 * already; so does a license's start that was moved into the future. A period that another node's clock has begun before this
 * one's is not ended again.
 */
export const nextReset = (
  period: ResetPeriod,
  { anchor, end }: Grid,
  periodStart: number | undefined,
  now: number
): number | undefined => {
  const isLater = periodStart !== undefined && periodStart < anchor
  const endsAtAnchor = period === "subscription" || (end === undefined ? anchor > now : anchor <= now)
  if (isLater && endsAtAnchor) return anchor
  return period === "subscription"
    ? end
    : boundaryBefore(end, boundaryAfter(period, anchor, Math.max(now, periodStart ?? Number.NEGATIVE_INFINITY)))
}

/** The subscription's end is shown as the end of its last period. */
export const boundaryBefore = (end: number | undefined, boundary: number): number | undefined => {
  const first = Math.min(boundary, end ?? boundary)
  return first > latest ? undefined : first
}

/**
 * The next two resets of each period, for all features of a subscription: as `movePeriods` writes them. The second one is for
 * periods that another node's clock has begun before this one's.
 */
export const subscriptionResets = (anchor: number, end: number, now: number) =>
  calendarPeriods.map((period) => {
    const next = (after: number) => nextReset(period, { anchor, end }, undefined, after) ?? end
    const first = next(now)
    return { period, first, second: next(first) }
  })

const calendarPeriods = ["day", "week", "month", "year"] as const

/** In milliseconds, or in months. */
const lengthOf = { day: dayMillis, week: 7 * dayMillis, month: 1, year: 12 } as const

const monthsAfter = (anchor: number, months: number): number => {
  const month = monthOf(anchor)
  const intoMonth = anchor - firstDayOf(month) * dayMillis
  const day = Math.floor(intoMonth / dayMillis)
  const lastDay = firstDayOf(month + months + 1) - firstDayOf(month + months) - 1
  return (firstDayOf(month + months) + Math.min(day, lastDay)) * dayMillis + (intoMonth - day * dayMillis)
}

/** Months since January of the year 0. */
const monthOf = (instant: number): number => {
  const day = Math.floor(instant / dayMillis)
  // A month is at least 28 and on average 30.44 days long, so the estimate is at most one month off.
  const estimate = Math.floor((day + daysBeforeEpoch) / daysPerMonth)
  if (firstDayOf(estimate) > day) return estimate - 1
  return firstDayOf(estimate + 1) > day ? estimate : estimate + 1
}

const daysBeforeEpoch = 719_528
const daysPerMonth = 146_097 / 4_800

/** The number of a month's first day, in days since the epoch. Years begin with March, so that leap days come last. */
const firstDayOf = (month: number): number => {
  const year = Math.floor((month - 2) / 12)
  const fromMarch = month - 2 - 12 * year
  const leapDays = Math.floor(year / 4) - Math.floor(year / 100) + Math.floor(year / 400)
  return 365 * year + leapDays + Math.floor((153 * fromMarch + 2) / 5) + 60 - daysBeforeEpoch
}
