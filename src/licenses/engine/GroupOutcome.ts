/** Numbers the groups of a journal, and finds out whether a group was committed whose connection was lost. */
import { Clock, Effect, Random, Schedule } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { EventLog } from "../../events/EventLog.ts"
import { makeRevisions } from "../../postgres/Revision.ts"
import { retryTransaction } from "../../postgres/Transactions.ts"
import * as Fence from "./Fence.ts"

type WriteEffect = Effect.Effect<unknown, SqlError.SqlError>

/** Numbers the groups of this journal and draws their revisions. The journal's name is unique among all nodes. */
export const makeGroupIds = Effect.gen(function* () {
  const clock = yield* Clock.Clock
  const nextRevision = yield* makeRevisions
  const journal = `${yield* Random.nextInt}.${yield* Random.nextInt}`
  let last = 0
  return (): Fence.GroupId => ({
    journal,
    number: ++last,
    at: clock.currentTimeMillisUnsafe(),
    revision: nextRevision()
  })
})

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
        return Effect.flatMap(wasCommitted(sql, groupId, next), (committed) =>
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
        const [row] = yield* Fence.lockLastGroup(sql, groupId)
        if (row!.last_group === groupId.number) return true
        yield* Fence.abandonGroupsBelow(sql, nextGroup())
        return false
      })
    )
  ).pipe(Effect.retry({ schedule: Schedule.spaced("200 millis"), times: 50 }), Effect.orDie)
