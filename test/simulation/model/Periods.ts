/**
 * Quotas with periods, written from docs/API.md: one period after the other, by the calendar of the platform. Nothing is computed
 * in one step, so that an error in the closed forms of the rules is not repeated here.
 */
import { formatTimestamp } from "../../../src/contract/api/Timestamp.ts"
import { type Assignment, dayMillis, type License } from "./Model.ts"

export interface Quota {
  readonly max: number | null
  readonly period: string | null
  /** `subscription`, or that of the license. */
  readonly anchor: string | null
  readonly rollover: number | null
  /** -1 = any amount. */
  readonly beyond: number | null
}

/** What is 0 is null, as in the rows. */
export interface Usage {
  /** The count of the period: of the quota, of bought credits, and beyond both. */
  readonly used: number
  readonly credited: number | null
  readonly overage: number | null
  readonly rolled: number | null
  readonly extra: number | null
  readonly start: number | null
  readonly resets: number | null
}

/** What the periods of a license are counted from. */
export type Dates = Pick<License, "created" | "starts" | "began" | "term" | "expires" | "maintenance">

/** Where periods are counted from, and before when the last one begins. */
export interface Grid {
  readonly from: number | null
  readonly until: number | null
}

/** The period of a subscription. */
export interface Subscription {
  readonly id: string
  readonly start: number
  readonly end: number
}

export const unused: Usage = {
  used: 0,
  credited: null,
  overage: null,
  rolled: null,
  extra: null,
  start: null,
  resets: null
}

/** An assignment before anything is said of it. */
export const unassigned: Assignment = {
  ...unused,
  ...{ max: null, period: null, anchor: null, rollover: null, beyond: null, from: null, until: null },
  ...{ enabled: true, expires: null, waiting: null, follows: false, recorded: false, granted: false, metadata: "{}" }
}

const orNull = (amount: number): number | null => (amount === 0 ? null : amount)

export const usageIn = ({ credited, extra, overage, resets, rolled, start, used }: Usage): Usage => ({
  used,
  credited,
  overage,
  rolled,
  extra,
  start,
  resets
})

export const quotaIn = ({ max, rolled }: Pick<Assignment, "max" | "rolled">): number | null =>
  max === null ? null : max + (rolled ?? 0)

const ofQuota = ({ credited, overage, used }: Usage): number => used - (credited ?? 0) - (overage ?? 0)

/** What is left of the quota. */
const leftOf = (one: Assignment): number | null => (one.max === null ? null : Math.max(0, quotaIn(one)! - ofQuota(one)))

export const fits = (one: Assignment, amount: number): boolean => {
  const left = leftOf(one)
  if (left === null || one.beyond === -1) return true
  return amount <= left + (one.extra ?? 0) + Math.max(0, (one.beyond ?? 0) - (one.overage ?? 0))
}

/** Counts an amount unit by unit: the quota first, then bought credits, then beyond both. */
export const counted = (one: Assignment, amount: number): Assignment => {
  const left = leftOf(one)
  if (left === null) return { ...one, used: one.used + amount }
  const rest = amount - Math.min(left, amount)
  const credits = Math.min(rest, one.extra ?? 0)
  return {
    ...one,
    used: one.used + amount,
    credited: orNull((one.credited ?? 0) + credits),
    extra: orNull((one.extra ?? 0) - credits),
    overage: orNull((one.overage ?? 0) + rest - credits)
  }
}

/** As if the amount had never been consumed: the overage shrinks first, then used credits come back. */
export const givenBack = (one: Assignment, amount: number): Assignment => {
  const beyond = Math.min(one.overage ?? 0, amount)
  const credits = Math.min(one.credited ?? 0, amount - beyond)
  return {
    ...one,
    used: one.used - amount,
    overage: orNull((one.overage ?? 0) - beyond),
    credited: orNull((one.credited ?? 0) - credits),
    extra: orNull((one.extra ?? 0) + credits)
  }
}

const fixed: { readonly [period: string]: number } = { day: dayMillis, week: 7 * dayMillis }

