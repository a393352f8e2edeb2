/** A fault: what it is called, how it begins, and how it ends. */
import { Effect } from "effect"
import { pauseFor } from "../../../src/platform/postgres/driver/Transactions.ts"
import type { RandomSource } from "../../simulation/requests/RandomSource.ts"
import type { Installation } from "../installation/Installation.ts"
import type { Catalog, SoldLicense } from "../load/Catalog.ts"

export interface Struck {
  readonly installation: Installation
  readonly catalog: Catalog
  /** The licenses of the round. */
  readonly licenses: ReadonlyArray<SoldLicense>
  readonly round: string
  readonly random: RandomSource
}

export interface Fault {
  readonly name: string
  /** It needs so many nodes. */
  readonly nodesMin?: number
  /** Why it cannot be made on this machine, if so. */
  readonly unavailable?: () => string | undefined
  /** How long it lasts between begin and end, in milliseconds. */
  readonly lasts: readonly [min: number, max: number]
  /** Begins it and returns its end, which tells what the fault's own work left wrong. */
  readonly begin: (struck: Struck) => Effect.Effect<Effect.Effect<ReadonlyArray<string>>>
}

export const nothingWrong: ReadonlyArray<string> = []

/** Begins the fault, ends it after a while, and returns what it left wrong. */
export const strike = Effect.fnUntraced(function* (fault: Fault, random: RandomSource, struck: Omit<Struck, "random">) {
  const end = yield* fault.begin({ ...struck, random: random.fork() })
  yield* pauseFor(random.between(...fault.lasts))
  return yield* end
})
