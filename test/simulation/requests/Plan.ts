/**
 * The plan of a seed. Each seed draws its own mixture of nodes, limits, commands and faults, and omits whole kinds: a
 * run in which everything occurs rarely finds less than many runs in which something occurs often.
 */

import type { Policy } from "../model/Model.ts"
import type { Quota } from "../model/Periods.ts"
import type { Verdict } from "../nodes/Faults.ts"
import type { RandomSource } from "./RandomSource.ts"

/** The operations of clients and operators with their usual weights. */
const weights = {
  activate: 12,
  validate: 6,
  check: 4,
  consume: 18,
  deactivate: 6,
  offline: 4,
  "deactivate own": 4,
  checkout: 10,
  heartbeat: 5,
  checkin: 6,
  suspend: 2,
  reinstate: 3,
  revoke: 0.5,
  renew: 3,
  "renew maintenance": 2,
  transfer: 2,
  "change policy": 3,
  "reset usage": 4,
  "rotate key": 1.5,
  assign: 4,
  unassign: 2,
  "reset device": 2,
  blacklist: 2,
  unblacklist: 3,
  update: 3,
  "edit policy": 2,
  "set policy feature": 1.5,
  "delete policy feature": 0.5,
  "edit feature": 1,
  "create feature": 1.5,
  "delete feature": 1.5,
  "create version": 1,
  "delete version": 1,
  "sweep expiry": 1,
  "sweep leases": 1,
  "sweep heartbeats": 1,
  "sweep periods": 1.5,
  "take back": 4,
  "edit subscription": 1.5
}

export type Operation = keyof typeof weights

export const operationNames = Object.keys(weights) as ReadonlyArray<Operation>

/** The probability of each fault. */
type Faults = { readonly [verdict in Exclude<Verdict, "pass">]: number }

export interface Plan {
  readonly nodes: number
  /** The probability that a transaction is held before its COMMIT until the random source releases it. */
  readonly held: number
  readonly groupMax: number
  readonly operations: { readonly [operation in Operation]: number }
  readonly faults: Faults
  /**
   * Probabilities per turn of the scheduler: a node loses all its connections, is stopped, or is presumed dead and
   * continues.
   */
  readonly nodeFaults: { readonly cutOff: number; readonly stopped: number; readonly abandoned: number }
  /** Probabilities that a step begins with a time jump, that time jumps within it, and that a jump goes back. */
  readonly leaps: { readonly before: number; readonly within: number; readonly back: number }
  /** The probability that a command repeats an earlier one. */
  readonly repeats: number
  /** The probability that a command has an Idempotency-Key. */
  readonly kept: number
  readonly policies: ReadonlyArray<Policy>
  readonly licenses: ReadonlyArray<{ readonly policy: number; readonly machines: number; readonly others: number }>
  readonly hasVersions: boolean
  /** How often a batch is decided before its license is locked for it. */
  readonly attemptsFree: number
  /** By how many milliseconds each node's clock is ahead of the first node's. */
  readonly ahead: ReadonlyArray<number>
  /** The probability that a command names an unknown license. */
  readonly unknownLicenses: number
  /**
   * The probability that a step begins with a failover to a standby that lags; a sixth of it per turn within a step.
   */
  readonly failovers: number
  /** The probability per turn, while no transaction is open, that the epochs of all nodes are retired. */
  readonly retired: number
  /** Whether nearly all requests are about quotas with periods, and time leads to their ends. */
  readonly isAboutQuotas: boolean
  /** Whether nearly all commits store their entries, which get their numbers later. */
  readonly isNumberedLater: boolean
}

const rates = [0.01, 0.03, 0.1]

/** A rate, or zero. */
const rateOrZero = (random: RandomSource, share = 0.5): number => (random.chance(share) ? random.pick(rates) : 0)

/** The features of the initial data that come with a policy. */
const policyFeaturesOf = (random: RandomSource): Policy["features"] =>
  new Map(
    ["feat_a", "feat_b", "feat_c"].flatMap((id) => {
      const days = random.pick([null, null, 1])
      const follows = days === null && random.chance(0.3)
      return random.chance(0.5)
        ? [[id, { enabled: random.chance(0.8), ...quotaOf(random), days, follows, metadata: "{}" }] as const]
        : []
    })
  )

