/**
 * How a part of a name or address is looked for among licenses, newest first. Many licenses hold "an", one holds "bartholomew",
 * so a few pages from all over the table tell how common the part is: what is common is come upon by walking the list, what is
 * rare is found by the index of grams, which has to read every license that it finds. So neither common nor rare parts, nor
 * parts that nobody has, make PostgreSQL go through the whole list.
 */
import { Effect } from "effect"
import type { SqlClient, Statement } from "effect/sql"

/** Pages of the table that are looked at first: about 700 licenses. */
const pagesSampled = 40
/** So many of them must hold a part that is common: one or two may be met by chance, and a walk in vain takes 20 ms. */
const holdingMin = 3
/** How far the list is walked: 1 µs for each license, where one that the index finds costs 5 to 20. */
const walkedMax = 25_000

/** Whether the names of a license `l` hold the part. */
export const matchesPart = (sql: SqlClient.SqlClient, part: string) =>
  sql`strpos(search_text(l.customer_name, l.customer_email), lower(${part})) > 0`

/** Licenses whose names hold the part, by the index of grams: the rest of a statement's conditions stays outside of it. */
export const indexedMatches = (sql: SqlClient.SqlClient, part: string): Statement.Fragment => sql`
  (SELECT * FROM licenses l
   WHERE search_grams(search_text(l.customer_name, l.customer_email)) @@ search_query(lower(${part})) AND ${matchesPart(sql, part)}
   OFFSET 0)`

export interface Sample {
  readonly seen: number
  /** Those of them whose names hold the part. */
  readonly holding: number
}

/** Some licenses, wherever they lie. */
export const sample = (sql: SqlClient.SqlClient, part: string) => sql<Sample>`
  SELECT count(*)::int4 AS seen, (count(*) FILTER (WHERE ${matchesPart(sql, part)}))::int4 AS holding
  FROM licenses l TABLESAMPLE SYSTEM (
    least(100, ${pagesSampled} * 100.0 * current_setting('block_size')::int4 / greatest(pg_relation_size('licenses'), 1))
  )`

interface Search<Row, E> {
  /** Rows that a page needs to be full and to know whether there is another one. */
  readonly wanted: number
  readonly sample: Effect.Effect<Sample, E>
  /** Those among so many of the newest. */
  readonly walk: (width: number) => Effect.Effect<ReadonlyArray<Row>, E>
  /** Whether a row is one that was walked to: of others there may be more behind the walk's end. */
  readonly walkedTo: (row: Row) => boolean
  readonly lookUp: Effect.Effect<ReadonlyArray<Row>, E>
}

/** The rows of a page by the way that reads less, as far as the sample tells; a walk that does not fill the page is no answer. */
export const search = Effect.fnUntraced(function* <Row, E>({ lookUp, sample, walk, walkedTo, wanted }: Search<Row, E>) {
  const { holding, seen } = yield* sample
  if (holding >= holdingMin && wanted * seen <= walkedMax * holding) {
    const rows = yield* walk(walkedMax)
    if (rows.filter(walkedTo).length >= wanted) return rows
  }
  return yield* lookUp
})
