/** What the services of records share: reading, listing the records of a product, and writing events and edits. */
import { Effect, type Schema, Struct } from "effect"
import type { SqlClient, SqlError, Statement } from "effect/sql"
import type { Refusal } from "../contract/api/Failure.ts"
import type { ListRequest } from "../contract/api/Paging.ts"
import { changesOf } from "../ledger/events/Changes.ts"
import type { NewEvent } from "../ledger/events/Entry.ts"
import type { EventLog } from "../ledger/events/EventLog.ts"
import type { EventType, ResourceType } from "../ledger/events/EventType.ts"
import { type List, readPage } from "../platform/postgres/queries/Pages.ts"
import { equals } from "../platform/postgres/queries/Sql.ts"

interface Source<A> {
  readonly columns: Statement.Fragment
  readonly table: string
  readonly decode: (
    rows: Effect.Effect<ReadonlyArray<object>, SqlError.SqlError>
  ) => Effect.Effect<ReadonlyArray<A>, SqlError.SqlError>
  readonly notFound: (id: string) => Refusal<"NOT_FOUND">
}

/** Reads a record, as it is or locked until the end of the transaction. */
export const recordsIn = <A>(sql: SqlClient.SqlClient, { columns, decode, notFound, table }: Source<A>) => {
  const read = Effect.fnUntraced(function* (id: string, lock: Statement.Fragment) {
    const [record] = yield* decode(sql`SELECT ${columns} FROM ${sql.literal(table)} WHERE id = ${id} ${lock}`)
    return record ?? (yield* notFound(id))
  })
  return {
    get: (id: string) => Effect.catchTag(read(id, sql``), "SqlError", Effect.die),
    locked: (id: string) => read(id, sql`FOR UPDATE`)
  }
}

/** The request of a list whose filters each compare one column. */
export type FilteredBy<F extends Schema.Struct.Fields> = ListRequest & Schema.Struct.Type<F>

/** Lists the records of a product. An empty list may also mean that the product does not exist. */
export const listOfProduct = <
  A extends { readonly id: string; readonly created_at: number },
  F extends { readonly [column: string]: Schema.optionalKey<Schema.Codec<string>> }
>(
  sql: SqlClient.SqlClient,
  product: (id: string) => Effect.Effect<unknown, Refusal<"NOT_FOUND">>,
  list: Omit<List<A, SqlError.SqlError>, "where">,
  filters: F,
  /** The filters that are no column. */
  others: (request: FilteredBy<F>) => { readonly [name: string]: Statement.Fragment | undefined } = () => ({})
) =>
  Effect.fnUntraced(
    function* (productId: string, request: FilteredBy<F>) {
      const conditions = others(request)
      const ofColumns = Object.keys(filters).filter((name) => !(name in conditions))
      const given = Struct.pick(request as { readonly [column: string]: string }, ofColumns)
      const more = Object.values(conditions).map((condition) => condition ?? sql`TRUE`)
      const where = sql`product_id = ${productId} AND ${sql.and([equals(sql, given), ...more])}`
      const page = yield* readPage(sql, request, { ...list, where })
      if (page.items.length === 0) yield* product(productId)
      return page
    },
    Effect.catchTag("SqlError", Effect.die)
  )

/** Appends events of one kind of resource. */
export const eventsOf =
  <R extends ResourceType>(events: EventLog["Service"], resource_type: R) =>
  (event_type: Extract<EventType, `${R}.${string}`>, resource_id: string, metadata: NewEvent["metadata"]) =>
    events.append({ event_type, resource_type, resource_id, metadata })

/** The resources with an event `<resource>.updated`. */
type Edited = { [R in ResourceType]: `${R}.updated` extends EventType ? R : never }[ResourceType]

/** Writes an edit and appends its event, unless all fields are as before. */
export const editOf = <Field extends string>(
  events: EventLog["Service"],
  resource_type: Edited,
  /** The fields of an edit's request. */
  { fields }: { readonly fields: { readonly [F in Field]: unknown } }
) => {
  const names = Struct.keys(fields)
  return Effect.fnUntraced(function* <
    A extends { readonly id: string } & { readonly [F in Field]?: unknown },
    Step extends Effect.Effect<unknown, unknown, unknown>
  >(before: A, after: A, write: (changes: ReturnType<typeof changesOf>) => Generator<Step, void, never>) {
    const changes = changesOf(before, after, names)
    if (Object.keys(changes).length === 0) return before
    yield* Effect.gen(() => write(changes))
    const event_type = `${resource_type}.updated` as const
    yield* events.append({ event_type, resource_type, resource_id: before.id, metadata: { changes } })
    return after
  })
}
