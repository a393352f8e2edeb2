/** Numbers the groups of a journal, finds out whether a group was committed whose connection was lost, and retires a term. */
import { Clock, Effect, Schedule } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { EventLog } from "../../ledger/events/EventLog.ts"
import { asCommitError } from "../../platform/postgres/driver/Session.ts"
import { retryTransaction } from "../../platform/postgres/driver/Transactions.ts"
import { makeRevisions } from "../../platform/postgres/queries/Revision.ts"
import * as Fence from "./Fence.ts"
import { type JournalKind, journalKinds, type Term } from "./Term.ts"

type WriteEffect = Effect.Effect<unknown, SqlError.SqlError>

/** Numbers the groups of each journal of this node and draws their revisions. The term is unique among all nodes. */
export const makeGroupIds = Effect.fnUntraced(function* (term: Term) {
  const clock = yield* Clock.Clock
  const nextRevision = yield* makeRevisions
  const numbered = (kind: JournalKind) => {
    let last = 0
    return (): Fence.GroupId => ({
      term: term.current,
      journal: `${term.current}${kind}`,
      number: ++last,
      at: clock.currentTimeMillisUnsafe(),
      revision: nextRevision()
    })
  }
  return { nextGroup: numbered(""), nextLocked: numbered(".locked"), nextAlone: numbered(".alone") }
})

export type GroupIds = Effect.Success<ReturnType<typeof makeGroupIds>>

/**
 * Makes a write succeed if the group is committed, fail if it is not and never will be, and die if the outcome cannot be
 * determined. `next` numbers the group.
 */
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
 * Whether a group was committed whose connection was lost, perhaps during the commit. The journal's row has the group's
 * number or it has not. Statements of the group that the server has not read yet are void from then on.
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
 * Retires a term: what was committed in it can be read when this returns, and nothing more of it will be. Each journal's row is
 * locked alone, because a group that holds one may wait for another.
 */
export const makeRetire = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const clock = yield* Clock.Clock
  return (term: string): Effect.Effect<void> =>
    Effect.forEach(
      journalKinds,
      (kind) =>
        Effect.suspend(() => Fence.retireJournal(sql, `${term}${kind}`, clock.currentTimeMillisUnsafe())).pipe(
          Effect.retry({ schedule: Schedule.spaced("100 millis") }),
          Effect.orDie
        ),
      { concurrency: "unbounded", discard: true }
    )
})
