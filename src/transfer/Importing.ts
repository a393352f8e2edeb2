/**
 * Writes imported records beside running nodes: a batch is one transaction with its events, or nothing. What must stay true: a
 * record that exists is never changed, so that an import can be repeated after any interruption, and a record appears together
 * with its parts.
 */
import { Clock, Context, Effect, Layer, type Schema } from "effect"
import { SqlClient, SqlError } from "effect/sql"
import { RequestContext } from "../api/RequestContext.ts"
import { CurrentActor } from "../auth/CurrentActor.ts"
import { subscriptionsChanged } from "../events/DeliveryQueue.ts"
import { EventLog, type EventRow } from "../events/EventLog.ts"
import { json, columns as parameters } from "../postgres/Parameters.ts"
import { nextRevision } from "../postgres/Revision.ts"
import { concurrentChange } from "../postgres/Sql.ts"
import { mayPause, mayTakeLong, retryTransaction } from "../postgres/Transactions.ts"
import { asRow, type Columns, readColumns } from "./Columns.ts"
import { withoutErased } from "./ErasedCustomers.ts"
import { type Fault, TransferRefused } from "./Lines.ts"
import { adjustSecrets } from "./Secrets.ts"
import { type Table, tableGroups } from "./Tables.ts"
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

/** Whether the units are taken back: they are written without events, whose counter every node waits for. */
const IsRehearsal = Context.Reference("licensing/transfer/IsRehearsal", { defaultValue: () => false })

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
>()("licensing/transfer/Importing") {
  static readonly layer = Layer.effect(
    Importing,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const events = yield* EventLog
      const columns = yield* Effect.orDie(readColumns(sql))

      const writeUnits = makeWriter(sql, events, columns)

      const inTransaction = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
        retryTransaction(sql.withTransaction(Effect.andThen(mayTakeLong(sql), effect)))

      /** The faults of units that cannot be written together; each was tried and taken back. */
      const faultsOf = (units: ReadonlyArray<Unit>): Effect.Effect<ReadonlyArray<Fault>> =>
        Effect.gen(function* () {
          const outcome = yield* Effect.result(sql.withTransaction(writeUnits(units)))
          if (outcome._tag === "Success") return []
          if (!SqlError.isSqlError(outcome.failure)) return outcome.failure.faults ?? []
          const reason = dataFault(outcome.failure)
          if (reason === undefined) return yield* Effect.die(outcome.failure)
          if (units.length === 1) return [faultAt(units[0]!.root, reason)]
          const half = units.length >> 1
          return [...(yield* faultsOf(units.slice(0, half))), ...(yield* faultsOf(units.slice(half)))]
        }) as never

      const write = Effect.fn("Importing.write")((units: ReadonlyArray<Unit>) =>
        inTransaction(writeUnits(units)).pipe(
          Effect.catchIf(SqlError.isSqlError, (error) =>
            dataFault(error) === undefined
              ? Effect.die(error)
              : Effect.flatMap(rehearse(faultsOf(units)) as Effect.Effect<ReadonlyArray<Fault>>, refused)
          )
        )
      )

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
    const cleaned = yield* withoutErased(sql, yield* adjustSecrets(sql, units))
    if (cleaned.faults.length > 0) return yield* refused(cleaned.faults)
    const adjusted = cleaned.units
    const written = new Map<string, number>()
    const kept = new Set<Unit>()
    const faults: Array<Fault> = []
    let present = 0
    const insert = (entries: ReadonlyArray<Entry>) =>
      Effect.map(insertEntries(sql, columns, entries), (inserted) => {
        const { type } = entries[0]!.table
        if (inserted.size > 0) written.set(type, (written.get(type) ?? 0) + inserted.size)
        return inserted
      })
    for (const { parts, root } of tableGroups) {
      const group = adjusted.filter((unit) => unit.root.table === root)
      if (group.length === 0) continue
      const entries = group.map((unit) => unit.root)
      const inserted = yield* insert(entries)
      const existing = yield* existingKeys(
        sql,
        entries.filter((entry) => !inserted.has(keyOf(entry)))
      )
      for (const unit of group) {
        if (inserted.has(keyOf(unit.root))) kept.add(unit)
        else if (existing.has(keyOf(unit.root))) present++
        else faults.push(clash(unit.root))
      }
      const added = group.filter((unit) => kept.has(unit)).flatMap((unit) => unit.parts)
      for (const part of parts) {
        const belonging = added.filter(({ table }) => table === part)
        if (belonging.length === 0) continue
        const insertedParts = yield* insert(belonging)
        faults.push(...belonging.filter((entry) => !insertedParts.has(keyOf(entry))).map(clash))
      }
    }
    if (faults.length > 0) return yield* refused(faults)
    const erased = [...cleaned.erased].flatMap(([unit, fault]) => (kept.has(unit) ? [fault] : []))
    if (yield* IsRehearsal) return { written, present, erased }
    if (written.has("webhook")) yield* subscriptionsChanged(sql)
    yield* events.appendRows(yield* eventsOf(adjusted.filter((unit) => kept.has(unit))))
    return { written, present, erased }
  })

