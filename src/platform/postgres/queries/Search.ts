/**
 * Searches a list by a condition that its order does not serve. A sample of the table's pages estimates the share of matching rows.
 * Common matches are found by a scan in the order of the list, rare ones by an index, whose matches must all be read. So PostgreSQL
 * never scans the whole list.
 */
import { Effect } from "effect"
import type { SqlClient, Statement } from "effect/sql"

/** Pages of the table in the sample: about 700 licenses. */
const pagesSampled = 40
/** Matches in the sample that make a condition common. One or two may be chance, and an unsuccessful scan takes 20 ms. */
const matchesMin = 3
/** Rows of the list that are scanned. Each takes 1 µs; a match found by an index takes 5 to 20 µs. */
const scannedMax = 25_000
/** Above this share of matches, counting ten thousand is faster in the order of the list than by the index. */
const commonShare = 0.03

/** A condition on the rows of a table, by the alias that the list uses. */
export interface Match {
  readonly matches: Statement.Fragment
  /** A condition that every match fulfils and that an index serves. */
  readonly indexed: Statement.Fragment
}

/** Rows that match, by the index. The other conditions of a statement stay outside of this subquery. */
export const indexedMatches = (
  sql: SqlClient.SqlClient,
  table: Statement.Fragment,
  { indexed, matches }: Match
): Statement.Fragment => sql`(SELECT * FROM ${table} WHERE ${indexed} AND ${matches} OFFSET 0)`

export interface Sample {
  readonly sampled: number
  /** Sampled rows that match. */
  readonly matching: number
}

/** A sample of rows from anywhere in the table, the same for all requests: a page is not slower by chance. */
export const sampleOf = (sql: SqlClient.SqlClient, name: string, table: Statement.Fragment, { matches }: Match) =>
  Effect.map(
    sql<Sample>`
      SELECT count(*)::int4 AS sampled, (count(*) FILTER (WHERE ${matches}))::int4 AS matching
      FROM ${table} TABLESAMPLE SYSTEM (
        least(100, ${pagesSampled} * 100.0 * current_setting('block_size')::int4 / greatest(pg_relation_size(${name}), 1))
      ) REPEATABLE (0)`,
    ([row]): Sample => row ?? { sampled: 0, matching: 0 }
  )

/** Whether counting matches in the order of the list is faster than by the index. */
export const isCommon = ({ matching, sampled }: Sample): boolean =>
  matching >= matchesMin && matching >= commonShare * sampled

interface Search<Row, E> {
  /** The rows of a page, and one more to find out whether there is a next page. */
  readonly rowsMin: number
  readonly sample: Sample
  /** The matches among this many of the list's first rows. */
  readonly scan: (width: number) => Effect.Effect<ReadonlyArray<Row>, E>
  /** Whether a row comes from the scan. Other rows do not show how far the scan got. */
  readonly isScanned: (row: Row) => boolean
  readonly lookUp: Effect.Effect<ReadonlyArray<Row>, E>
}

/**
 * The rows of a page, by the plan that reads fewer rows according to the sample. A scan that does not fill the page is discarded.
 */
export const search = Effect.fnUntraced(function* <Row, E>({
  isScanned,
  lookUp,
  rowsMin,
  sample: { matching, sampled },
  scan
}: Search<Row, E>) {
  if (matching >= matchesMin && rowsMin * sampled <= scannedMax * matching) {
    const rows = yield* scan(scannedMax)
    if (rows.filter(isScanned).length >= rowsMin) return rows
  }
  return yield* lookUp
})
