/** What the sweeps share: how they take hold of licenses, and in whose name they record what time has done. */
import { Clock, Effect, Option } from "effect"
import { SqlClient, type SqlError, type Statement } from "effect/sql"
import { EventLog, type EventRow, type NewEvent } from "../../events/EventLog.ts"
import { columns } from "../../postgres/Parameters.ts"
import { Postgres } from "../../postgres/Postgres.ts"
import { isChangedMeanwhile } from "../../postgres/Sql.ts"
import { retryTransaction } from "../../postgres/Transactions.ts"
import { exclusively, makeThrottle, requireExclusive } from "../../workers/Exclusive.ts"
import { clockOrigin, eventRow } from "../engine/EventRows.ts"

/**
 * Locks licenses in the order of their ids, as the Journal does, and gives those that were free: one that somebody holds is in
 * use, and waiting for it would hold up all others. What is read after this is what others have left for good.
 */
export const lockLicenses = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, ids: ReadonlyArray<string>) {
  if (ids.length === 0) return []
  const rows = yield* sql<{ readonly id: string }>`
    SELECT id FROM licenses WHERE id = ANY(${columns.text(ids)}) ORDER BY id FOR NO KEY UPDATE SKIP LOCKED`
  return rows.map(({ id }) => id)
})

/** The ids that a query finds. */
export const idsOf = Effect.fnUntraced(function* (query: Statement.Statement<{ readonly id: string }>) {
  return Array.from(new Set((yield* query).map(({ id }) => id)))
})

export const clockEvents = (events: ReadonlyArray<NewEvent>, now: number): ReadonlyArray<EventRow> =>
  events.map((event) => eventRow(event, clockOrigin, now))

/**
 * Licenses in one transaction: few keep this process and the events' counter for less at a time, many take less of the database's
 * time in all, of which a transaction has 0.7 ms whatever its size.
 */
const batchSize = 50

/**
 * Licenses that are read at once, and dealt out to batches like cards: those that lie in one page of the table, as those of one import
 * do, come into different batches. So the page has room for the next versions of all of them, and no index needs an entry.
 */
const windowSize = 5 * batchSize

/**
 * Very many licenses may fall due at once, and nobody waits for it: a sweep has time, a runtime call beside it has none. With this
 * much rest, and more after a batch that took longer than usual, 100,000 are done in 17 s on two processors that everything shares.
 */
const restPerWork = 1.7

/** What time does to licenses, very many of them at once. */
interface Work<Row> {
  /** What may be due, so many at most; with `hold`, what of it was free and is locked now. */
  readonly select: (now: number, most: number, hold: boolean) => Effect.Effect<ReadonlyArray<Row>, SqlError.SqlError>
  readonly isDue: (row: Row, now: number) => boolean
  /** Fails as changed meanwhile where not each of the rows is as it was selected. */
  readonly write: (rows: ReadonlyArray<Row>, now: number) => Effect.Effect<unknown, SqlError.SqlError>
  readonly eventsOf: (row: Row, now: number) => ReadonlyArray<NewEvent>
}

/**
 * Passes of what one node at a time does, in batches. A batch is decided on what was read without any lock and written at once, where
 * it still holds as a whole: so locks, the events' counter among them, are held for as long as the server works, and never while
 * this process does something else first. Where somebody was faster, licenses are held, decided and written step by step.
 */
export const makePasses = Effect.fnUntraced(function* (name: string) {
  const sql = yield* SqlClient.SqlClient
  const { atOnce } = yield* Postgres
  const { appendAtOnce, appendRows, deliveriesQueued } = yield* EventLog

  return <Row>({ select, isDue, write, eventsOf }: Work<Row>) => {
    const throttle = makeThrottle(restPerWork)
    const decide = (rows: ReadonlyArray<Row>, now: number) => {
      const due = rows.filter((row) => isDue(row, now))
      const events = due.flatMap((row) => eventsOf(row, now))
      return { due, events: clockEvents(events, now) }
    }

    /** How many were dealt with; None where another node is at it. */
    const held = exclusively(
      sql,
      name
    )(
      Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis
        const { due, events } = decide(yield* select(now, batchSize, true), now)
        if (due.length > 0) yield* write(due, now)
        yield* appendRows(events)
        return due.length
      })
    )

    const free = Effect.fnUntraced(function* (rows: ReadonlyArray<Row>) {
      const now = yield* Clock.currentTimeMillis
      const { due, events } = decide(rows, now)
      if (due.length === 0) return 0
      let queued = false
      const append = Effect.map(appendAtOnce(events), (some) => {
        queued = some
      })
      yield* retryTransaction(atOnce([requireExclusive(sql, name), write(due, now), append]))
      if (queued) deliveriesQueued.openUnsafe()
      return due.length
    })

    /** Whether there may be more to do. */
    const window = Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      const rows = yield* select(now, windowSize, false)
      let done = 0
      for (const batch of dealt(rows)) done += yield* throttle(free(batch))
      return done > 0 && rows.length === windowSize
    }).pipe(
      Effect.catchIf(isChangedMeanwhile, () => Effect.map(held, (done) => Option.getOrElse(done, () => 0) > 0)),
      // A policy was edited in the middle of it: the next pass finds what is left.
      Effect.catchIf(isChangedMeanwhile, () => Effect.succeed(false))
    )

    return Effect.gen(function* () {
      while (yield* window);
    })
  }
})

/** Each row in one of as few batches as hold them all, neighbours in different ones. */
const dealt = <Row>(rows: ReadonlyArray<Row>): ReadonlyArray<ReadonlyArray<Row>> => {
  const batches = Array.from({ length: Math.ceil(rows.length / batchSize) }, (): Array<Row> => [])
  for (const [index, row] of rows.entries()) batches[index % batches.length]!.push(row)
  return batches
}
