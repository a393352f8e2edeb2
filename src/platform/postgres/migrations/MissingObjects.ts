/**
 * What a migrated database lacks of schema/schema.sql. Somebody may have dropped a table or an index by hand, or restored a part
 * of a backup: the migrations count as applied, and only the requests that need the object fail.
 */
import { fileURLToPath } from "node:url"
import { Effect, FileSystem } from "effect"
import type { ServerSession } from "../driver/Postgres.ts"

const schemaFile = fileURLToPath(new URL("../../../../schema/schema.sql", import.meta.url))

/** Such as "table webhook_deliveries" and "column licenses.status", in the order of the text; invalid indexes count as missing. */
export const missingObjects = Effect.fnUntraced(function* (session: Pick<ServerSession, "values">) {
  const files = yield* FileSystem.FileSystem
  const wanted = objectsOf(yield* files.readFileString(schemaFile))
  const present = new Set((yield* session.values(presentQuery)).map(([name]) => name))
  const missing = wanted.filter((name) => !present.has(name))
  // The columns of a missing table go without saying.
  return missing.filter((name) => !missing.includes(`table ${/^column (\w+)\./.exec(name)?.[1]}`))
})

const statement =
  /^(?:CREATE (?:UNIQUE )?(TABLE|INDEX|VIEW|FUNCTION|TRIGGER)) (\w+)|^ {2}CONSTRAINT (\w+)|^ {2}"?(\w+)"? /

/** The names in the text, whose tables have one line for each column and constraint. */
const objectsOf = (text: string): ReadonlyArray<string> => {
  const names: Array<string> = []
  let table: string | undefined
  for (const line of text.split(/\r?\n/)) {
    const [, kind, name, constraint, column] = statement.exec(line) ?? []
    if (kind !== undefined) names.push(`${kind.toLowerCase()} ${name}`)
    if (kind === "TABLE") table = name
    else if (line.startsWith(")")) table = undefined
    else if (table !== undefined && constraint !== undefined) names.push(`constraint ${constraint}`)
    else if (table !== undefined && column !== undefined) names.push(`column ${table}.${column}`)
  }
  return names
}

const presentQuery = `
  SELECT CASE relkind WHEN 'v' THEN 'view ' WHEN 'i' THEN 'index ' WHEN 'I' THEN 'index ' ELSE 'table ' END || relname FROM pg_class
    WHERE relnamespace = 'public'::regnamespace
      AND NOT EXISTS (SELECT FROM pg_index entry WHERE entry.indexrelid = pg_class.oid AND NOT entry.indisvalid)
  UNION ALL SELECT 'column ' || relname || '.' || attname FROM pg_attribute JOIN pg_class class ON class.oid = attrelid
    WHERE relnamespace = 'public'::regnamespace AND attnum > 0 AND NOT attisdropped
  UNION ALL SELECT 'constraint ' || conname FROM pg_constraint WHERE connamespace = 'public'::regnamespace
  UNION ALL SELECT 'function ' || proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace
  UNION ALL SELECT 'trigger ' || tgname FROM pg_trigger WHERE NOT tgisinternal AND tgenabled <> 'D'`
