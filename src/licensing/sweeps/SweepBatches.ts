/** Shared by the sweeps: locking licenses, writing in batches, and recording changes by the clock. */
import { Clock, Effect, Option } from "effect"
import { SqlClient, type SqlError, type Statement } from "effect/sql"
import type { EventRow, NewEvent, UsageRow } from "../../ledger/events/Entry.ts"
import { EventLog } from "../../ledger/events/EventLog.ts"
import { Mail } from "../../ledger/mail/Mail.ts"
import { insertMails, type MailRow } from "../../ledger/mail/MailRows.ts"
import type { NewMail } from "../../ledger/mail/QueuedMail.ts"
import { columns } from "../../platform/postgres/driver/Parameters.ts"
import { Postgres } from "../../platform/postgres/driver/Postgres.ts"
import { mayTakeLong, retryTransaction } from "../../platform/postgres/driver/Transactions.ts"
import { isConcurrentChange, isLockTimeout, isLogBusy } from "../../platform/postgres/queries/Sql.ts"
import { exclusively, makeThrottle, requireExclusive } from "../../platform/workers/Exclusive.ts"
import type { LicenseRecord } from "../model/LicenseRecords.ts"
import { clockOrigin, eventRow } from "../rows/EventRows.ts"
import type { LicenseOwned } from "../rows/LicenseRows.ts"

/**
 * Locks the free licenses in the order of their ids, as the Journal does, and returns them. Waiting for a license in
 * use would delay all others.
 */
export const lockLicenses = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, ids: ReadonlyArray<string>) {
  if (ids.length === 0) return []
  const rows = yield* sql<{ readonly id: string }>`
    SELECT id FROM licenses WHERE id = ANY(${columns.text(ids)}) ORDER BY id FOR NO KEY UPDATE SKIP LOCKED`
  return rows.map(({ id }) => id)
})

/** Locks the licenses `l` in the order of their ids, as the Journal does, and skips locked ones. */
export const lockClause = "ORDER BY l.id FOR NO KEY UPDATE OF l SKIP LOCKED"

export const byId = <Row extends { readonly id: string }>(rows: ReadonlyArray<Row>): ReadonlyArray<Row> =>
  rows.toSorted((a, b) => (a.id < b.id ? -1 : 1))

export const idsOf = Effect.fnUntraced(function* (query: Statement.Statement<{ readonly id: string }>) {
  return Array.from(new Set((yield* query).map(({ id }) => id)))
})

/** A license with the features of which something is due. */
export interface DueFeatures<Feature> extends Pick<LicenseRecord, "id" | "revision" | "status"> {
  readonly features: ReadonlyArray<Feature>
}

/** Features of one license in one batch; the others follow in the next one. */
export const featuresMax = 200

/** Licenses with due features: `licensesOf` selects their ids, `rowsOf` a row for each feature. */
export const selectFeatures = <Row extends LicenseOwned & Pick<LicenseRecord, "revision" | "status">, Feature>(
  sql: SqlClient.SqlClient,
  licensesOf: (now: number, limit: number) => Statement.Statement<{ readonly id: string }>,
  rowsOf: (ids: ReadonlyArray<string>, now: number) => Statement.Statement<Row>,
  featureOf: (row: Row) => Feature
): SweepTask<DueFeatures<Feature>>["select"] =>
  Effect.fnUntraced(function* (now, limit, lock) {
    const ids = yield* idsOf(licensesOf(now, limit))
    // In a snapshot after the lock: no other transaction changes the features of a locked license.
    const rows = yield* rowsOf(lock ? yield* lockLicenses(sql, ids) : ids, now)
    return Array.from(
      Map.groupBy(rows, ({ license_id }) => license_id),
      ([id, group]) => {
        const { revision, status } = group[0]!
        return { id, revision, status, features: group.map(featureOf) }
      }
    )
  })

interface Written {
  readonly set: Statement.Fragment
  /** Further values of each license, as `, unnest(…) AS name`. */
  readonly values?: Statement.Fragment
  /** A further condition for the license to be as it was read. */
  readonly holds?: Statement.Fragment
}

/**
 * Writes the licenses that have the revision that was read, in the order of their ids, as the Journal does, and returns
 * their ids. Each row is looked up by its key and written by its address (ctid), so that no plan reads a whole table.
 */
export const writeUnchanged = (
  sql: SqlClient.SqlClient,
  rows: ReadonlyArray<Pick<LicenseRecord, "id" | "revision">>,
  { set, values = sql``, holds = sql`TRUE` }: Written
) => sql`
  UPDATE licenses l SET ${set}
  FROM (
    SELECT unnest(${columns.text(rows.map(({ id }) => id))}) AS id,
      unnest(${columns.int8(rows.map(({ revision }) => revision))}) AS revision${values}
  ) AS decided, LATERAL (
    SELECT ctid AS address FROM licenses WHERE id = decided.id FOR NO KEY UPDATE SKIP LOCKED
  ) AS target
  WHERE l.ctid = target.address AND l.revision = decided.revision AND ${holds}
  RETURNING l.id`

export const clockEvents = (events: ReadonlyArray<NewEvent>, now: number): ReadonlyArray<EventRow> =>
  events.map((event) => eventRow(event, clockOrigin, now))

