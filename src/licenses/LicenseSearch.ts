/**
 * How a part of a name or address is looked for among licenses, newest first. Many licenses hold "an", one holds "bartholomew",
 * and no statistics know which: the newest are looked through for as long as that is likely to fill the page, and what is rarer
 * is found by the index of grams, which has to read every license that it finds. So neither common nor rare parts, nor parts
 * that nobody has, make PostgreSQL go through the whole list.
 */
import { Effect } from "effect"
import type { SqlClient, Statement } from "effect/sql"

/** How many of the newest are looked through, one after the other: 1 µs each, where a license that the index finds costs 5 to 20. */
const widths = [1_000, 5_000, 25_000] as const
const widthMax = 25_000

/** Whether the names of a license `l` hold the part. */
export const holds = (sql: SqlClient.SqlClient, part: string) =>
  sql`strpos(search_text(l.customer_name, l.customer_email), lower(${part})) > 0`

/** Licenses whose names hold the part, by the index of grams: the rest of a statement's conditions stays outside of it. */
export const found = (sql: SqlClient.SqlClient, part: string): Statement.Fragment => sql`
  (SELECT * FROM licenses l
   WHERE search_grams(search_text(l.customer_name, l.customer_email)) @@ search_query(lower(${part})) AND ${holds(sql, part)}
   OFFSET 0)`

interface Search<Row, E> {
  /** Rows that a page needs to be full and to know whether there is another one. */
  readonly wanted: number
  /** Those among so many of the newest. */
  readonly walk: (width: number) => Effect.Effect<ReadonlyArray<Row>, E>
  /** Whether a row is one that was walked to: others say nothing of how common the part is. */
  readonly walkedTo: (row: Row) => boolean
  readonly lookUp: Effect.Effect<ReadonlyArray<Row>, E>
}

/** The rows of a page by the way that reads less, as far as what is known tells. */
export const search = Effect.fnUntraced(function* <Row, E>({ lookUp, walk, walkedTo, wanted }: Search<Row, E>) {
  for (const width of widths) {
    const rows = yield* walk(width)
    const walked = rows.filter(walkedTo).length
    if (walked >= wanted) return rows
    if (walked * widthMax < wanted * width) break
  }
  return yield* lookUp
})