/** The quota of a feature in the initial data, in half of the cases with periods. */
export const quotaOf = (random: RandomSource, isAboutQuotas = false): Quota => {
  if (isAboutQuotas)
    return {
      max: 5,
      period: random.pick(["day", "day", "week", "month", "subscription"]),
      anchor: random.pick([null, null, "subscription"]),
      rollover: random.pick([null, 2, 5, 5]),
      beyond: random.pick([null, 3, -1])
    }
  const max = random.pick([null, 5, 20])
  const none = { max, period: null, anchor: null, rollover: null, beyond: null }
  if (max === null || random.chance(0.4)) return none
  return {
    max,
    period: random.pick(["day", "week", "month", "subscription"]),
    anchor: random.pick([null, "license", "subscription"]),
    rollover: random.pick([null, 2, 5]),
    beyond: random.pick([null, null, 3, -1])
  }
}

const policyOf = (random: RandomSource, index: number): Policy => {
  const license_type = random.pick(["subscription", "time_limited", "trial", "perpetual", "perpetual", "consumption"])
  return { ...rulesOf(random), id: `pol_${index}`, license_type, ...termOf(random, license_type) }
}

const termOf = (random: RandomSource, type: string): Pick<Policy, TermField> => ({
  maintenance_days: type === "perpetual" ? random.pick([null, 1, 30]) : null,
  duration_days: type === "perpetual" ? null : random.pick([null, 1, 30]),
  duration_starts: random.pick(["creation", "first_activation", "first_activation"])
})

type TermField = "duration_days" | "duration_starts" | "maintenance_days"

const rulesOf = (random: RandomSource): Omit<Policy, "id" | "license_type" | TermField> => ({
  max_activations: random.pick([0, 1, 1, 2, 3]),
  max_floating_users: random.pick([null, 1, 1, 2, 3]),
  max_container_instances: random.pick([null, null, 0, 1, 2]),
  floating_timeout_minutes: random.pick([1, 30]),
  grace_period_days: random.pick([0, 0, 3]),
  validation_interval_minutes: random.pick([10, 1440]),
  require_heartbeat: random.chance(0.4),
  allow_offline_activation: random.chance(0.8),
  offline_grace_days: 7,
  allow_vm: random.chance(0.8),
  allow_container: random.chance(0.8),
  max_transfers: random.pick([0, 0, 2]),
  allow_transfer: random.chance(0.8),
  self_deactivations_per_month: random.pick([0, 1, 2, 5]),
  hold_offline_slots: random.chance(0.4),
  borrow_days_max: random.pick([null, 1, 3, 30]),
  show_licensee: random.chance(0.3),
  features: policyFeaturesOf(random),
  floor: null,
  version: 0
})

const listOf = <A>(random: RandomSource, max: number, one: (index: number) => A): ReadonlyArray<A> =>
  Array.from({ length: random.between(1, max) }, (_, index) => one(index))

export const planOf = (random: RandomSource): Plan => {
  const plan = drawn(random)
  const later = random.detached()
  const faulty = withRetiredEpochs(withFailovers(withClockSkew(withFewAttempts(plan, later), later), later), later)
  return { ...withQuotas(faulty, later), isNumberedLater: later.chance(0.3) }
}

/** The weights of the requests of a seed about quotas; others have little. */
const quotaWeights: Partial<Plan["operations"]> = {
  activate: 6,
  consume: 40,
  "take back": 16,
  "reset usage": 8,
  assign: 8,
  unassign: 1,
  "change policy": 5,
  update: 3,
  "edit subscription": 8,
  "sweep periods": 8
}

