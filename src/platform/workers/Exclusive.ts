/**
 * Transactions that run on one node at a time. The advisory lock ends with the transaction, so a node that stops does not block
 * others, and nodes alternate batch by batch. A pause follows each batch, so that bulk work does not slow down requests.
 */
import { Clock, Effect, Option } from "effect"
import type { SqlClient, SqlError } from "effect/sql"
import { retryTransaction } from "../postgres/driver/Transactions.ts"
import { concurrentChange } from "../postgres/queries/Sql.ts"
import { sendHeartbeat } from "./PassHeartbeat.ts"

/** Runs a transaction, or returns None at once if another node runs one with this name. */
export const exclusively =
  (sql: SqlClient.SqlClient, name: string) =>
  <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<Option.Option<A>, E | SqlError.SqlError, R> =>
    throttle(
      retryTransaction(
        sql.withTransaction(
          Effect.flatMap(sql<{ readonly free: boolean }>`SELECT ${lock(sql, name)} AS free`, ([row]) =>
            row?.free === true ? Effect.asSome(self) : Effect.succeedNone
          )
        )
      )
    )

/** A statement for pipelined transactions. Fails as a concurrent change if another node runs a transaction with this name. */
export const requireExclusive = (sql: SqlClient.SqlClient, name: string) => sql`
  SELECT demand(${lock(sql, name)}, ${concurrentChange}, 'another node holds the lock')`

const lock = (sql: SqlClient.SqlClient, name: string) =>
  sql`pg_try_advisory_xact_lock(hashtextextended(${`licensing/${name}`}, 0))`

/**
 * The length of a pause as a multiple of the batch's duration, which grows with the load of the database. Without pauses the p99 of
 * consumptions increases up to 2.9 times while 100,000 licenses expire; with half of this pause it does so beside bulk jobs.
 */
const pauseFactorDefault = 1
/** The longest pause. A batch that waited for a lock, or a suspended machine, must not cause a longer one. */
const pauseMillisMax = 500

/** The weight of the last batch in the moving average. */
const averageWeight = 1 / 16
/** The largest extra factor for a batch that took longer than the average. */
const slowdownMax = 4

/**
 * Runs batches with a pause after each. A batch that takes longer than the average competes with requests, garbage collection or a
 * slow disk. Then its pause is longer by the same factor, up to four times, so that the next batch does not add to the load. On a
 * machine that is always busy the average itself is high.
 */
export const makeThrottle = (pauseFactor: number = pauseFactorDefault) => {
  let averageMillis: number | undefined
  return Effect.fnUntraced(function* <A, E, R>(batch: Effect.Effect<A, E, R>) {
    const clock = yield* Clock.Clock
    const startedAt = clock.monotonicTimeNanosUnsafe()
    const result = yield* batch
    yield* sendHeartbeat
    const tookMillis = Number(clock.monotonicTimeNanosUnsafe() - startedAt) / 1e6
    if (tookMillis <= 0) return result
    averageMillis ??= tookMillis
    const slowdown = Math.min(Math.max(tookMillis / averageMillis, 1), slowdownMax)
    averageMillis += (Math.min(tookMillis, slowdownMax * averageMillis) - averageMillis) * averageWeight
    yield* Effect.sleep(Math.min(tookMillis * pauseFactor * slowdown, pauseMillisMax))
    return result
  })
}

/** Runs a single batch and pauses after it. */
const throttle = <A, E, R>(batch: Effect.Effect<A, E, R>) => makeThrottle()(batch)

/** The result of a batch. */
export interface Batch {
  /** Due rows, at most the batch's size. */
  readonly found: number
  /** Processed rows: rows that other transactions had locked are left for the next pass. */
  readonly done: number
}

export const emptyBatch: Batch = { found: 0, done: 0 }

/** Runs batches until one is not full or makes no progress, or another node holds the lock. */
export const untilDone = <E, R>(
  size: number,
  batch: Effect.Effect<Option.Option<Batch>, E, R>
): Effect.Effect<void, E, R> =>
  Effect.gen(function* () {
    while (true) {
      const result = yield* batch
      yield* sendHeartbeat
      if (Option.isNone(result) || result.value.found < size || result.value.done === 0) return
    }
  })

/** Repeats an exclusive transaction, which returns its number of rows, until fewer than `size` are left. */
export const exclusivelyUntilDone = <E, R>(
  sql: SqlClient.SqlClient,
  name: string,
  size: number,
  batch: Effect.Effect<number, E, R>
) =>
  untilDone(
    size,
    Effect.map(
      exclusively(sql, name)(batch),
      Option.map((done) => ({ found: done, done }))
    )
  )
