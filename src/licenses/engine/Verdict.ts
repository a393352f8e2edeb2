/** What became of the changes of a license, and the retry of those whose license is locked. */
import { Clock, Effect, Exit, Semaphore } from "effect"
import type { SqlError } from "effect/sql"
import { isConcurrentChange, isForeignKeyViolation } from "../../postgres/Sql.ts"
import { pauseFor } from "../../postgres/Transactions.ts"
import type { PendingChanges } from "./PendingChanges.ts"

/**
 * Nothing was written unless it is `committed`. `stale`: decided on outdated revisions. `locked`: another transaction holds
 * the license, or the event counter, for too long. `late`: the deadline passed before the commit began.
 */
export type Verdict = "committed" | "stale" | "locked" | "late"

/** Of changes that are decided under the license's lock: their deadline does not matter any more. */
export type LockedVerdict = Exclude<Verdict, "late">

export const exits = {
  committed: Exit.succeed<Verdict>("committed"),
  stale: Exit.succeed<Verdict>("stale"),
  locked: Exit.succeed<Verdict>("locked"),
  late: Exit.succeed<Verdict>("late")
}

/** How long a license that another transaction holds is tried again. */
const lockedMillisMax = 2_000
const lockedRetryMillis = 100

/**
 * Tries a locked license again, alone, while the groups of the other licenses continue. One attempt at a time, and each takes what
 * is free at once or gives up, so that very many locked licenses occupy one connection.
 */
export const makeLockedRetry = Effect.fnUntraced(function* (
  attempt: (pending: PendingChanges) => Effect.Effect<Exit.Exit<Verdict>>
) {
  const alone = yield* Semaphore.make(1)
  return Effect.fnUntraced(function* (pending: PendingChanges) {
    const until = (yield* Clock.currentTimeMillis) + lockedMillisMax
    const isOver = Effect.map(Clock.currentTimeMillis, (now) => now >= until)
    const unlessOver = Effect.flatMap(isOver, (over) => (over ? Effect.succeed(exits.locked) : attempt(pending)))
    while (true) {
      yield* pauseFor(lockedRetryMillis)
      const exit = yield* alone.withPermit(unlessOver)
      if (exit !== exits.locked || (yield* isOver)) return exit
    }
  })
})

/**
 * A unique row that another node wrote first, a record that was deleted after it was read, or a term that was retired: the next
 * decision will see it.
 */
export const isOvertaken = (error: SqlError.SqlError): boolean =>
  error.reason._tag === "UniqueViolation" || isForeignKeyViolation(error) || isConcurrentChange(error)