/** The boundary so many periods after the anchor. A month from the 31st ends on the last day of a shorter one. */
const boundary = (period: string, from: number, number: number): number => {
  const length = fixed[period]
  if (length !== undefined) return from + number * length
  const day = new Date(from)
  const month = day.getUTCMonth() + number * (period === "year" ? 12 : 1)
  const lastDay = new Date(Date.UTC(day.getUTCFullYear(), month + 1, 0)).getUTCDate()
  const midnight = Date.UTC(day.getUTCFullYear(), day.getUTCMonth(), day.getUTCDate())
  return Date.UTC(day.getUTCFullYear(), month, Math.min(day.getUTCDate(), lastDay)) + (from - midnight)
}

/** The last boundary at or before an instant, and the first one after it. */
const around = (period: string, from: number, instant: number) => {
  const span = instant - from
  let number = Math.floor(span / (fixed[period] ?? (span < 0 ? 28 : 366) * dayMillis)) - 1
  while (boundary(period, from, number + 1) <= instant) number++
  return { before: boundary(period, from, number), after: boundary(period, from, number + 1) }
}

export const isOfSubscription = ({ anchor, period }: Pick<Quota, "anchor" | "period">): boolean =>
  period === "subscription" || (period !== null && anchor === "subscription")

/** Where the periods of a license's quota are counted from; null from = there are none. */
const gridOf = (quota: Quota, license: Dates, subscription: Subscription | undefined): Grid => {
  if (isOfSubscription(quota)) return { from: subscription?.start ?? null, until: subscription?.end ?? null }
  const isPending = license.term !== null && license.expires === null && license.maintenance === null
  return { from: license.starts ?? (isPending ? null : (license.began ?? license.created)), until: null }
}

/**
 * The end of a period that began at `start`: at the next boundary. A subscription's later period ends it, at once if that has begun; so
 * does a license's start that is ahead.
 */
const endOf = (period: string, { from, until }: Grid, start: number | null, now: number): number | null => {
  if (from === null) return null
  const isEndedByStart = until === null ? from > now : from <= now || period === "subscription"
  if (start !== null && start < from && isEndedByStart) return from
  if (period === "subscription") return until
  // A period that has begun is not ended again.
  return Math.min(around(period, from, Math.max(now, start ?? now)).after, until ?? Number.POSITIVE_INFINITY)
}

/** An assignment whose boundaries are set anew. A period that has ended already is left to the clock. */
export const placed = (
  one: Assignment,
  license: Dates,
  subscription: Subscription | undefined,
  now: number
): Assignment => {
  const { period, resets, start } = one
  if (period === null) return { ...one, from: null, until: null, start: null, resets: null, rolled: null }
  const grid = gridOf(one, license, subscription)
  if (grid.from === null) return { ...one, from: null, until: null, resets: null }
  const isDue = resets !== null && resets <= now && resets < (one.until ?? Number.POSITIVE_INFINITY)
  const isAhead = period === "subscription" || (grid.until === null && now < grid.from)
  // A first period that has not begun moves with the license's start.
  const begun = grid.until === null && start === one.from && (start ?? now) > now ? null : start
  const first = begun ?? (isAhead ? grid.from : around(period, grid.from, now).before)
  return { ...one, ...grid, start: first, resets: isDue ? resets : endOf(period, grid, first, now) }
}

/** A license whose subscription was moved to another period. */
export const movedWith = (license: License, subscription: Subscription, now: number): License =>
  license.subscription !== subscription.id
    ? license
    : {
        ...license,
        assignments: new Map(
          Array.from(license.assignments, ([id, one]) => [
            id,
            isOfSubscription(one) ? placed(one, license, subscription, now) : one
          ])
        )
      }

/** A period of a quota that has ended by an instant, and the assignment in the current one. */
interface Ended {
  readonly after: Assignment
  /** 0 = no further one begins. */
  readonly periods: number
}

