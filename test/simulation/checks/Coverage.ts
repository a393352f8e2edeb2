/** Counts commands, answers and faults, so that a run shows what it has not covered. */
import { faultNames, lockedFaultNames } from "../nodes/Faults.ts"
import { lockedOutcomes as ofJournal } from "../nodes/LockedJournal.ts"
import type { Call } from "../requests/Operations.ts"
import type { Outcome } from "../requests/Outcome.ts"
import { type Operation, operationNames } from "../requests/Plan.ts"

export const numberedLater = "entries numbered after their commit"

/** Faults beyond those of the scheduler, and situations in which faults matter. */
const lockedOutcomes = [
  ...Object.values(faultNames),
  "undecided: committed",
  "undecided: rolled back",
  "node cut off from the database",
  "epoch retired by another node",
  "node dies",
  "node taken for dead lives on",
  "failover to a standby that lags, between steps",
  "failover to a standby that lags, within a step",
  "time leaps between steps",
  "time leaps within a step",
  "clock steps back",
  "nodes have clocks apart",
  "request repeated",
  "license asked at another node than before",
  "transaction held before its COMMIT",
  "transaction waits for a lock",
  numberedLater,
  ...Object.values(ofJournal),
  ...lockedFaultNames
]

const commandName = (operation: Operation, kind: Outcome["kind"]) => `${operation}: ${kind}`

/** Expects everything that a long run should cover. */
export const expectedCoverage = (): Coverage =>
  new Coverage([...lockedOutcomes, ...operationNames.map((operation) => commandName(operation, "accepted"))])

export class Coverage {
  private readonly counts = new Map<string, number>()

  /** Expected names start at zero, so that they are reported as missing. */
  constructor(expected: Iterable<string> = []) {
    for (const what of expected) this.counts.set(what, 0)
  }

  readonly count = (what: string, times = 1): void => {
    this.counts.set(what, (this.counts.get(what) ?? 0) + times)
  }

  add(other: Coverage): void {
    for (const [what, times] of other.counts) this.count(what, times)
  }

  countStep(calls: ReadonlyArray<Call>, outcomes: ReadonlyMap<string, Outcome>): void {
    for (const { isRepeated, node, request, subject, operation } of calls) {
      const outcome = outcomes.get(request)
      if (outcome === undefined) continue
      this.count(commandName(operation, outcome.kind))
      if (outcome.kind === "refused") this.count(outcome.code)
      if (isRepeated) this.count("request repeated")
      const before = this.nodes.get(subject)
      if (before !== undefined && before !== node) this.count("license asked at another node than before")
      this.nodes.set(subject, node)
    }
  }

  private readonly nodes = new Map<string, number>()

  of(what: string): number {
    return this.counts.get(what) ?? 0
  }

  /** The names that never occurred. */
  get missing(): ReadonlyArray<string> {
    return Array.from(this.counts).flatMap(([what, times]) => (times === 0 ? [what] : []))
  }

  /** One line for each name. */
  get lines(): ReadonlyArray<string> {
    const names = Array.from(this.counts.keys())
    const width = Math.max(0, ...names.map((name) => name.length))
    return Array.from(this.counts, ([name, times]) => `${name.padEnd(width)} ${String(times).padStart(8)}`)
  }
}
