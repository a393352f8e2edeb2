/** What operators ask for: edits of policies and of their features, and limits of single licenses. */
import { dayMillis, type License } from "../model/Model.ts"
import type { Subscription } from "../model/Periods.ts"
import type { Operation } from "./Plan.ts"
import type { RandomSource } from "./RandomSource.ts"

/** Limits of one license, in an edit. */
export const ownLimits = (random: RandomSource) => {
  const limits = {
    max_activations: random.pick([null, 0, 1, 3]),
    max_container_instances: random.pick([null, 0, 1]),
    max_floating_users: random.pick([null, 0, 1, 3]),
    max_transfers: random.pick([null, 0, 3]),
    offline_grace_days: random.pick([null, 1]),
    self_deactivations_per_month: random.pick([null, 0, 2])
  }
  return Object.fromEntries(Object.entries(limits).filter(() => random.chance(0.15)))
}

export const policyEdit = (random: RandomSource) => {
  const edits = {
    max_activations: random.pick([0, 1, 2, 3]),
    max_floating_users: random.pick([null, 0, 1, 2, 3]),
    max_container_instances: random.pick([null, 0, 1, 2]),
    floating_timeout_minutes: random.pick([1, 30]),
    grace_period_days: random.pick([0, 3]),
    validation_interval_minutes: random.pick([10, 1440]),
    require_heartbeat: random.chance(0.5),
    allow_offline_activation: random.chance(0.7),
    allow_vm: random.chance(0.7),
    allow_container: random.chance(0.7),
    max_transfers: random.pick([0, 1, 3]),
    allow_transfer: random.chance(0.8),
    self_deactivations_per_month: random.pick([0, 1, 3]),
    hold_offline_slots: random.chance(0.5),
    borrow_days_max: random.pick([null, 0, 1, 30]),
    show_licensee: random.chance(0.5),
    duration_days: random.pick([null, 1, 30]),
    maintenance_days: random.pick([null, 1, 30]),
    duration_starts: random.pick(["creation", "first_activation"])
  }
  return Object.fromEntries(Object.entries(edits).filter(() => random.chance(0.2)))
}

/** Mostly a license that has maintenance, if there is one. */
export const maintained = (random: RandomSource, any: License, licenses: ReadonlyMap<string, License>): License =>
  (random.chance(0.8) && Array.from(licenses.values()).find(({ maintenance }) => maintenance !== null)) || any

/** What an assignment says of the periods of its quota: mostly nothing. */
const allowance = (random: RandomSource) => ({
  ...(random.chance(0.4) && { reset_period: random.pick([null, "day", "week", "month", "year", "subscription"]) }),
  ...(random.chance(0.3) && { reset_anchor: random.pick([null, "license", "subscription"]) }),
  ...(random.chance(0.2) && { rollover_max: random.pick([null, 0, 3, 10]) }),
  ...(random.chance(0.2) && { overage_max: random.pick([null, 0, 4, -1]) })
})

/** The period of a subscription: the one after the recorded one, or another. */
export const subscriptionPeriod = (random: RandomSource, { end, start }: Subscription, now: number) => {
  const length = random.pick([2 * dayMillis, 10 * dayMillis, 30 * dayMillis, 365 * dayMillis])
  const from = random.pick([end, end, end, start, now - dayMillis, now, now + dayMillis])
  return { current_period_start: from, current_period_end: from + length }
}

/** What an assignment of a feature changes. */
export const assignment = (random: RandomSource, dates: ReadonlyArray<number>) => ({
  ...(random.chance(0.3) && { enabled: random.chance(0.7) }),
  ...(random.chance(0.6) && { max_consumptions: random.pick([null, 0, 5, 10, 50]) }),
  ...allowance(random),
  ...(random.chance(0.3) &&
    random.pick([{ expires_at: random.pick([null, ...dates]) }, { expires_with_license: random.chance(0.8) }])),
  ...(random.chance(0.2) && { metadata: random.pick([{}, { note: "assigned" }]) })
})

/** A request about a feature that comes with a policy. `named` is mostly its feature. */
export const policyFeature = (random: RandomSource, operation: Operation, named: string) => {
  const feature_id = random.chance(0.05) ? "feat_foreign" : named
  if (operation === "delete policy feature") return { feature_id }
  return {
    feature_id,
    ...(random.chance(0.3) && { enabled: random.chance(0.7) }),
    ...(random.chance(0.6) && { max_consumptions: random.pick([0, 5, 20]), ...granted(random) }),
    ...random.pick([{}, {}, { expires_after_days: 1 }, { expires_after_days: 30 }, { expires_with_license: true }])
  }
}

/** A quota that comes with a policy, by the names of the request. */
const granted = (random: RandomSource) => {
  const given = Object.entries(allowance(random)).filter(([, value]) => value !== null)
  return Object.fromEntries(given)
}