const refused = (faults: ReadonlyArray<Fault>) =>
  new TransferRefused({ message: `${faults.length} of the lines cannot be imported.`, faults })

const keyOf = ({ row, table }: Entry): string => keyText(table, row)
const keyText = ({ key }: Table, row: { readonly [column: string]: unknown }): string =>
  key.map((column) => String(row[column]).replace(/^\\x/, "")).join(" ")

/** Inserts rows of one table; returns the keys of those that were not there. */
const insertEntries = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  columns: ReadonlyMap<string, Columns>,
  entries: ReadonlyArray<Entry>
) {
  const [{ table }] = entries as readonly [Entry, ...Array<Entry>]
  const known = columns.get(table.type)!
  const given = new Set(entries.flatMap(({ row }) => Object.keys(row)))
  const names = [...known.keys()].filter((column) => given.has(column))
  const revision = table.revision === undefined ? {} : { [table.revision]: yield* nextRevision }
  const rows = entries.map(({ row }) => ({ ...asRow(known, row), ...revision }))
  const list = sql.literal([...names, ...Object.keys(revision)].map((name) => `"${name}"`).join(", "))
  const found = yield* sql<Record<string, unknown>>`
    INSERT INTO ${sql(table.name)} (${list})
    SELECT ${list} FROM jsonb_populate_recordset(NULL::${sql.literal(table.name)}, ${json(rows)})
    ON CONFLICT DO NOTHING RETURNING ${sql.literal(table.key.map((name) => `${name}::text`).join(", "))}`
  return new Set(found.map((row) => keyText(table, row)))
})

const existingKeys = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, entries: ReadonlyArray<Entry>) {
  const [first] = entries
  if (first === undefined) return new Set<string>()
  // A row without an id of its own is the same as the one that is there.
  if (first.table.key.length > 1) return new Set(entries.map(keyOf))
  const [key = "id"] = first.table.key
  const found = yield* sql<{ readonly key: string }>`
    SELECT ${sql(key)} AS key FROM ${sql(first.table.name)}
    WHERE ${sql(key)} = ANY(${parameters.text(entries.map(keyOf))})`
  return new Set(found.map((row) => row.key))
})

const clashes: Readonly<Record<string, string>> = {
  license: "Another license has this key",
  product: "Another product has this code",
  policy: "Another policy of the product has this code",
  customer: "Another customer has this code",
  subscription: "Another subscription of the product has this external_id",
  order: "Another order of the product has this external_id"
}

const faultAt = ({ line, source }: Entry, message: string): Fault => ({
  line,
  message: source === undefined ? message : `${source}: ${message}`
})

const clash = (entry: Entry): Fault => {
  const { type } = entry.table
  return faultAt(
    entry,
    `${clashes[type] ?? `Another ${type.replaceAll("_", " ")} of this name or id exists`}: remove or change it.`
  )
}

/** What the data of a line is refused for, by the database; undefined if another reason stopped the statement. */
const dataFault = (error: SqlError.SqlError): string | undefined => {
  const { code = "", column, constraint, message } = (error.reason.cause ?? {}) as Readonly<Record<string, string>>
  if (code === "23503") return `It refers to a record that does not exist (${constraint}): import that record first.`
  if (code === concurrentChange) return "Its customer is being erased: import again when that is done."
  if (code === "23502") return `The field ${column} is missing.`
  return /^2[23]/.test(code) ? `The database refuses it: ${message}.` : undefined
}

/** The events of new records, by the operator. */
const eventsOf = Effect.fnUntraced(function* (units: ReadonlyArray<Unit>) {
  const { requestId } = yield* RequestContext
  const actor = yield* CurrentActor
  const created_at = yield* Clock.currentTimeMillis
  const eventOf = ({ row, table }: Entry, parts: ReadonlyArray<Entry>): ReadonlyArray<EventRow> => {
    if (table.event === undefined) return []
    const named = table.event.named.flatMap((column) => (row[column] === undefined ? [] : [[column, row[column]]]))
    const counts = Map.groupBy(
      parts.filter((part) => part.table.event === undefined),
      (part) => `${part.table.type}s`
    )
    const metadata = {
      ...Object.fromEntries(named),
      ...Object.fromEntries([...counts].map(([type, { length }]) => [type, length])),
      imported: true,
      request_id: requestId
    } as { readonly [key: string]: Schema.Json }
    const { resource: resource_type, type: event_type } = table.event
    const resource_id = String(row[table.key[0]!])
    return [{ ...actor, event_type, resource_type, resource_id, metadata, ip_address: undefined, created_at }]
  }
  return units.flatMap(({ parts, root }) => [...eventOf(root, parts), ...parts.flatMap((part) => eventOf(part, []))])
})
