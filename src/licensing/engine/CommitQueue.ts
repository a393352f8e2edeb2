/** The changes that wait for their group commit, and how long they are gathered while another node commits. */
import { Clock, Effect, Exit, FiberSet } from "effect"
import { makeBatcher, type SubmitToBatch } from "../../platform/postgres/driver/Batcher.ts"
import { makeLateCheck, monotonicMillis } from "../../platform/postgres/driver/Deadline.ts"
import { type CommitResult, exits } from "./CommitResult.ts"
import type { PendingChanges } from "./PendingChanges.ts"

/** Licenses in one transaction: bounds its duration and the size of its statements. */
export const groupMax = 512
/**
 * Groups in progress at the same time. A second one would wait for the first one's event counter anyway, and smaller
 * groups cost more. Also, the groups' numbers rise only if groups run one after another.
 */
const concurrency = 1

const commitBatches = { name: "journal.commit", isLinked: true, concurrency, batchMax: groupMax }

/** Groups the changes that wait. Those whose deadline passes in the queue are returned, and locked ones are tried again. */
export const makeCommitQueue = Effect.fnUntraced(function* (
  commitAll: (group: ReadonlyArray<PendingChanges>) => Effect.Effect<ReadonlyArray<Exit.Exit<CommitResult>>>,
  retryLocked: (pending: PendingChanges) => Effect.Effect<Exit.Exit<CommitResult>>,
  gathering: Gathering
) {
  const clock = yield* Clock.Clock
  const fork = yield* FiberSet.makeRuntime<never>()
  const isLate = ({ deadline }: PendingChanges) => deadline <= monotonicMillis(clock)
  const late = { isLate, result: exits.late }
  const run = (group: ReadonlyArray<PendingChanges>) => {
    const started = clock.monotonicTimeNanosUnsafe()
    return Effect.onExit(commitAll(group), () =>
      Effect.sync(() => gathering.finished(Number(clock.monotonicTimeNanosUnsafe() - started) / 1e6))
    )
  }
  const batcher = yield* makeBatcher({ ...commitBatches, run, late, pauseMillis: gathering.pauseMillis })
  const startLateCheck = yield* makeLateCheck(batcher.dropLate)
  const commit: SubmitToBatch<PendingChanges, CommitResult> = (pending, onResult, spans) => {
    startLateCheck()
    const onExit = (exit: Exit.Exit<Exit.Exit<CommitResult>>): void => {
      if (Exit.isFailure(exit)) onResult(Exit.failCause(exit.cause))
      else if (exit.value !== exits.locked) onResult(exit.value)
      else fork(Effect.map(retryLocked(pending), onResult))
    }
    batcher.submit(pending, onExit, spans)
  }
  return commit
})

/** A group that has waited for longer found the event counter taken by another node. */
const waitMillisMin = 0.5
/** How long another node is expected to commit again. */
const contendedMillis = 1_000
const gatherMillisMax = 10

export interface Gathering {
  /** The group in progress has waited for the event counter for so long. */
  readonly waited: (millis: number) => void
  /** The group is committed, or not. */
  readonly finished: (millis: number) => void
  /** How long to gather changes before the next group, 0 = not at all. */
  readonly pauseMillis: () => number
}

/**
 * While other nodes commit, too, nodes take turns at the event counter. A node that sends its next group at once makes it
 * small, and a small group costs nearly as much as a large one. So it gathers changes for as long as its last group took
 * without waiting, which leaves that time to another node. If no other node commits, nothing is gathered.
 */
export const makeGathering = Effect.map(Clock.Clock, (clock): Gathering => {
  const nowMillis = () => monotonicMillis(clock)
  let contendedUntil = Number.NEGATIVE_INFINITY
  let waitedMillis = 0
  let nextMillis = 0
  return {
    waited: (millis) => {
      waitedMillis = millis
      if (millis >= waitMillisMin) contendedUntil = nowMillis() + contendedMillis
    },
    finished: (millis) => {
      nextMillis = Math.min(millis - waitedMillis, gatherMillisMax)
      waitedMillis = 0
    },
    pauseMillis: () => (nowMillis() < contendedUntil && nextMillis >= 1 ? nextMillis : 0)
  }
})
