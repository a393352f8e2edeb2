/** Filters by `metadata` in SQL. An index of all keys with their values serves them. */
import type { SqlClient, Statement } from "effect/sql"
import type { MetadataFilter } from "../../../contract/api/Metadata.ts"
import { json } from "../driver/Parameters.ts"

/** The condition for rows whose metadata has these values; undefined without a filter. */
export const metadataMatches = (
  sql: SqlClient.SqlClient,
  column: string,
  filter: MetadataFilter
): Statement.Fragment | undefined => {
  const entries = Object.entries(filter).flatMap(([name, value]) => {
    const key = /^metadata\[(.*)\]$/su.exec(name)?.[1]
    return key === undefined || value === undefined ? [] : [[key, value] as const]
  })
  if (entries.length === 0) return undefined
  const metadata = sql.literal(column)
  const has = (key: string) => (value: string | number | boolean) => sql`${metadata} @> ${json({ [key]: value })}`
  // The index contains only rows with metadata.
  return sql.and([sql`${metadata} <> '{}'`, ...entries.map(([key, value]) => sql.or(valuesOf(value).map(has(key))))])
}

/** A text in a query matches the same text, and the number or boolean with the same notation. */
const valuesOf = (text: string): ReadonlyArray<string | number | boolean> => {
  if (text === "true" || text === "false") return [text, text === "true"]
  return /^-?(0|[1-9]\d{0,14})(\.\d{1,15})?$/.test(text) ? [text, Number(text)] : [text]
}
