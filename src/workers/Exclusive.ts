/**
 * Transactions that one node at a time runs. The lock lives and dies with the transaction, so a node that stops holds nothing up,
 * and nodes take turns batch by batch. After each batch there is a rest: what comes all at once must not slow down who is
 * waiting for an answer.
 */
import { Clock, Effect, Option } from "effect"
import type { SqlClient, SqlError } from "effect/sql"
import { changedMeanwhile } from "../postgres/Sql.ts"
import { retryTransaction } from "../postgres/Transactions.ts"
import { sendHeartbeat } from "./Heartbeat.ts"

/** Runs a transaction, or answers None at once where another node is running one of this name. */
export const exclusively =
  (sql: SqlClient.SqlClient, name: string) =>
  <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<Option.Option<A>, E | SqlError.SqlError, R> =>
    unhurried(
      retryTransaction(
        sql.withTransaction(
          Effect.flatMap(sql<{ readonly free: boolean }>`SELECT ${lock(sql, name)} AS free`, ([row]) =>
            row?.free === true ? Effect.asSome(self) : Effect.succeedNone
          )
        )
      )
    )

/** For a transaction that is known as a whole: fails as changed meanwhile where another node is running one of this name. */
export const alone = (sql: SqlClient.SqlClient, name: string) => sql`
  SELECT demand(${lock(sql, name)}, ${changedMeanwhile}, 'another node is at it')`

const lock = (sql: SqlClient.SqlClient, name: string) =>
  sql`pg_try_advisory_xact_lock(hashtextextended(${`licensing/${name}`}, 0))`

/**
 * How long a rest is, as a multiple of what the batch took: the busier the database, the longer. Without rests the p99 of
 * consumptions rises up to 2.9 times while 100,000 licenses expire.
 */
const restPerWorkUsual = 1
/** A batch that was held up, or a machine that slept, is no reason to rest as long. */
const restMillisMax = 500

/** How much of what is usual the last batch makes up. */
const usualShare = 1 / 16
/** How many times longer a rest is at most than its multiple, where a batch took longer than usual. */
const busyMax = 4

/**
 * Batches, each with a rest after it. One that took longer than usual has met others: requests, collecting of garbage, a slow disk.
 * The rest after it is longer by that, up to four times, so that the next batch does not add to it. On a machine that is busy all the
 * time long is what is usual.
 */
export const makeUnhurried = (restPerWork: number = restPerWorkUsual) => {
  let usualMillis: number | undefined
  return Effect.fnUntraced(function* <A, E, R>(batch: Effect.Effect<A, E, R>) {
    const clock = yield* Clock.Clock
    const began = clock.monotonicTimeNanosUnsafe()
    const result = yield* batch
    yield* sendHeartbeat
    const tookMillis = Number(clock.monotonicTimeNanosUnsafe() - began) / 1e6
    if (tookMillis <= 0) return result
    usualMillis ??= tookMillis
    const busy = Math.min(Math.max(tookMillis / usualMillis, 1), busyMax)
    usualMillis += (Math.min(tookMillis, busyMax * usualMillis) - usualMillis) * usualShare
    yield* Effect.sleep(Math.min(tookMillis * restPerWork * busy, restMillisMax))
    return result
  })
}

/** A batch, and the rest after it. */
const unhurried = <A, E, R>(batch: Effect.Effect<A, E, R>) => makeUnhurried()(batch)

/** What a batch has come to. */
export interface Batch {
  /** Rows that were due, at most the batch's size. */
  readonly found: number
  /** Rows that were dealt with: those that others had locked are left for the next pass. */
  readonly done: number
}

export const nothing: Batch = { found: 0, done: 0 }

/** Runs batches until one is not full, or gets nowhere, or another node is at it. */
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
