/** Numbers the groups of a journal, finds out whether a group committed if its connection broke, and retires epochs. */
import { Clock, Effect, Schedule } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { EventLog } from "../../ledger/events/EventLog.ts"
import { asCommitError } from "../../platform/postgres/driver/Session.ts"
import { retryTransaction } from "../../platform/postgres/driver/Transactions.ts"
import { makeRevisions } from "../../platform/postgres/queries/Revision.ts"
import { type Epoch, type JournalKind, journalKinds } from "./Epoch.ts"
import * as Fence from "./Fence.ts"

type WriteEffect = Effect.Effect<unknown, SqlError.SqlError>

/** Numbers the groups of each journal of this node and generates their revisions. */
export const makeGroupIds = Effect.fnUntraced(function* (epoch: Epoch) {
  const clock = yield* Clock.Clock
  const nextRevision = yield* makeRevisions
  const numbered = (kind: JournalKind) => {
    let last = 0
    return (): Fence.GroupId => ({
      epoch: epoch.current,
      journal: `${epoch.current}${kind}`,
      number: ++last,
      at: clock.currentTimeMillisUnsafe(),
      revision: nextRevision()
    })
  }
  return {
    nextGroup: numbered(""),
    nextLocked: numbered(".locked"),
    nextAlone: numbered(".alone"),
    nextMany: numbered(".many")
  }
})

export type GroupIds = Effect.Success<ReturnType<typeof makeGroupIds>>

/** Makes a write succeed if its group is committed, fail if it never will be, and die if the outcome stays unknown. */
export const makeKnownOutcomes = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const { deliveriesQueued } = yield* EventLog
  return (write: (groupId: Fence.GroupId) => WriteEffect, next: () => Fence.GroupId) =>
    Effect.suspend(() => {
      const groupId = next()
      return Effect.catch(write(groupId), (error) => {
        if (error.reason._tag !== "ConnectionError") return Effect.fail(error)
        const outcome = Effect.catch(wasCommitted(sql, groupId, next), () => Effect.die(asCommitError(error)))
        return Effect.flatMap(outcome, (committed) =>
          committed ? Effect.sync(() => deliveriesQueued.openUnsafe()) : Effect.fail(error)
        )
      })
    })
})

/**
 * Finds out whether a group committed when its connection broke: the journal's row then has the group's number.
 * Prevents later execution of statements that the server has not read yet.
 */
const wasCommitted = (sql: SqlClient.SqlClient, groupId: Fence.GroupId, nextGroup: () => Fence.GroupId) =>
  retryTransaction(
    sql.withTransaction(
      Effect.gen(function* () {
        const committed = yield* Fence.wasLastGroup(sql, groupId)
        if (!committed) yield* Fence.abandonGroupsBelow(sql, groupId.journal, nextGroup().number)
        return committed
      })
    )
  ).pipe(Effect.retry({ schedule: Schedule.spaced("200 millis"), times: 50 }))

/**
 * Retires an epoch: when this returns, its commits can be read, and it has no further commits. Each journal's row is
 * locked separately, because a group that holds one may wait for another.
 */
export const makeRetire = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const clock = yield* Clock.Clock
  return (epoch: string): Effect.Effect<void> =>
    Effect.forEach(
      journalKinds,
      (kind) =>
        Effect.suspend(() => Fence.retireJournal(sql, `${epoch}${kind}`, clock.currentTimeMillisUnsafe())).pipe(
          Effect.retry({ schedule: Schedule.spaced("100 millis") }),
          Effect.orDie
        ),
      { concurrency: "unbounded", discard: true }
    )
})
