/** The result of committing a license's changes, and the retries for a locked license or a busy event log. */
import { Clock, Effect, Exit, Semaphore } from "effect"
import type { SqlError } from "effect/sql"
import { monotonicMillis } from "../../platform/postgres/driver/Deadline.ts"
import { pauseFor } from "../../platform/postgres/driver/Transactions.ts"
import { isConcurrentChange, isForeignKeyViolation, isLogBusy } from "../../platform/postgres/queries/Sql.ts"
import type { PendingChanges } from "./PendingChanges.ts"

/**
 * Only `committed` has written anything. `stale`: decided on outdated revisions. `locked`: another transaction holds
 * the license for too long. `busy`: others hold the event log for too long. `late`: the deadline passed before the
 * commit began.
 */
export type CommitResult = "committed" | "stale" | "locked" | "busy" | "late"

/** The result of changes that are decided under the license's lock, which ignore the deadline. */
export type LockedCommitResult = Exclude<CommitResult, "late">

export const exits = {
  committed: Exit.succeed<CommitResult>("committed"),
  stale: Exit.succeed<CommitResult>("stale"),
  locked: Exit.succeed<CommitResult>("locked"),
  busy: Exit.succeed<CommitResult>("busy"),
  late: Exit.succeed<CommitResult>("late")
}

/** How long after a commit began to wait for a lock this node waits for one: longer than it takes to find it held again. */
const lockWaitMillis = 1_000

export interface LockWait {
  /** A commit waits for a lock, or found one that another transaction holds. */
  readonly begin: () => void
  readonly isRecent: () => boolean
}

/** Whether commits wait for locks that others hold. */
export const makeLockWait = Effect.map(Clock.Clock, (clock): LockWait => {
  let until = Number.NEGATIVE_INFINITY
  return {
    begin: () => {
      until = monotonicMillis(clock) + lockWaitMillis
    },
    isRecent: () => monotonicMillis(clock) < until
  }
})

/** How long commits of a locked license are retried. */
const lockedMillisMax = 2_000
const lockedRetryMillis = 100

/**
 * Retries a locked license alone, while the groups of other licenses continue. Attempts run one at a time and do not
 * wait for locks, so that very many locked licenses occupy one connection.
 */
export const makeLockedRetry = Effect.fnUntraced(function* (
  attempt: (pending: PendingChanges) => Effect.Effect<Exit.Exit<CommitResult>>,
  lockWait: LockWait
) {
  const alone = yield* Semaphore.make(1)
  const clock = yield* Clock.Clock
  return Effect.fnUntraced(function* (pending: PendingChanges) {
    const until = monotonicMillis(clock) + lockedMillisMax
    const isOver = Effect.sync(() => monotonicMillis(clock) >= until)
    let last = exits.locked
    const unlessOver = Effect.flatMap(isOver, (over) => (over ? Effect.succeed(last) : attempt(pending)))
    while (true) {
      lockWait.begin()
      yield* pauseFor(lockedRetryMillis)
      last = yield* alone.withPermit(unlessOver)
      if ((last !== exits.locked && last !== exits.busy) || (yield* isOver)) return last
    }
  })
})

/** No retry begins later than this, so that all attempts end before a request's deadline. */
const busyMillisMax = 2_500
const busyAttemptsMax = 4

/**
 * Repeats a whole commit that did not get the event counter in time, because that does not depend on its licenses.
 * After a commit has given up, the next ones make one attempt each, so that the changes behind it do not wait as long
 * again.
 */
export const makeWhileLogBusy = Effect.map(Clock.Clock, (clock) => {
  let isGivenUp = false
  return <A>(commit: Effect.Effect<A, SqlError.SqlError>) =>
    Effect.suspend(() => {
      const until = monotonicMillis(clock) + (isGivenUp ? 0 : busyMillisMax)
      const isPatient = (error: SqlError.SqlError) => isLogBusy(error) && monotonicMillis(clock) < until
      return Effect.retry(commit, { while: isPatient, times: busyAttemptsMax - 1 })
    }).pipe(
      Effect.tapError((error) => Effect.sync(() => (isGivenUp = isLogBusy(error)))),
      Effect.tap(() => Effect.sync(() => (isGivenUp = false)))
    )
})

export type WhileLogBusy = Effect.Success<typeof makeWhileLogBusy>

/** Whether a new decision helps: a unique row exists already, a record was deleted, or the epoch was retired. */
export const isOvertaken = (error: SqlError.SqlError): boolean =>
  error.reason._tag === "UniqueViolation" || isForeignKeyViolation(error) || isConcurrentChange(error)