export const ended = (one: Assignment, { status }: Pick<License, "status">, now: number): Ended | undefined => {
  if (one.resets === null || one.resets > now) return undefined
  let after = one
  let periods = 0
  while (status !== "revoked" && after.resets !== null && after.resets <= now) {
    if (after.resets >= (after.until ?? Number.POSITIVE_INFINITY)) break
    const start: number = after.resets
    const rolled = orNull(Math.min(after.rollover ?? 0, Math.max(0, quotaIn(after)! - ofQuota(after))))
    const begun = { ...after, used: 0, credited: null, overage: null, rolled, start }
    after = { ...begun, resets: endOf(one.period!, one, start, start) }
    periods++
  }
  return { after: after.resets !== null && after.resets <= now ? { ...after, resets: null } : after, periods }
}

/** The end of the period of a feature that returns after it: nothing is rolled over from the time without the feature. */
export const endedMeanwhile = (one: Assignment, now: number, kept: Usage = unused): Assignment | undefined => {
  if (one.period === null && kept.resets !== null && kept.resets <= now)
    return { ...one, used: 0, credited: null, overage: null }
  const end = ended(one, { status: "active" }, now)
  return end === undefined || end.periods === 0 ? undefined : { ...end.after, rolled: null }
}

/** The ledger row of a period's end. */
export const endEntry = (feature: string, { used }: Usage, after: Assignment) => ({
  feature,
  action: "period_reset",
  amount: 0 - used,
  balance: 0,
  max: quotaIn(after)
})

/** What usage.period_closed says of it. */
export const toldOfEnd = (feature_id: string, feature_code: string | undefined, one: Assignment, now: number) => {
  const { after, periods } = ended(one, { status: "active" }, now)!
  return {
    feature_id,
    feature_code,
    period_start: formatTimestamp(one.start!),
    period_end: formatTimestamp(one.resets!),
    periods,
    consumed: one.used,
    credits_used: one.credited ?? 0,
    overage: one.overage ?? 0,
    rolled_over: after.rolled ?? 0,
    ...(after.resets === null ? undefined : { resets_at: formatTimestamp(after.resets) })
  }
}

/** The members of a quota in answers. */
export const quotaTold = (one: Assignment) => ({
  max_consumptions: one.max ?? undefined,
  remaining: leftOf(one) ?? undefined,
  reset_period: one.period ?? undefined,
  reset_anchor: one.anchor ?? undefined,
  rollover_max: one.rollover ?? undefined,
  overage_max: one.beyond ?? undefined,
  extra_credits: one.period !== null || one.extra !== null ? (one.extra ?? 0) : undefined,
  overage: one.beyond !== null || one.overage !== null ? (one.overage ?? 0) : undefined,
  rolled_over: one.rolled ?? undefined,
  period_start: one.start ?? undefined,
  resets_at: one.resets ?? undefined
})

/** Kept usage, as it is stored in the license. */
export const keptOf = ({ credited, extra, overage, resets, rolled, start, used }: Usage) => {
  const members = {
    total_consumptions: used,
    credits_used: credited ?? undefined,
    overage: overage ?? undefined,
    rolled_over: rolled ?? undefined,
    extra_credits: extra ?? undefined,
    period_start: start ?? undefined,
    resets_at: resets ?? undefined
  }
  const present = Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined))
  return Object.keys(present).length === 1 ? used : present
}

/** The usage of a feature that a policy took away; undefined: nothing is kept. */
export const keptIn = ({ kept }: Pick<License, "kept">, feature: string): Usage | undefined => {
  const stored = (JSON.parse(kept) as { readonly [feature: string]: number | { readonly [field: string]: number } })[
    feature
  ]
  if (stored === undefined) return undefined
  if (typeof stored === "number") return { ...unused, used: stored }
  const { credits_used, extra_credits, overage, period_start, resets_at, rolled_over, total_consumptions = 0 } = stored
  return {
    used: total_consumptions,
    credited: credits_used ?? null,
    overage: overage ?? null,
    rolled: rolled_over ?? null,
    extra: extra_credits ?? null,
    start: period_start ?? null,
    resets: resets_at ?? null
  }
}
