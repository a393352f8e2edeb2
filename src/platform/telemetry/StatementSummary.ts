/** A short name for a statement: its operations and tables, as OpenTelemetry's `db.query.summary`. */

export interface StatementSummary {
  readonly text: string
  /** Of a statement with one operation on one table. */
  readonly operation?: string
  readonly table?: string
}

const lengthMax = 255
// The service has a few hundred statements. Lists have more, because they combine filters.
const cachedMax = 1_000

const subqueryNames = /(\w+)(?:\s*\([^()]*\))?\s+AS\s+(?:MATERIALIZED\s+)?\(/g
const operations =
  /\b(?:(INSERT INTO|DELETE FROM|(?<!FOR |KEY |DO )UPDATE)\s+(\w+)|(?:(?<!DISTINCT )FROM|JOIN)\s+(?!LATERAL\b)(\w+)\b(?!\())/g
const verbs: Readonly<Record<string, string>> = { "INSERT INTO": "INSERT", "DELETE FROM": "DELETE" }

const summarize = (sql: string): StatementSummary => {
  const ownNames = new Set(Array.from(sql.matchAll(subqueryNames), ([, name]) => name))
  const parts = new Map<string, readonly [string, string]>()
  for (const [, write, target, source] of sql.matchAll(operations)) {
    const table = target ?? source!
    if (ownNames.has(table)) continue
    const operation = write === undefined ? "SELECT" : (verbs[write] ?? write)
    parts.set(`${operation} ${table}`, [operation, table])
  }
  const [only, ...others] = parts.values()
  if (only === undefined) {
    const operation = /^\s*(\w+)/.exec(sql)?.[1] ?? "SQL"
    return { text: operation, operation }
  }
  const text = [...parts.keys()].join(" ").slice(0, lengthMax)
  return others.length > 0 ? { text } : { text, operation: only[0], table: only[1] }
}

const summaries = new Map<string, StatementSummary>()

export const summaryOf = (sql: string): StatementSummary => {
  const known = summaries.get(sql)
  if (known !== undefined) return known
  const summary = summarize(sql)
  if (summaries.size >= cachedMax) summaries.clear()
  summaries.set(sql, summary)
  return summary
}
