/**
 * The connection on which partitions are made, attached and detached: one node at a time, without a time limit for statements,
 * and with a short one for locks. A statement that needs the whole table for itself makes all writers wait behind it, so it
 * gives up before a commit would, and is tried again later.
 */
import { Effect, Option } from "effect"
import type { SqlError } from "effect/sql"
import { openSession, Postgres, type ServerSession } from "../../platform/postgres/driver/Postgres.ts"
import { pauseFor } from "../../platform/postgres/driver/Transactions.ts"
import { isContended } from "../../platform/postgres/queries/Sql.ts"
import { sendHeartbeat } from "../../platform/workers/PassHeartbeat.ts"

/** Commits wait 250 ms for a lock before they are tried in another way. */
const lockTimeoutMillis = 100
const reserveTimeoutMillis = 5_000
const attemptsMax = 3
const pauseMillis = 1_000

export type PartitionSession = Pick<ServerSession, "values">

/** Runs an effect with a session of its own, or returns None at once if another node has one. */
export const withPartitionSession = Effect.fnUntraced(function* <A, E, R>(
  use: (session: PartitionSession) => Effect.Effect<A, E, R>
) {
  const { url } = yield* Postgres
  return yield* Effect.scoped(
    Effect.gen(function* () {
      const session = yield* openSession(url)
      const [row] = yield* session.values(
        "SELECT pg_try_advisory_lock(hashtextextended('licensing/partitions', 0)), set_config('lock_timeout', $1, false)",
        [String(lockTimeoutMillis)]
      )
      return row?.[0] === true ? Option.some(yield* use(session)) : Option.none<A>()
    })
  )
})

/**
 * Runs a transaction that needs a partition for itself. Returns false if others hold it during all attempts: then the next pass
 * tries again. It first takes a lock that blocks no reader or writer, for which PostgreSQL ends an automatic VACUUM of the
 * partition after a second. (A VACUUM that prevents wraparound is not ended.)
 */
export const inShortLocks = Effect.fnUntraced(function* <R>(
  { values }: PartitionSession,
  partition: string,
  transaction: Effect.Effect<unknown, SqlError.SqlError, R>
) {
  const reserve = Effect.gen(function* () {
    yield* values("SELECT set_config('lock_timeout', $1, true)", [String(reserveTimeoutMillis)])
    yield* values(`LOCK TABLE ${partition} IN SHARE UPDATE EXCLUSIVE MODE`)
    yield* values("SELECT set_config('lock_timeout', $1, true)", [String(lockTimeoutMillis)])
  })
  for (let attempt = 1; attempt <= attemptsMax; attempt++) {
    yield* values("BEGIN")
    const isDone = yield* Effect.andThen(reserve, transaction).pipe(
      Effect.andThen(values("COMMIT")),
      Effect.as(true),
      Effect.tapError(() => values("ROLLBACK")),
      Effect.catchIf(isContended, () => Effect.succeed(false))
    )
    if (isDone) return true
    yield* sendHeartbeat
    yield* pauseFor(pauseMillis)
  }
  return false
})