const withQuotas = (plan: Plan, random: RandomSource): Plan => {
  if (!random.chance(0.25)) return plan
  const operations = Object.entries(plan.operations).map(([operation, weight]) => [
    operation,
    quotaWeights[operation as Operation] ?? weight * 0.2
  ])
  const features = () => new Map(["feat_a", "feat_b"].map((id) => [id, { ...grantedAlways, ...quotaOf(random, true) }]))
  return {
    ...plan,
    isAboutQuotas: true,
    operations: Object.fromEntries(operations) as Plan["operations"],
    leaps: { ...plan.leaps, before: 0.4, within: random.pick([plan.leaps.within, 0.2]) },
    policies: plan.policies.map((policy) => ({ ...policy, features: features() }))
  }
}

const grantedAlways = { enabled: true, days: null, follows: false, metadata: "{}" }

const withRetiredEpochs = (plan: Plan, random: RandomSource): Plan =>
  plan.failovers === 0 && random.chance(0.4) ? { ...plan, retired: random.pick([0.01, 0.05]) } : plan

const withFailovers = (plan: Plan, random: RandomSource): Plan =>
  random.chance(0.3) ? { ...plan, failovers: random.pick([0.1, 0.3]) } : plan

/** Clock skew as networks cause it, or a wrong setting. */
const withClockSkew = (plan: Plan, random: RandomSource): Plan => {
  if (!random.chance(0.3)) return plan
  // At most 30 seconds from the slowest to the fastest.
  const one = () => random.pick([0, 1, 40, 2000, 15_000, -1, -400, -15_000])
  return { ...plan, ahead: [0, one(), one()] }
}

/**
 * The service hardly ever uses its last attempt. With fewer attempts licenses are locked more often; then more is made
 * to happen between the lock and the COMMIT: other requests, edits and a time jump.
 */
const withFewAttempts = (plan: Plan, random: RandomSource): Plan => {
  const attemptsFree = random.pick([plan.attemptsFree, plan.attemptsFree, 0, 1])
  if (attemptsFree === plan.attemptsFree) return plan
  return {
    ...plan,
    attemptsFree,
    held: random.pick([plan.held, 1]),
    operations: { ...plan.operations, "edit policy": random.pick([plan.operations["edit policy"], 10]) },
    leaps: { ...plan.leaps, within: random.pick([plan.leaps.within, 0.3]) },
    unknownLicenses: random.pick([0, 0.03])
  }
}

const drawn = (random: RandomSource): Plan => {
  const policies = listOf(random, 3, (index) => policyOf(random, index))
  const operations = Object.entries(weights).map(([operation, weight]) => [
    operation,
    weight * random.pick([0, 1, 1, 1, 4])
  ])
  return {
    nodes: random.pick([1, 2, 2, 3]),
    held: random.pick([0, 0.3, 1]),
    groupMax: random.pick([1, 4, 8, 12]),
    operations: { ...(Object.fromEntries(operations) as Plan["operations"]), activate: weights.activate },
    faults: {
      lost: rateOrZero(random, 0.3),
      serialization: rateOrZero(random, 0.4),
      deadlock: rateOrZero(random, 0.4),
      refused: rateOrZero(random, 0.3),
      cut: rateOrZero(random, 0.3),
      unacknowledged: rateOrZero(random, 0.4),
      undecided: rateOrZero(random, 0.4)
    },
    nodeFaults: {
      cutOff: rateOrZero(random, 0.2) / 10,
      stopped: rateOrZero(random, 0.3) / 5,
      abandoned: rateOrZero(random, 0.3) / 5
    },
    leaps: { before: random.pick([0, 0.1, 0.3]), within: rateOrZero(random, 0.4), back: random.pick([0, 0, 0.3]) },
    repeats: random.pick([0, 0.1, 0.3]),
    kept: random.pick([0, 0.3]),
    policies,
    licenses: listOf(random, 3, () => ({
      policy: random.between(0, policies.length - 1),
      machines: random.between(2, 6),
      others: random.chance(0.15) ? 80 : 0
    })),
    hasVersions: random.chance(0.5),
    attemptsFree: 5,
    ahead: [0, 0, 0],
    unknownLicenses: 0,
    failovers: 0,
    retired: 0,
    isAboutQuotas: false,
    isNumberedLater: false
  }
}
