/** The columns of the exported tables as this database has them, and their values in lines. */
import { Effect } from "effect"
import type { SqlClient } from "effect/sql"
import { formatTimestamp } from "../../contract/api/Timestamp.ts"
import { columns as parameters } from "../../platform/postgres/driver/Parameters.ts"
import type { Row } from "./Lines.ts"
import { type Table, tableGroups } from "./Tables.ts"

/** The columns of a line, with their PostgreSQL types. */
export type Columns = ReadonlyMap<string, string>

const tables: ReadonlyArray<Table> = tableGroups.flatMap(({ parts, root }) => [root, ...parts])

const byType = new Map(tables.map((table) => [table.type, table]))
export const tableOf = (type: string): Table => byType.get(type)!

export const readColumns = Effect.fnUntraced(function* (sql: SqlClient.SqlClient) {
  const rows = yield* sql<{ readonly table: string; readonly column: string; readonly type: string }>`
    SELECT c.relname AS table, a.attname AS column, format_type(a.atttypid, NULL) AS type
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
    WHERE c.relname = ANY(${parameters.text(tables.map(({ name }) => name))}) AND c.relnamespace = 'public'::regnamespace
      AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
    ORDER BY c.relname, a.attnum`
  const byTable = Map.groupBy(rows, ({ table }) => table)
  return new Map<string, Columns>(
    tables.map(({ name, omitted = [], revision, type }) => [
      type,
      new Map(
        (byTable.get(name) ?? [])
          .filter(({ column }) => column !== revision && !omitted.includes(column))
          .map(({ column, type }) => [column, type])
      )
    ])
  )
})

/** A row of `to_jsonb` as a line has it: without nulls, instants in UTC with milliseconds, bytes as hex. */
export const asLine = (type: string, columns: Columns, row: Row): Row => {
  const line: Record<string, unknown> = { type }
  for (const [column, kind] of columns) {
    const value = row[column]
    if (value !== null && value !== undefined) line[column] = fromJson(kind, value)
  }
  return line
}

const fromJson = (type: string, value: unknown): unknown => {
  if (type === "bytea") return String(value).slice("\\x".length)
  if (type !== "timestamp with time zone") return value
  const millis = Date.parse(String(value))
  return Number.isNaN(millis) ? value : formatTimestamp(millis)
}

/** The same back, for `jsonb_populate_recordset`. */
export const asRow = (columns: Columns, line: Row): Row => {
  const row: Record<string, unknown> = {}
  for (const [column, value] of Object.entries(line)) {
    row[column] = columns.get(column) === "bytea" ? `\\x${value}` : value
  }
  return row
}
