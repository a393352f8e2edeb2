/** The statements of an import, and what is wrong with the lines that they refuse. */
import { Effect } from "effect"
import type { SqlClient, SqlError } from "effect/sql"
import { json, columns as parameters } from "../../platform/postgres/driver/Parameters.ts"
import { nextRevision } from "../../platform/postgres/queries/Revision.ts"
import { concurrentChange } from "../../platform/postgres/queries/Sql.ts"
import { asRow, type Columns } from "./Columns.ts"
import { type Fault, TransferRefused } from "./Lines.ts"
import type { Table } from "./Tables.ts"
import type { Entry } from "./Units.ts"

export const refused = (faults: ReadonlyArray<Fault>) =>
  new TransferRefused({ message: `${faults.length} of the lines cannot be imported.`, faults })

export const keyOf = ({ row, table }: Entry): string => keyText(table, row)
const keyText = ({ key }: Table, row: { readonly [column: string]: unknown }): string =>
  key.map((column) => String(row[column]).replace(/^\\x/, "")).join(" ")

/** Rows of a statement: a license may have very many devices. */
export const statementRows = 1_000

/** Inserts rows of one table; returns the keys of those that were not there. */
export const insertEntries = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  columns: ReadonlyMap<string, Columns>,
  entries: ReadonlyArray<Entry>
) {
  const inserted = new Set<string>()
  for (let first = 0; first < entries.length; first += statementRows) {
    const rows = entries.slice(first, first + statementRows)
    for (const key of yield* insertRows(sql, columns, rows)) inserted.add(key)
  }
  return inserted
})

const insertRows = Effect.fnUntraced(function* (
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
  return found.map((row) => keyText(table, row))
})

export const existingKeys = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, entries: ReadonlyArray<Entry>) {
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

export const faultAt = ({ line, source }: Entry, message: string): Fault => ({
  line,
  message: source === undefined ? message : `${source}: ${message}`
})

export const clash = (entry: Entry): Fault => {
  const { type } = entry.table
  return faultAt(
    entry,
    `${clashes[type] ?? `Another ${type.replaceAll("_", " ")} of this name or id exists`}: remove or change it.`
  )
}

/** What the data of a line is refused for, by the database; undefined if another reason stopped the statement. */
export const dataFault = (error: SqlError.SqlError): string | undefined => {
  const { code = "", column, constraint, message } = (error.reason.cause ?? {}) as Readonly<Record<string, string>>
  if (code === "23503") return `It refers to a record that does not exist (${constraint}): import that record first.`
  if (code === concurrentChange) return "Its customer is being erased: import again when that is done."
  if (code === "23502") return `The field ${column} is missing.`
  return /^2[23]/.test(code) ? `The database refuses it: ${message}.` : undefined
}
