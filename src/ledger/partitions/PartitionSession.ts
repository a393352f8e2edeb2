/**
 * The connection for creating, attaching and detaching partitions: one node at a time, without a time limit for
 * statements, and with a short one for locks. All writers wait behind a statement that locks the whole table, so it
 * fails before a commit would, and is retried later. The server ends the session of a node that is frozen or cut off.
 */
import { Effect, Option } from "effect"
import type { SqlError } from "effect/sql"
import { openSession, Postgres, type ServerSession } from "../../platform/postgres/driver/Postgres.ts"
import { HoldLimit, pauseFor } from "../../platform/postgres/driver/Transactions.ts"
import { unlessContended } from "../../platform/postgres/queries/Sql.ts"
import { sendHeartbeat } from "../../platform/workers/PassHeartbeat.ts"

/** Shorter than the 250 ms after which a commit stops waiting for a lock. */
const lockTimeoutMillis = 100
const reserveTimeoutMillis = 5_000
/** Longer than the pauses between transactions. The session of a frozen node keeps other nodes from this work. */
const idleMillisMax = 60_000
const attemptsMax = 3
const pauseMillis = 1_000

export type PartitionSession = Pick<ServerSession, "values">

/** Runs an effect with a new session. Returns None if another node has one. */
export const withPartitionSession = Effect.fnUntraced(function* <A, E, R>(
  use: (session: PartitionSession) => Effect.Effect<A, E, R>
) {
  const { url } = yield* Postgres
  return yield* Effect.scoped(
    Effect.gen(function* () {
      const session = yield* openSession(url)
      const [row] = yield* session.values(
        `SELECT pg_try_advisory_lock(hashtextextended('licensing/partitions', 0)), set_config('lock_timeout', $1, false),
          set_config('idle_in_transaction_session_timeout', $2, false), set_config('idle_session_timeout', $3, false),
          set_config('licensing.ends_partitions', 'on', false)`,
        [String(lockTimeoutMillis), String(yield* HoldLimit), String(idleMillisMax)]
      )
      return row?.[0] === true ? Option.some(yield* use(session)) : Option.none<A>()
    })
  )
})

/**
 * Runs a transaction that needs an exclusive lock of a partition. Returns false if others hold locks during all
 * attempts; the next pass retries. It first takes a lock that blocks no reader or writer: for it PostgreSQL ends an
 * automatic VACUUM of the partition after a second, unless the VACUUM prevents wraparound.
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
    if (yield* unlessContended(values, Effect.andThen(reserve, transaction))) return true
    yield* sendHeartbeat
    yield* pauseFor(pauseMillis)
  }
  return false
})
