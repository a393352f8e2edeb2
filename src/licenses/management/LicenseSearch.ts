/**
 * Searches licenses by a part of a name or address, newest first. Many licenses match "an", one matches "bartholomew",
 * so a sample of pages of the whole table estimates how common the part is. A common part is found by scanning the list
 * in its order, a rare one by the index of grams (groups of four characters), whose matches must all be read. So
 * PostgreSQL never scans the whole list, whether the part is common, rare or absent.
 */
import { Effect } from "effect"
import type { SqlClient, Statement } from "effect/sql"

/** Pages of the table in the sample: about 700 licenses. */
const pagesSampled = 40
/** Matches in the sample that make a part common: one or two may be chance, and an unsuccessful scan takes 20 ms. */
const matchesMin = 3
/** Licenses of the list that are scanned: 1 µs for each, while a match found by the index takes 5 to 20 µs. */
const scannedMax = 25_000

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
  readonly sampled: number
  /** Sampled licenses that match. */
  readonly matching: number
}

/** A sample of licenses from anywhere in the table. */
export const sample = (sql: SqlClient.SqlClient, part: string) => sql<Sample>`
  SELECT count(*)::int4 AS sampled, (count(*) FILTER (WHERE ${matchesPart(sql, part)}))::int4 AS matching
  FROM licenses l TABLESAMPLE SYSTEM (
    least(100, ${pagesSampled} * 100.0 * current_setting('block_size')::int4 / greatest(pg_relation_size('licenses'), 1))
  )`

interface Search<Row, E> {
  /** The rows of a page, and one more to find out whether there is a next page. */
  readonly rowsMin: number
  readonly sample: Effect.Effect<Sample, E>
  /** The matches among this many of the newest licenses. */
  readonly scan: (width: number) => Effect.Effect<ReadonlyArray<Row>, E>
  /** Whether a row comes from the scan. Other rows do not show how far the scan got. */
  readonly isScanned: (row: Row) => boolean
  readonly lookUp: Effect.Effect<ReadonlyArray<Row>, E>
}

/**
 * The rows of a page, by the plan that reads less according to the sample. A scan that does not fill the page is
 * discarded.
 */
export const search = Effect.fnUntraced(function* <Row, E>({
  lookUp,
  sample,
  scan,
  isScanned,
  rowsMin
}: Search<Row, E>) {
  const { matching, sampled } = yield* sample
  if (matching >= matchesMin && rowsMin * sampled <= scannedMax * matching) {
    const rows = yield* scan(scannedMax)
    if (rows.filter(isScanned).length >= rowsMin) return rows
  }
  return yield* lookUp
})
