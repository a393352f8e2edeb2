// The retry of transactions of any kind.
import { Effect, Random, Schedule } from "effect"
import { SqlError } from "effect/sql"

const retriesMax = 5
const pauseMillisMax = 20

/**
 * Retries a whole transaction, at most five times, after a conflict with a concurrent one (serialization failure, deadlock).
 * Wrap it around `withTransaction`, never inside: the server has rolled everything back by then.
 */
export const retryTransaction = <A, E, R>(transaction: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.retry(transaction, {
    // Checked before the pause, so that no pause follows the last attempt.
    schedule: Schedule.recurs(retriesMax),
    while: (error) => (isRetryable(error) ? Effect.as(pause, true) : false)
  })

const isRetryable = (error: unknown): boolean =>
  SqlError.isSqlError(error) && ["SerializationError", "DeadlockError"].includes(error.reason._tag)

// Of random length, so that two conflicting transactions do not meet again. A system timer, not the service's clock: a stopped
// clock must not stop a commit.
const pause = Effect.flatMap(Random.nextIntBetween(1, pauseMillisMax), (millis) =>
  Effect.callback<void>((resume) => {
    const timer = setTimeout(() => resume(Effect.void), millis)
    return Effect.sync(() => clearTimeout(timer))
  })
)
