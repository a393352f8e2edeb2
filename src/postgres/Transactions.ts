// What holds for transactions of any kind.
import { Effect, Random, Schedule } from "effect"
import { SqlError } from "effect/sql"

const retriesMax = 5
const pauseMillisMax = 20

/**
 * Runs a whole transaction again, at most five times, when it lost against a concurrent one (serialization failure,
 * deadlock). Goes around `withTransaction`, never inside it: the server has rolled everything back by then.
 */
export const retryTransaction = <A, E, R>(transaction: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.retry(transaction, {
    // Asked ahead of the pause: after the last attempt there is none.
    schedule: Schedule.recurs(retriesMax),
    while: (error) => (hasLost(error) ? Effect.as(pause, true) : false)
  })

const hasLost = (error: unknown): boolean =>
  SqlError.isSqlError(error) && ["SerializationError", "DeadlockError"].includes(error.reason._tag)

// Of random length, so that two losers do not meet again. A timer of the machine, not of the service's clock: a clock that
// stands still must not stop a commit.
const pause = Effect.flatMap(Random.nextIntBetween(1, pauseMillisMax), (millis) =>
  Effect.callback<void>((resume) => {
    const timer = setTimeout(() => resume(Effect.void), millis)
    return Effect.sync(() => clearTimeout(timer))
  })
)
