/** What the sweeps share: how they take hold of licenses, and in whose name they record what time has done. */
import { Clock, Effect } from "effect"
import { SqlClient, type SqlError, type Statement } from "effect/sql"
import { EventLog, type EventRow, type NewEvent } from "../events/EventLog.ts"
import { columns } from "../postgres/Parameters.ts"
import { Postgres } from "../postgres/Postgres.ts"
import { isChangedMeanwhile } from "../postgres/Sql.ts"
import { retryTransaction } from "../postgres/Transactions.ts"
import { alone, exclusively, nothing, unhurried } from "../workers/Exclusive.ts"
import { clockOrigin, recorded } from "./Recording.ts"

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

export const byClock = (events: ReadonlyArray<NewEvent>, now: number): ReadonlyArray<EventRow> =>
  events.map((event) => recorded(event, clockOrigin, now))

/**
 * Very many licenses may fall due at once, and nobody waits for it: a sweep has time, a runtime call beside it has none. With this
 * much rest 100,000 are done in 27 s on two processors that everything shares.
 */
const restPerWork = 1.4

export interface Found {
  readonly id: string
  /** How many were found with it, those included that somebody else held. */
  readonly found: number
}

/** What time does to licenses that are found in batches. */
interface Work<Row extends Found> {
  /** What may be due; with `hold`, what of it was free and is locked now. */
  readonly select: (now: number, hold: boolean) => Effect.Effect<ReadonlyArray<Row>, SqlError.SqlError>
  readonly isDue: (row: Row, now: number) => boolean
  /** Fails as changed meanwhile where not each of the rows is free and as it was selected. */
  readonly write: (rows: ReadonlyArray<Row>, now: number) => Effect.Effect<unknown, SqlError.SqlError>
  readonly eventsOf: (row: Row, now: number) => ReadonlyArray<NewEvent>
}

/**
 * Batches of what one node at a time does. A batch is decided on what was read without any lock and written at once, where it
 * still holds as a whole: so locks, the events' counter among them, are held for as long as the server works, and never while
 * this process does something else first. Where somebody was faster it is held, decided and written step by step.
 */
export const makeBatches = Effect.fnUntraced(function* (name: string) {
  const sql = yield* SqlClient.SqlClient
  const { atOnce } = yield* Postgres
  const { appendAtOnce, appendRows, deliveriesQueued } = yield* EventLog

  return <Row extends Found>({ select, isDue, write, eventsOf }: Work<Row>) => {
    const decide = Effect.fnUntraced(function* (hold: boolean) {
      const now = yield* Clock.currentTimeMillis
      const rows = yield* select(now, hold)
      const due = rows.filter((row) => isDue(row, now))
      const events = byClock(
        due.flatMap((row) => eventsOf(row, now)),
        now
      )
      return { now, due, events, batch: { found: rows[0]?.found ?? 0, done: due.length } }
    })
    const held = exclusively(
      sql,
      name
    )(
      Effect.gen(function* () {
        const { now, due, events, batch } = yield* decide(true)
        if (due.length > 0) yield* write(due, now)
        yield* appendRows(events)
        return batch
      })
    )
    const free = Effect.gen(function* () {
      const { now, due, events, batch } = yield* decide(false)
      if (due.length === 0) return batch
      let queued = false
      const append = Effect.map(appendAtOnce(events), (some) => {
        queued = some
      })
      yield* retryTransaction(atOnce([alone(sql, name), write(due, now), append]))
      if (queued) deliveriesQueued.openUnsafe()
      return batch
    })
    return unhurried(Effect.asSome(free), restPerWork).pipe(
      Effect.catchIf(isChangedMeanwhile, () => held),
      // A policy was edited in the middle of it: the next pass finds what is left.
      Effect.catchIf(isChangedMeanwhile, () => Effect.succeedSome(nothing))
    )
  }
})
