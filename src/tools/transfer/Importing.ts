/**
 * Writes imported records beside running nodes: a batch is one transaction with its events, or nothing. What must stay true: a
 * record that exists is never changed, so that an import can be repeated after any interruption, and a record appears together
 * with its parts.
 */
import { Clock, Context, Effect, Layer, type Schema } from "effect"
import { SqlClient, SqlError } from "effect/sql"
import { CurrentActor } from "../../access/CurrentActor.ts"
import { RequestContext } from "../../contract/api/RequestContext.ts"
import { subscriptionsChanged } from "../../ledger/events/DeliveryQueue.ts"
import type { EventRow } from "../../ledger/events/Entry.ts"
import { EventLog } from "../../ledger/events/EventLog.ts"
import {
  mayCompute,
  mayPause,
  mayTakeLong,
  pauseFor,
  retryTransaction
} from "../../platform/postgres/driver/Transactions.ts"
import { type Columns, readColumns, tableOf } from "./Columns.ts"
import { cleanedUnits, makeFaultsOf } from "./Faults.ts"
import { clash, dataFault, existingKeys, insertEntries, keyOf, refused } from "./Inserting.ts"
import { type Fault, type Row, TransferRefused } from "./Lines.ts"
import { tableGroups } from "./Tables.ts"
import type { Entry, Unit } from "./Units.ts"

/** What became of the units of a batch. */
export interface Imported {
  /** The number of written rows by type. */
  readonly written: ReadonlyMap<string, number>
  /** Records that existed already; their parts were skipped, too. */
  readonly present: number
  /** Written records without what was erased of their customer. */
  readonly erased: ReadonlyArray<Fault>
}

/** How often a batch is tried again after its connection was lost, as on a machine that gives the command no time for a second. */
const lostMax = 5
const isLost = (error: unknown): boolean => SqlError.isSqlError(error) && error.reason._tag === "ConnectionError"

/** How often a batch is tried again that the database has refused, although nothing is wrong with it any more. */
const retriesMax = 5

/** Before it is tried again: what another transaction does meanwhile takes as long. */
const retryPauseMillis = 100

const changedMeanwhile = (reason: string) =>
  new TransferRefused({
    message: `A batch was refused ${retriesMax + 1} times, but none of its lines when tried alone: run the same command again. The last reason: ${reason}`
  })

/** Whether the units are taken back: they are written without events, whose counter every node waits for. */
const IsRehearsal = Context.Reference("licensing/tools/transfer/IsRehearsal", { defaultValue: () => false })

export class Importing extends Context.Service<
  Importing,
  {
    /** The columns that lines of each type may have. */
    readonly columns: ReadonlyMap<string, Columns>
    /** Writes all units or none. */
    write(units: ReadonlyArray<Unit>): Effect.Effect<Imported, TransferRefused>
    /** Runs an import and takes all of it back. */
    rehearse<A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R>
  }
>()("licensing/tools/transfer/Importing") {
  static readonly layer = Layer.effect(
    Importing,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const events = yield* EventLog
      const columns = yield* Effect.orDie(readColumns(sql))

      const writeUnits = makeWriter(sql, events, columns)

      // Rows are parsed between the statements, and parts of a large record are read from the file. Until the events are written
      // a batch holds only rows that no other transaction uses. A rehearsal goes on after the batch.
      const prepared = Effect.andThen(
        mayTakeLong(sql),
        Effect.flatMap(IsRehearsal, (isRehearsal) => sql`SELECT ${isRehearsal ? mayPause(sql) : mayCompute(sql)}`)
      )
      const inTransaction = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
        retryTransaction(sql.withTransaction(Effect.andThen(prepared, effect))).pipe(
          // If the lost transaction was committed, its records exist already.
          Effect.retry({ times: lostMax, while: isLost })
        )

      const faultsOf = makeFaultsOf(sql, columns, writeUnits)

      /** If the database refuses the units, and none of their lines afterwards, the cause was temporary: they are tried again. */
      const writeOrName = (
        units: ReadonlyArray<Unit>,
        attempt: Effect.Effect<Imported, TransferRefused | SqlError.SqlError>,
        triesLeft: number
      ): Effect.Effect<Imported, TransferRefused> =>
        inTransaction(attempt).pipe(
          Effect.catchIf(SqlError.isSqlError, (error) => {
            const reason = dataFault(error)
            if (reason === undefined) return Effect.die(error)
            return Effect.flatMap(rehearse(faultsOf(units)), (faults) => {
              if (faults.length > 0) return refused(faults)
              if (triesLeft === 0) return changedMeanwhile(reason)
              return Effect.andThen(pauseFor(retryPauseMillis), writeOrName(units, attempt, triesLeft - 1))
            })
          })
        )

      const write = Effect.fn("Importing.write")((units: ReadonlyArray<Unit>) => {
        let attempted: Imported | undefined
        const attempt = Effect.tap(writeUnits(units), (result) =>
          Effect.sync(() => {
            if (result.written.size > 0) attempted = result
          })
        )
        return Effect.map(writeOrName(units, attempt, retriesMax), (result) =>
          // Of a batch whose answer to COMMIT was lost, everything exists already: it is what the attempt before has written.
          result.written.size === 0 ? (attempted ?? result) : result
        )
      })

      /** Rolled back by failing with its own result. */
      const rehearse = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> => {
        let result: A | undefined
        const rolledBack = Symbol()
        return Effect.andThen(sql`SELECT ${mayPause(sql)}`, effect).pipe(
          Effect.flatMap((value) => {
            result = value
            return Effect.fail(rolledBack)
          }),
          sql.withTransaction,
          Effect.provideService(IsRehearsal, true),
          Effect.catch((error) => (error === rolledBack ? Effect.succeed(result as A) : Effect.fail(error as E)))
        ) as Effect.Effect<A, E, R>
      }

      return Importing.of({ columns, write: write as never, rehearse })
    })
  )
}

