/**
 * What one seed is about. Each draws its own mixture of nodes, limits, commands and faults, with whole kinds left out: a run
 * in which everything happens a little finds less than many in which something happens a lot.
 */

import type { Verdict } from "./Faults.ts"
import type { Policy } from "./model/Model.ts"
import type { RandomSource } from "./RandomSource.ts"

/** What clients and operators do, and how often where nothing is left out. */
const weights = {
  activate: 12,
  validate: 6,
  check: 4,
  consume: 18,
  deactivate: 6,
  offline: 2,
  checkout: 10,
  heartbeat: 5,
  checkin: 6,
  suspend: 2,
  reinstate: 3,
  revoke: 0.5,
  renew: 3,
  transfer: 2,
  "reset usage": 4,
  "rotate key": 1.5,
  assign: 4,
  unassign: 2,
  "reset device": 2,
  blacklist: 2,
  unblacklist: 3,
  update: 3,
  "edit policy": 2,
  "edit feature": 1,
  "create feature": 1.5,
  "delete feature": 1.5,
  "create version": 1,
  "delete version": 1,
  "sweep expiry": 1,
  "sweep leases": 1,
  "sweep heartbeats": 1
}

export type Operation = keyof typeof weights

export const operationNames = Object.keys(weights) as ReadonlyArray<Operation>

/** What goes wrong at the gate, by what is let through. */
type Faults = { readonly [verdict in Exclude<Verdict, "pass">]: number }

export interface Plan {
  readonly nodes: number
  /** The chance that a transaction is held before its COMMIT until the dice let it go on. */
  readonly held: number
  readonly groupMax: number
  readonly operations: { readonly [operation in Operation]: number }
  readonly faults: Faults
  /** Chances in each turn of the gate: a node loses all its connections, or is stopped, or is taken for dead and lives on. */
  readonly nodeFaults: { readonly cutOff: number; readonly stopped: number; readonly abandoned: number }
  /** Chances that a step begins with a leap of time, that time leaps within it, and that a leap is a clock's step back. */
  readonly leaps: { readonly before: number; readonly within: number; readonly back: number }
  /** The chance that a command is one that was sent before. */
  readonly repeats: number
  /** The chance that a command's answer is to be kept with its change. */
  readonly kept: number
  readonly policies: ReadonlyArray<Policy>
  readonly licenses: ReadonlyArray<{ readonly policy: number; readonly machines: number; readonly others: number }>
  readonly hasVersions: boolean
  /** How often a round is decided before its license is locked for it. */
  readonly attemptsFree: number
  /** By how many milliseconds the clock of each node is ahead of the first one's. */
  readonly ahead: ReadonlyArray<number>
  /** The chance that a command is about a license that there is none of. */
  readonly unknownLicenses: number
}

const rates = [0.01, 0.03, 0.1]

/** A rate, or not at all. */
const rateOrZero = (random: RandomSource, share = 0.5): number => (random.chance(share) ? random.pick(rates) : 0)

const policyOf = (random: RandomSource, index: number): Policy => ({
  id: `pol_${index}`,
  license_type: random.pick(["subscription", "time_limited", "trial", "perpetual", "consumption"]),
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
  version: 0
})

const listOf = <A>(random: RandomSource, max: number, one: (index: number) => A): ReadonlyArray<A> =>
  Array.from({ length: random.between(1, max) }, (_, index) => one(index))

export const planOf = (random: RandomSource): Plan => {
  const plan = drawn(random)
  const later = random.detached()
  return withClockSkew(withFewAttempts(plan, later), later)
}

/** Clocks that are set apart by what a network lets them be, or by what somebody has made of them. */
const withClockSkew = (plan: Plan, random: RandomSource): Plan => {
  if (!random.chance(0.3)) return plan
  const one = () => random.pick([0, 1, 40, 2000, -1, -400, -10_000])
  return { ...plan, ahead: [0, one(), one()] }
}

/**
 * Of the service's own attempts hardly any is ever left to the last. Where there are fewer, what can come between a license that is locked and
 * its COMMIT shall come: others while it is held, edits, and a leap of time.
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
  const policies = listOf(random, 2, (index) => policyOf(random, index))
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
    unknownLicenses: 0
  }
}
