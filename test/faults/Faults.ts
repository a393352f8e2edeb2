/** Rounds with one installation, and the checks that only the end of all rounds can make. */
import { Effect } from "effect"
import { RandomSource } from "../simulation/requests/RandomSource.ts"
import { delivered } from "./checks/Deliveries.ts"
import { makeInstallation } from "./installation/Installation.ts"
import { diskFaults } from "./kinds/Disk.ts"
import type { Fault } from "./kinds/Fault.ts"
import { importFaults } from "./kinds/Import.ts"
import { linkFaults } from "./kinds/Links.ts"
import { operatorFaults } from "./kinds/Operators.ts"
import { processFaults, upgradedNodes } from "./kinds/Processes.ts"
import { standbyFaults } from "./kinds/Standby.ts"
import { workFaults } from "./kinds/Work.ts"
import { makeCatalog } from "./load/Catalog.ts"
import { type RoundResult, runRound } from "./Rounds.ts"

const allFaults: ReadonlyArray<Fault> = [
  ...processFaults,
  ...linkFaults,
  ...operatorFaults,
  ...workFaults,
  ...importFaults,
  ...standbyFaults,
  ...diskFaults
]

/** The faults that this machine cannot make, each with the reason. */
export const skippedFaults: ReadonlyArray<string> = allFaults.flatMap(({ name, unavailable }) => {
  const reason = unavailable?.()
  return reason === undefined ? [] : [`${name}: ${reason}`]
})

/** The faults for so many nodes; of these, the named ones, or all with a text in their names. */
const faultsFor = (nodes: number, only: string | ReadonlyArray<string> = ""): ReadonlyArray<Fault> => {
  const named = allFaults.filter(({ name }) => (typeof only === "string" ? name === only : only.includes(name)))
  const found =
    named.length > 0 || typeof only !== "string" ? named : allFaults.filter(({ name }) => name.includes(only))
  return found.filter(({ nodesMin = 1, unavailable }) => nodesMin <= nodes && unavailable?.() === undefined)
}

interface Options {
  readonly seed: number
  readonly rounds: number
  readonly nodes: number
  readonly only?: string | ReadonlyArray<string> | undefined
  /** A checkout of an earlier version: each round begins with it on a new database, and ends with this version. */
  readonly previous?: string | undefined
}

/** Deliveries are compared after so many rounds and at the end, because they may take this long. */
const roundsBetweenDeliveries = 25

type Told = (result: RoundResult) => Effect.Effect<void>

/** Runs all rounds, or until one violates something. `told` gets each result. */
export const runRounds = Effect.fnUntraced(function* ({ nodes, only, previous, rounds, seed }: Options, told: Told) {
  if (previous !== undefined) return yield* runUpgrades({ nodes, rounds, seed }, previous, told)
  const installation = yield* makeInstallation(nodes)
  const catalog = yield* makeCatalog(installation)
  const faults = faultsFor(nodes, only)
  let order: Array<Fault> = []
  for (let round = 0; round < rounds; round++) {
    // The faults come in a new order each time, and all of them before one comes again.
    if (order.length === 0) order = shuffled(faults, new RandomSource(seed + round))
    const fault = order.pop()
    if (fault === undefined) return yield* Effect.die(new Error("there is no such fault"))
    const result = yield* runRound(installation, catalog, fault, seed + round)
    yield* told(result)
    const comparesDeliveries = round + 1 === rounds || (round + 1) % roundsBetweenDeliveries === 0
    const violations = [...result.violations, ...(comparesDeliveries ? yield* delivered(installation) : [])]
    if (violations.length > 0) return violations
  }
  return []
})

const runUpgrades = Effect.fnUntraced(function* ({ nodes, rounds, seed }: Options, previous: string, told: Told) {
  for (let round = 0; round < rounds; round++) {
    const violations = yield* Effect.gen(function* () {
      const installation = yield* makeInstallation(nodes, previous)
      const result = yield* runRound(installation, yield* makeCatalog(installation), upgradedNodes, seed + round)
      yield* told(result)
      return [...result.violations, ...(yield* delivered(installation))]
    }).pipe(Effect.scoped)
    if (violations.length > 0) return violations
  }
  return []
})

const shuffled = <A>(items: ReadonlyArray<A>, random: RandomSource): Array<A> =>
  items
    .map((item) => ({ item, at: random.next() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ item }) => item)
