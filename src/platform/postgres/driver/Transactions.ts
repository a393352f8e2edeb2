// Time limits and retries of transactions.
import { Context, Effect, Random, Schedule } from "effect"
import { type SqlClient, SqlError } from "effect/sql"

/**
 * Milliseconds that a transaction may be idle while it holds locks that others need. A process that is frozen within a
 * transaction holds them for this long.
 */
export const HoldLimit = Context.Reference("licensing/platform/postgres/driver/HoldLimit", {
  defaultValue: () => 1_000
})
// Longer than a request may take: the transaction of an Idempotency-Key spans its request.
const pauseInTransactionMillisMax = 60_000

const setIdleMillis = (sql: SqlClient.SqlClient, millis: number) =>
  sql`set_config('idle_in_transaction_session_timeout', ${String(millis)}, true)`

/** An expression that lets the running transaction be idle for longer. The transaction must hold no lock that others need. */
export const mayPause = (sql: SqlClient.SqlClient) => setIdleMillis(sql, pauseInTransactionMillisMax)

/**
 * An expression that lets the running transaction be idle for ten seconds although it holds locks. For transactions that compute
 * between their statements, because a busy node may take long for that.
 */
export const mayCompute = (sql: SqlClient.SqlClient) => setIdleMillis(sql, 10_000)

/** An expression that restores the limit, before the transaction takes locks. */
export const mayNotPause = (sql: SqlClient.SqlClient, holdLimit: number) => setIdleMillis(sql, holdLimit)

/**
 * Removes the time limit of commits for the running transaction, before it reads or writes very many rows. PostgreSQL before 17
 * has no such limit.
 */
export const mayTakeLong = (sql: SqlClient.SqlClient) =>
  sql`SELECT set_config('transaction_timeout', '0', true) WHERE current_setting('transaction_timeout', true) IS NOT NULL`

const retriesMax = 5
const pauseMillisMax = 20

/**
 * Retries a whole transaction, at most five times, after a conflict with a concurrent one (serialization failure, deadlock).
 * Wrap it around `withTransaction`, never inside: the server has rolled everything back by then.
 */
export const retryTransaction = <A, E, R>(transaction: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.retry(transaction, {
    // The schedule is checked before the pause, so no pause follows the last attempt.
    schedule: Schedule.recurs(retriesMax),
    while: (error) => (isRetryable(error) ? Effect.as(pause, true) : false)
  })

const isRetryable = (error: unknown): boolean =>
  SqlError.isSqlError(error) && ["SerializationError", "DeadlockError"].includes(error.reason._tag)

// A random length, so that two transactions do not conflict again.
const pause = Effect.flatMap(Random.nextIntBetween(1, pauseMillisMax), (millis) => pauseFor(millis))

/** Waits with a system timer instead of the service's clock, because a stopped clock must not stop a commit. */
export const pauseFor = (millis: number): Effect.Effect<void> =>
  Effect.callback<void>((resume) => {
    const timer = setTimeout(() => resume(Effect.void), millis)
    return Effect.sync(() => clearTimeout(timer))
  })
