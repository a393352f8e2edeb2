/** The limits that hold for a license, and its term, written from docs/API.md. */
import {
  type Answer,
  type Assignment,
  accessEnd,
  dayMillis,
  type License,
  type Policy,
  type Situation
} from "./Model.ts"
import { isOfSubscription, placed } from "./Periods.ts"

export interface Limits {
  readonly max_activations: number
  readonly max_container_instances: number | null
  readonly max_floating_users: number | null
  readonly max_transfers: number
  readonly offline_grace_days: number
  readonly self_deactivations_per_month: number
}

/** Null = the policy's. */
export type OwnLimits = { readonly [K in keyof Limits]: number | null }

/** A license's own limit takes the place of its policy's. */
export const limitsFor = (own: OwnLimits, policy: Policy): Limits => ({
  max_activations: own.max_activations ?? policy.max_activations,
  max_container_instances: own.max_container_instances ?? policy.max_container_instances,
  max_floating_users: own.max_floating_users ?? policy.max_floating_users,
  max_transfers: own.max_transfers ?? policy.max_transfers,
  offline_grace_days: own.offline_grace_days ?? policy.offline_grace_days,
  self_deactivations_per_month: own.self_deactivations_per_month ?? policy.self_deactivations_per_month
})

/** The days of a policy's term; those of a perpetual license are the days of its maintenance. */
export const termDays = ({ duration_days, license_type, maintenance_days }: Policy): number | null =>
  license_type === "perpetual" ? maintenance_days : duration_days

/**
 * When a pending term would end if it began now, or at the license's later start. The policy's days count, if it still has
 * such a term.
 */
export const termEnd = ({ license, policy, now }: Situation): number | null => {
  if (license.term === null) return null
  const days = policy.duration_starts === "first_activation" ? termDays(policy) : null
  return Math.max(now, license.starts ?? now) + (days ?? license.term) * dayMillis
}

/** The features of a license whose term begins: the days and periods of those that waited for it count from then. */
export const featuresFrom = (license: License, begins: number, now: number): License["assignments"] =>
  new Map(
    Array.from(license.assignments, ([id, waiting]) => {
      const one =
        waiting.waiting === null
          ? waiting
          : { ...waiting, expires: begins + waiting.waiting * dayMillis, waiting: null }
      const isWaiting = one.period !== null && one.from === null && !isOfSubscription(one)
      const begun = { ...license, term: null, starts: null, began: begins }
      return [id, isWaiting ? placed(one, begun, undefined, now) : one]
    })
  )

/** When the term of a license began that begins now with its first use. */
export const beganAt = ({ began, expires, maintenance, term }: License, begins: number): number | null =>
  term !== null && expires === null && maintenance === null ? begins : began

/** The end of a feature that answers show: its own, or that of access if it ends with the license. */
export const shownEnd = (
  { license, policy }: Situation,
  { expires, follows }: Pick<Assignment, "expires" | "follows">
): number | undefined => expires ?? (follows && license.expires !== null ? accessEnd(license, policy) : undefined)

/** The situation after the first use of a license, and the events that it leaves. */
export const begun = (situation: Situation): { readonly used: Situation; readonly left: Answer["events"] } => {
  const expires = termEnd(situation)
  if (expires === null) return { used: situation, left: [] }
  const { now } = situation
  const assignments = featuresFrom(situation.license, now, now)
  const ends = situation.policy.license_type === "perpetual" ? { maintenance: expires } : { expires }
  const begun = { assignments, ...ends, term: null, began: now }
  const license = { ...situation.license, ...begun, version: situation.license.version + 1 }
  return { used: { ...situation, license }, left: ["license.updated"] }
}
