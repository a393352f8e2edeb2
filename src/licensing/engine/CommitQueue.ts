/** The queue of changes for the group commit, and the pauses between groups while other nodes commit. */
import { Clock, Effect, Exit, FiberSet } from "effect"
import { makeBatcher, type SubmitToBatch } from "../../platform/postgres/driver/Batcher.ts"
import { makeLateCheck, monotonicMillis } from "../../platform/postgres/driver/Deadline.ts"
import { type CommitResult, exits } from "./CommitResult.ts"
import type { PendingChanges } from "./PendingChanges.ts"

/** Licenses in one transaction: limits its duration and the size of its statements. */
export const groupMax = 512
/**
 * Concurrent groups. A second group would wait for the event counter of the first one, and smaller groups cost more.
 * Also, the numbers of the groups must rise.
 */
const concurrency = 1

const commitBatches = { name: "journal.commit", isLinked: true, concurrency, batchMax: groupMax }

/** Commits queued changes in groups. Late changes get the result `late`; changes of locked licenses are retried. */
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

/** After a longer wait, another node has held the event counter. */
const waitMillisMin = 0.5
/** The time within which another node probably commits again. */
const contendedMillis = 1_000
const gatherMillisMax = 10

export interface Gathering {
  /** Records how long the current group has waited for the event counter. */
  readonly waited: (millis: number) => void
  /** Records the duration of a group, committed or not. */
  readonly finished: (millis: number) => void
  /** The pause before the next group, in which changes are collected. */
  readonly pauseMillis: () => number
}

/**
 * Nodes that commit at the same time take turns at the event counter. A group that is sent at once is small, and costs
 * nearly as much as a large one. So a node collects changes for as long as its last group took without waiting, and
 * another node commits in that time. If no other node commits, there is no pause.
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
