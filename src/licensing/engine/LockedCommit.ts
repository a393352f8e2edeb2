/** Decides and commits one license with its row locked. */
import { Effect, Semaphore } from "effect"
import { SqlClient } from "effect/sql"
import { mayTakeLong } from "../../platform/postgres/driver/Transactions.ts"
import { isLockTimeout, isLogBusy } from "../../platform/postgres/queries/Sql.ts"
import { isOvertaken, type LockedCommitResult, type LockWait } from "./CommitResult.ts"
import type { GroupId } from "./Fence.ts"
import type { CommitNeeds } from "./GroupCommits.ts"
import type { PendingChanges } from "./PendingChanges.ts"

/** How long a commit waits for the license's lock. */
const lockTimeoutMillis = 1_000

export const makeLockedCommit = Effect.fnUntraced(function* (
  { ids, measure, whileLogBusy, writes }: CommitNeeds,
  lockWait: LockWait
) {
  const sql = yield* SqlClient.SqlClient
  // One at a time, because their numbers must rise, and because they block all groups with the same license.
  const lock = yield* Semaphore.make(1)
  return (licenseId: string, decide: Effect.Effect<PendingChanges | undefined>): Effect.Effect<LockedCommitResult> => {
    let result: LockedCommitResult = "committed"
    const write = Effect.fnUntraced(function* (groupId: GroupId) {
      result = "committed"
      // The waits for the license and for the event counter together may exceed the time limit of commits.
      yield* mayTakeLong(sql)
      yield* sql`SELECT set_config('lock_timeout', ${String(lockTimeoutMillis)}, true)`
      lockWait.begin()
      yield* sql`SELECT FROM licenses WHERE id = ${licenseId} FOR NO KEY UPDATE`
      const pending = yield* decide
      if (pending === undefined) return
      const writtenIds = yield* writes.writeFenced([pending], groupId)
      result = writtenIds.size === 0 ? "stale" : "committed"
    })
    return writes.inTransaction(write, ids.nextLocked).pipe(
      whileLogBusy,
      Effect.map(() => result),
      Effect.catch((error) => {
        if (isLogBusy(error)) return Effect.succeed<LockedCommitResult>("busy")
        if (isLockTimeout(error)) return Effect.succeed<LockedCommitResult>("locked")
        return isOvertaken(error) ? Effect.succeed<LockedCommitResult>("stale") : Effect.die(error)
      }),
      measure(1),
      lock.withPermit
    )
  }
})