/**
 * Licenses in one transaction. Smaller batches block this process and the event counter for less time; larger ones cost
 * the database less, because each transaction costs 0.7 ms.
 */
const batchSize = 50

/**
 * Licenses that are read at once and distributed over several batches, so that neighbours in a page of the table are in
 * different batches. Then the page has room for the new versions of all of them, and no index needs an entry.
 */
const windowSize = 5 * batchSize

/**
 * Pause after a batch, as a multiple of its duration: no caller waits for a sweep, but concurrent runtime calls must be
 * fast. With this pause, and a longer one after a slow batch, 100,000 licenses take 17 s on two shared processors.
 */
const restPerWork = 1.7

/** A change by the clock, for very many licenses. */
export interface SweepTask<Row> {
  /** Rows that may be due, at most `limit`; with `lock`, only free ones, which it locks. */
  readonly select: (now: number, limit: number, lock: boolean) => Effect.Effect<ReadonlyArray<Row>, SqlError.SqlError>
  readonly isDue: (row: Row, now: number) => boolean
  /** Fails with `concurrentChange` if a row has changed since it was selected. */
  readonly write: (rows: ReadonlyArray<Row>, now: number) => Effect.Effect<unknown, SqlError.SqlError>
  readonly eventsOf: (row: Row, now: number) => ReadonlyArray<NewEvent>
  /** The mails about due rows, queued with their events. */
  readonly mailsOf?: (rows: ReadonlyArray<Row>, now: number) => Effect.Effect<ReadonlyArray<NewMail>, SqlError.SqlError>
  /** Rows of the usage ledger, written before the events. */
  readonly ledgerOf?: (row: Row, now: number) => ReadonlyArray<UsageRow>
}

/**
 * Sweep passes, in batches, on one node at a time. A batch is decided on rows read without locks, and written in one
 * round trip if all of it is still current. So locks, including the event counter, are never held while this process
 * runs other tasks. If another transaction was faster, the licenses are locked, decided and written step by step.
 */
export const makePasses = Effect.fnUntraced(function* (name: string) {
  const sql = yield* SqlClient.SqlClient
  const { inOneWrite } = yield* Postgres
  const { appendAtOnce, appendRows } = yield* EventLog

  const mail = yield* Mail

  return <Row>({ select, isDue, write, eventsOf, ledgerOf, mailsOf }: SweepTask<Row>) => {
    const mailRows = (rows: ReadonlyArray<Row>, now: number) =>
      mailsOf === undefined || !mail.isOn ? noMails : Effect.flatMap(mailsOf(rows, now), mail.rowsOf)
    const throttle = makeThrottle(restPerWork)
    const decide = (rows: ReadonlyArray<Row>, now: number) => {
      const due = rows.filter((row) => isDue(row, now))
      const events = due.flatMap((row) => eventsOf(row, now))
      const ledger = ledgerOf === undefined ? [] : due.flatMap((row) => ledgerOf(row, now))
      return { due, entries: [...ledger, ...clockEvents(events, now)] }
    }

    /** The number of written licenses; None if another node is running the sweep. */
    const runLocked = exclusively(
      sql,
      name
    )(
      Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis
        const { due, entries } = decide(yield* select(now, batchSize, true), now)
        if (due.length > 0) yield* write(due, now)
        const mails = yield* mailRows(due, now)
        if (mails.length > 0) yield* insertMails(sql, mails)
        yield* appendRows(entries)
        return due.length
      })
    )

    const runUnlocked = Effect.fnUntraced(function* (rows: ReadonlyArray<Row>) {
      const now = yield* Clock.currentTimeMillis
      const { due, entries } = decide(rows, now)
      if (due.length === 0) return 0
      let wake: (() => void) | undefined
      const append = Effect.map(appendAtOnce(entries), (appended) => {
        wake = appended.wake
      })
      const mails = yield* mailRows(due, now)
      const queue = mails.length === 0 ? [] : [insertMails(sql, mails)]
      const others = [requireExclusive(sql, name), mayTakeLong(sql), write(due, now)]
      yield* retryTransaction(inOneWrite([...others, ...queue, append]))
      wake?.()
      return due.length
    })

    /** Writes one window. Returns whether more licenses may be due. */
    const runWindow = Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      const rows = yield* select(now, windowSize, false)
      let done = 0
      for (const batch of distribute(rows)) done += yield* throttle(runUnlocked(batch))
      return done > 0
    }).pipe(
      Effect.catchIf(
        (error) => isConcurrentChange(error) || isLockTimeout(error) || isLogBusy(error),
        () => Effect.map(runLocked, (done) => Option.getOrElse(done, () => 0) > 0)
      ),
      // A policy was edited meanwhile; the next pass continues.
      Effect.catchIf(isConcurrentChange, () => Effect.succeed(false))
    )

    return Effect.gen(function* () {
      while (yield* runWindow);
    })
  }
})

const noMails: Effect.Effect<ReadonlyArray<MailRow>> = Effect.succeed([])

const distribute = <Row>(rows: ReadonlyArray<Row>): ReadonlyArray<ReadonlyArray<Row>> => {
  const batches = Array.from({ length: Math.ceil(rows.length / batchSize) }, (): Array<Row> => [])
  for (const [index, row] of rows.entries()) batches[index % batches.length]!.push(row)
  return batches
}
