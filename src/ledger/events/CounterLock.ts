/** Tells whether another transaction holds the event counter for so long that no change is recorded. */
import { Clock, Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { monotonicMillis } from "../../platform/postgres/driver/Deadline.ts"
import { pauseFor } from "../../platform/postgres/driver/Transactions.ts"
import { isLogBusy } from "../../platform/postgres/queries/Sql.ts"

/**
 * How long a commit waits for the counter, which other transactions of all nodes hold until the end of their commits,
 * with a synchronous standby for at least a round trip. PostgreSQL may wait twice, for its place in the queue and for
 * the row. Both together must take less than its time limit for the transaction.
 */
export const counterWaitMillis = 800

/** About as long as a commit is repeated for the counter: a single slow commit makes no node unready. */
const toleratedMillis = 2_000
/** With a synchronous standby the counter is held nearly always, by one commit after the other. */
const commitMillis = 250

export const makeCounterLock = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const clock = yield* Clock.Clock
  /** When an append first failed because the counter was held; undefined after one that succeeded. */
  let failingSince: number | undefined

  // Does not wait for the row, and has nothing to flush. The last number shows whether others commit.
  const read = Effect.map(
    sql<{ readonly last: number; readonly isFree: boolean }>`
      SELECT last, EXISTS (SELECT FROM event_sequence FOR NO KEY UPDATE SKIP LOCKED) AS "isFree",
        set_config('synchronous_commit', 'off', true)
      FROM event_sequence`,
    ([row]) => row!
  )
  const isHeldNow = Effect.gen(function* () {
    const before = yield* read
    if (before.isFree) return false
    yield* pauseFor(commitMillis)
    const after = yield* read
    return !after.isFree && after.last === before.last
  })

  return {
    /** Whether the last append has failed because the counter was held. */
    isFailing: () => failingSince !== undefined,
    watch: <A>(append: Effect.Effect<A, SqlError.SqlError>): Effect.Effect<A, SqlError.SqlError> =>
      append.pipe(
        Effect.tap(() => Effect.sync(() => (failingSince = undefined))),
        Effect.tapError((error) =>
          Effect.sync(() => {
            if (isLogBusy(error)) failingSince ??= monotonicMillis(clock)
          })
        )
      ),
    /** Reads the database only after appends have failed. */
    isHeld: Effect.suspend((): Effect.Effect<boolean, SqlError.SqlError> => {
      if (failingSince === undefined || monotonicMillis(clock) - failingSince < toleratedMillis)
        return Effect.succeed(false)
      return Effect.tap(isHeldNow, (isHeld) =>
        Effect.sync(() => {
          if (!isHeld) failingSince = undefined
        })
      )
    })
  }
})

export type CounterLock = Effect.Success<typeof makeCounterLock>
