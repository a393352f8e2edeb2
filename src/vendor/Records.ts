/** What the services of records have in common: reading one by its id, and writing an edit together with its event. */
import { Effect } from "effect"
import type { SqlClient, SqlError, Statement } from "effect/sql"
import type { Refusal } from "../contract/api/Failure.ts"
import { changesOf } from "../ledger/events/Changes.ts"
import type { EventLog } from "../ledger/events/EventLog.ts"
import type { EventType, ResourceType } from "../ledger/events/EventType.ts"

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

/** The resources with an event `<resource>.updated`. */
type Edited = { [R in ResourceType]: `${R}.updated` extends EventType ? R : never }[ResourceType]

/** Writes an edit and appends its event, unless all fields are as before. */
export const editOf = <Field extends string>(
  events: EventLog["Service"],
  resource_type: Edited,
  fields: ReadonlyArray<Field>
) =>
  Effect.fnUntraced(function* <
    A extends { readonly id: string } & { readonly [F in Field]?: unknown },
    Step extends Effect.Effect<unknown, unknown, unknown>
  >(before: A, after: A, write: (changes: ReturnType<typeof changesOf>) => Generator<Step, void, never>) {
    const changes = changesOf(before, after, fields)
    if (Object.keys(changes).length === 0) return before
    yield* Effect.gen(() => write(changes))
    const event_type = `${resource_type}.updated` as const
    yield* events.append({ event_type, resource_type, resource_id: before.id, metadata: { changes } })
    return after
  })
