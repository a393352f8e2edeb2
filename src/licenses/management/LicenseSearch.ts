/**
 * Searches licenses by a part of a name or address, newest first. Many licenses match "an", one matches "bartholomew",
 * so a sample of pages from the whole table estimates how common the part is. A common part is found by scanning the
 * list in order; a rare one by the index of grams, which has to read every license that it finds. So PostgreSQL never
 * scans the whole list, whether the part is common, rare or absent.
 */
import { Effect } from "effect"
import type { SqlClient, Statement } from "effect/sql"

/** Pages of the table in the sample: about 700 licenses. */
const pagesSampled = 40
/** Matches in the sample that make a part common: one or two may be chance, and a scan in vain takes 20 ms. */
const holdingMin = 3
/** How many licenses of the list are scanned: 1 µs for each, where one that the index finds costs 5 to 20 µs. */
const walkedMax = 25_000

/** Whether a name or address of a license `l` contains the part. */
export const matchesPart = (sql: SqlClient.SqlClient, part: string) =>
  sql`strpos(search_text(l.customer_name, l.customer_email), lower(${part})) > 0`

/**
 * Licenses that contain the part, by the index of grams. The other conditions of a statement stay outside of this
 * subquery.
 */
export const indexedMatches = (sql: SqlClient.SqlClient, part: string): Statement.Fragment => sql`
  (SELECT * FROM licenses l
   WHERE search_grams(search_text(l.customer_name, l.customer_email)) @@ search_query(lower(${part})) AND ${matchesPart(sql, part)}
   OFFSET 0)`

export interface Sample {
  readonly seen: number
  /** Sampled licenses that match. */
  readonly holding: number
}

/** A sample of licenses from anywhere in the table. */
export const sample = (sql: SqlClient.SqlClient, part: string) => sql<Sample>`
  SELECT count(*)::int4 AS seen, (count(*) FILTER (WHERE ${matchesPart(sql, part)}))::int4 AS holding
  FROM licenses l TABLESAMPLE SYSTEM (
    least(100, ${pagesSampled} * 100.0 * current_setting('block_size')::int4 / greatest(pg_relation_size('licenses'), 1))
  )`

interface Search<Row, E> {
  /** The rows that fill a page, and one more that tells whether there is another page. */
  readonly wanted: number
  readonly sample: Effect.Effect<Sample, E>
  /** The matches among this many of the newest licenses. */
  readonly walk: (width: number) => Effect.Effect<ReadonlyArray<Row>, E>
  /** Whether a row comes from the scan. Rows from elsewhere say nothing about how far the scan got. */
  readonly walkedTo: (row: Row) => boolean
  readonly lookUp: Effect.Effect<ReadonlyArray<Row>, E>
}

/**
 * The rows of a page, by the plan that reads less according to the sample. A scan that does not fill the page is
 * discarded.
 */
export const search = Effect.fnUntraced(function* <Row, E>({ lookUp, sample, walk, walkedTo, wanted }: Search<Row, E>) {
  const { holding, seen } = yield* sample
  if (holding >= holdingMin && wanted * seen <= walkedMax * holding) {
    const rows = yield* walk(walkedMax)
    if (rows.filter(walkedTo).length >= wanted) return rows
  }
  return yield* lookUp
})
