/**
 * One bounded scan of a table of the feed, from a position downwards: it reads a limited number of rows by an index and checks
 * each against the filter. The result contains the position down to which it is complete, so the rows of two tables can be
 * merged, and a next scan can continue there.
 */
import type { SqlClient } from "effect/sql"
import { columns } from "../../platform/postgres/driver/Parameters.ts"
import { unionAll } from "../../platform/postgres/queries/Sql.ts"
import type { SequenceRange } from "./ScanRange.ts"

export interface Table {
  readonly name: string
  readonly sequenceColumn: string
  readonly columns: string
  /** The row with a number, as a table expression. */
  readonly rowWith: (number: string) => string
}

export interface KeyLookup {
  readonly column: string
  readonly keys: ReadonlyArray<string>
  /** The condition of a partial index. */
  readonly condition?: string
  /**
   * The column has few values, some of them rare. The scan then reads the sequence numbers first, from the index on column and
   * number. To read whole rows, the planner would scan the table by number, for a value that may not exist.
   */
  readonly fewValues?: boolean
}

/** The rows that a scan reads: those of any lookup, or all, within the ranges. */
export interface ScanTarget {
  readonly lookups: ReadonlyArray<KeyLookup> | undefined
  readonly ranges: ReadonlyArray<SequenceRange>
  readonly rowsMax: number
}

/** The scan is complete down to `floor` (inclusive); 0: no rows are left below. */
export interface ScanResult<A> {
  readonly rows: ReadonlyArray<A>
  readonly floor: number
}

export const scanFinished: ScanResult<never> = { rows: [], floor: 0 }

export const rangesBelow = (
  ranges: ReadonlyArray<SequenceRange>,
  last: number | undefined
): ReadonlyArray<SequenceRange> =>
  last === undefined
    ? ranges
    : ranges.flatMap(({ from, to }) =>
        from > last ? [] : [{ from, to: to === undefined ? last : Math.min(to, last) }]
      )

/**
 * `candidates (part, …columns)` and `scanned (floor)`, for a WITH clause. Each part returns at most its share of rows, the newest.
 * A part that returns a full share may have more rows below its oldest one, so the scan is complete only down to there.
 */
export const candidates = (sql: SqlClient.SqlClient, table: Table, { lookups, ranges, rowsMax }: ScanTarget) => {
  const alternatives: ReadonlyArray<KeyLookup | undefined> = lookups ?? [undefined]
  const parts = ranges.flatMap((range) => alternatives.map((lookup) => ({ range, lookup })))
  const keys = parts.reduce((sum, { lookup }) => sum + (lookup?.keys.length ?? 1), 0)
  const share = Math.max(1, Math.ceil(rowsMax / Math.max(1, keys)))
  const [number, name, selected] = [
    sql.literal(table.sequenceColumn),
    sql.literal(table.name),
    sql.literal(table.columns)
  ]
  const rows = ({ from, to }: SequenceRange, lookup: KeyLookup | undefined) => sql`
    SELECT ${lookup?.fewValues === true ? number : selected} FROM ${name}
    WHERE ${number} >= ${from} AND ${to === undefined ? sql`TRUE` : sql`${number} <= ${to}`}
      AND ${lookup === undefined ? sql`TRUE` : sql`${sql.literal(lookup.column)} = wanted.key`}
      AND ${sql.literal(lookup?.condition ?? "TRUE")}
    ORDER BY ${number} DESC LIMIT ${share}`
  const matches = (range: SequenceRange, lookup: KeyLookup) =>
    lookup.fewValues === true
      ? sql`
        CROSS JOIN LATERAL (${rows(range, lookup)}) AS numbers (number)
        CROSS JOIN LATERAL (SELECT ${selected} FROM ${sql.literal(table.rowWith("numbers.number"))} LIMIT 1) AS matching`
      : sql`CROSS JOIN LATERAL (${rows(range, lookup)}) AS matching`
  const selects = parts.map(({ lookup, range }, index) =>
    lookup === undefined
      ? sql`(SELECT ${String(index)}::text AS part, matching.* FROM (${rows(range, undefined)}) AS matching)`
      : sql`
        (SELECT ${String(index)}::text || wanted.key AS part, matching.*
          FROM unnest(${columns.text(lookup.keys)}::text[]) AS wanted (key) ${matches(range, lookup)})`
  )
  return sql`
    candidates AS MATERIALIZED (${unionAll(sql, selects)}),
    scanned AS (
      SELECT max(lowest) AS floor
      FROM (SELECT min(${number}) AS lowest, count(*) AS returned FROM candidates GROUP BY part) AS parts
      WHERE returned >= ${share}
    )`
}

/** Every row has the floor. If no row matches, there is one row with only the floor. */
export interface ScannedRow {
  readonly floor: number | null
  readonly sequence: number | null
}

/** A scan that reached its limit is complete only down to its last row. */
export const scanResultOf = <A extends ScannedRow>(scanned: ReadonlyArray<A>, limit: number): ScanResult<A> => {
  const rows = scanned.filter(({ sequence }) => sequence !== null)
  return { rows, floor: rows.length < limit ? (scanned[0]?.floor ?? 0) : rows.at(-1)!.sequence! }
}