/** Writes units and their events within the caller's transaction. */
const makeWriter = (sql: SqlClient.SqlClient, events: EventLog["Service"], columns: ReadonlyMap<string, Columns>) =>
  Effect.fnUntraced(function* (units: ReadonlyArray<Unit>) {
    const cleaned = yield* cleanedUnits(sql, units)
    if (cleaned.faults.length > 0) return yield* refused(cleaned.faults)
    const isRehearsal = yield* IsRehearsal
    const adjusted = cleaned.units
    const counts = new Map<string, number>()
    const kept = new Set<Unit>()
    const faults: Array<Fault> = []
    let present = 0
    const insert = (entries: ReadonlyArray<Entry>) =>
      Effect.map(insertEntries(sql, columns, entries), (inserted) => {
        const { type } = entries[0]!.table
        if (inserted.size > 0) counts.set(type, (counts.get(type) ?? 0) + inserted.size)
        return inserted
      })
    for (const { parts, root } of tableGroups) {
      const group = adjusted.filter((unit) => unit.root.table === root)
      if (group.length === 0) continue
      const entries = group.map((unit) => unit.root)
      if (root.type === "webhook" && !isRehearsal) yield* subscriptionsChanged(sql)
      const inserted = yield* insert(entries)
      const existing = yield* existingKeys(
        sql,
        entries.filter((entry) => !inserted.has(keyOf(entry)))
      )
      const fresh = new Set(inserted)
      for (const unit of group) {
        const key = keyOf(unit.root)
        // Of a record that the batch has twice, the first one was inserted.
        if (fresh.delete(key)) kept.add(unit)
        else if (inserted.has(key) || existing.has(key)) present++
        else faults.push(clash(unit.root))
      }
      const insertParts = (entries: ReadonlyArray<Entry>) =>
        entries.length === 0
          ? Effect.void
          : Effect.map(insert(entries), (found) => {
              faults.push(...entries.filter((entry) => !found.has(keyOf(entry))).map(clash))
            })
      const written = group.filter((unit) => kept.has(unit))
      const added = written.flatMap((unit) => unit.parts)
      for (const part of parts) yield* insertParts(added.filter(({ table }) => table === part))
      for (const { large } of written) yield* large?.inPieces(insertParts) ?? Effect.void
    }
    if (faults.length > 0) return yield* refused(faults)
    const erased = [...cleaned.erased].flatMap(([unit, fault]) => (kept.has(unit) ? [fault] : []))
    if (isRehearsal) return { written: counts, present, erased }
    const eventsOf = yield* makeEvents
    yield* events.appendRows(adjusted.filter((unit) => kept.has(unit)).flatMap(eventsOf.unit))
    for (const { large } of kept) {
      if (large === undefined || ![...large.counts.keys()].some(hasEvent)) continue
      yield* large.inPieces((parts) => events.appendRows(parts.flatMap(eventsOf.part)))
    }
    return { written: counts, present, erased }
  })

/** The events of new records, by the operator. */
const makeEvents = Effect.gen(function* () {
  const { requestId } = yield* RequestContext
  const actor = yield* CurrentActor
  const created_at = yield* Clock.currentTimeMillis
  const eventOf = ({ row, table }: Entry, counts: Iterable<readonly [type: string, count: number]>) => {
    if (table.event === undefined) return []
    const shown: Row = { ...row, ...table.shown?.(row) }
    const named = table.event.named.flatMap((column) => (shown[column] === undefined ? [] : [[column, shown[column]]]))
    const metadata = {
      ...Object.fromEntries(named),
      ...Object.fromEntries([...counts].map(([type, count]) => [`${type}s`, count])),
      imported: true,
      request_id: requestId
    } as { readonly [key: string]: Schema.Json }
    const { resource: resource_type, type: event_type } = table.event
    const resource_id = String(row[table.key[0]!])
    return [{ ...actor, event_type, resource_type, resource_id, metadata, ip_address: undefined, created_at }]
  }
  const part = (entry: Entry): ReadonlyArray<EventRow> => eventOf(entry, [])
  const unit = ({ large, parts, root }: Unit): ReadonlyArray<EventRow> => {
    const counts = large?.counts ?? countByType(parts)
    return [
      ...eventOf(
        root,
        [...counts].filter(([type]) => !hasEvent(type))
      ),
      ...parts.flatMap(part)
    ]
  }
  return { unit, part }
})

const hasEvent = (type: string): boolean => tableOf(type).event !== undefined

const countByType = (parts: ReadonlyArray<Entry>) =>
  new Map([...Map.groupBy(parts, ({ table }) => table.type)].map(([type, { length }]) => [type, length]))
