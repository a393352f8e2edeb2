/**
 * Decides whether commits take their numbers from the counter or store their entries without, and numbers what was stored. A commit
 * holds the counter until its end, with a synchronous standby for at least a round trip, and the commits of other nodes wait. Those
 * that store their entries run at the same time. What must stay true: the next transaction that locks the counter numbers all
 * committed entries (`number_waiting_entries`), so that numbers are gapless and follow the order of dependent commits.
 */
import { Clock, Context, Effect, Latch, Option } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import { monotonicMillis } from "../../platform/postgres/driver/Deadline.ts"
import { pauseFor } from "../../platform/postgres/driver/Transactions.ts"
import { busyLog, waitsForLog } from "../../platform/postgres/queries/Sql.ts"
import { type CounterLock, counterWaitMillis } from "./CounterLock.ts"

/**
 * The average wait for the counter, in milliseconds, from which commits store their entries. Storing costs the database up to
 * half as much again: with a standby 20 ms away three nodes gain 80 %, and with none they would lose 5 %.
 */
export const CounterPatience = Context.Reference("licensing/ledger/events/CounterPatience", {
  defaultValue: () => 12
})

/** The weight of the last wait in the moving average: a single slow commit changes nothing. */
const waitWeight = 1 / 8
/** After this time without a commit the average says nothing about the present. */
const averagedMillis = 60_000
/** How long commits store their entries. Then one waits for the counter, which shows whether others still hold it. */
const storedMillis = 1_000
/** The pause while another node numbers. It may not have seen the newest entries. */
const otherNodeMillis = 5
const pausesMax = 100

export const makeNumbering = Effect.fnUntraced(function* (counterLock: CounterLock, deliveriesQueued: Latch.Latch) {
  const sql = yield* SqlClient.SqlClient
  const clock = yield* Clock.Clock
  const patienceMillis = yield* CounterPatience
  const entriesWaiting = yield* Latch.make()
  let hasStored = false
  let isNumbering = false
  let numberings = 0
  let lastAverage = 0
  let lastWaitAt = Number.NEGATIVE_INFINITY
  let storedUntil = Number.NEGATIVE_INFINITY

  const isWaitingOf = (writers: Statement.Fragment) =>
    Effect.map(
      sql<{ readonly waiting: boolean }>`
        SELECT EXISTS (SELECT FROM waiting_entries WHERE writer >= waiting_since(counter) AND ${writers}) AS waiting
        FROM event_sequence counter`,
      ([row]) => row!.waiting
    )
  const isWaiting = isWaitingOf(sql`true`)
  /** Updates the counter, whose trigger numbers all entries that are committed. Returns whether the condition held. */
  const number = (condition: Statement.Fragment) =>
    Effect.suspend(() => {
      isNumbering = true
      numberings++
      return Effect.map(
        counterLock.watch(
          waitsForLog(sql`
            UPDATE event_sequence SET last = last
            WHERE set_config('lock_timeout', ${String(counterWaitMillis)}, true) IS NOT NULL AND ${condition} RETURNING last`)
        ),
        (rows) => rows.length > 0
      )
    }).pipe(Effect.ensuring(Effect.sync(() => (isNumbering = false))))
  const isOnlyNode = sql`pg_try_advisory_xact_lock(hashtextextended('licensing/numbering', 0))`

  const numberWaiting = Effect.gen(function* () {
    if (!(yield* isWaiting)) return
    if (Option.isSome(yield* Effect.serviceOption(sql.transactionService))) yield* awaitNumbers
    else yield* number(sql`true`)
  })
  // A request's own transaction must not hold the counter until its end, so another one is waited for. Entries of transactions that
  // begin later do not matter: while commits store entries, some always wait.
  const awaitNumbers = Effect.gen(function* () {
    const [row] = yield* sql<{ readonly next: string }>`SELECT pg_snapshot_xmax(pg_current_snapshot())::text AS next`
    const isEarlierWaiting = isWaitingOf(sql`writer < ${row!.next}::text::xid8`)
    for (let pauses = 0; yield* isEarlierWaiting; pauses++) {
      if (pauses === pausesMax) return yield* Effect.fail(busyLog())
      yield* pauseFor(otherNodeMillis)
    }
  })

  // One node at a time: the others would hold the counter and find nothing to number.
  const pass = Effect.gen(function* () {
    const before = numberings
    for (let pauses = 0; pauses < pausesMax && (yield* isWaiting) && !(yield* number(isOnlyNode)); pauses++)
      yield* pauseFor(otherNodeMillis)
    // Another node may have numbered what this one has stored.
    if (hasStored || numberings > before) deliveriesQueued.openUnsafe()
    hasStored = false
  })

  const averageAt = (now: number) => (now - lastWaitAt > averagedMillis ? 0 : lastAverage)
  /** Records how long a commit has waited for others. */
  const waited = (millis: number) => {
    const now = monotonicMillis(clock)
    const average = averageAt(now)
    lastAverage = average + (millis - average) * waitWeight
    lastWaitAt = now
    if (lastAverage >= patienceMillis) storedUntil = now + storedMillis
  }

  return {
    entriesWaiting,
    numberWaiting,
    pass,
    averageWaitMillis: Effect.sync(() => averageAt(monotonicMillis(clock))),
    /** To be run after the commit that has stored entries. */
    wake: () => {
      hasStored = true
      entriesWaiting.openUnsafe()
    },
    /** Whether commits store their entries. Not while the counter cannot be locked, so that few entries wait. */
    isAfterCommit: () => monotonicMillis(clock) < storedUntil && !counterLock.isFailing(),
    /** Records the wait of an append. Returns how long it waited for others, not for this node's own numbering. */
    recordWait: <A extends { readonly waited_ms: number }, E, R>(append: Effect.Effect<ReadonlyArray<A>, E, R>) =>
      Effect.suspend(() => {
        const before = isNumbering ? undefined : numberings
        return Effect.map(append, ([row]) => {
          if (before !== numberings) return { ...row!, waited_ms: 0 }
          waited(row!.waited_ms)
          return row!
        })
      })
  }
})
