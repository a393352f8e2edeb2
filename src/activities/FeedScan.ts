/**
 * One bounded look into a table of the feed, from a place downwards: as many rows as it is told to look at, by an index, each held
 * against the filter. It says how far down it has seen everything, so that rows of two tables can be merged and a look that found
 * little can be followed by the next.
 */
import type { SqlClient, Statement } from "effect/sql"
import { columns } from "../postgres/Parameters.ts"
import type { SequenceRange } from "./ScanRange.ts"

/** A table whose rows are numbered, and what of them is read. */
export interface Table {
  readonly name: string
  readonly number: string
  readonly columns: string
}

/** Rows that are found by the value of a column. */
export interface KeyLookup {
  readonly column: string
  readonly keys: ReadonlyArray<string>
  /** The condition of a partial index. */
  readonly only?: string
  /**
   * The column has few values, some of them rare. Then numbers alone are read first, which the index on column and number holds: to
   * read whole rows the planner likes to walk the table by number instead, in the hope of a value that may not be there.
   */
  readonly coarse?: boolean
}

/** Which rows are looked at: those of any of the keys, or all, within the stretches. */
export interface ScanTarget {
  readonly by: ReadonlyArray<KeyLookup> | undefined
  readonly stretches: ReadonlyArray<SequenceRange>
  /** Rows that are looked at, in all. */
  readonly rowsMax: number
}

/** What a look has seen: everything down to and with `floor`; 0 where nothing is left below. */
export interface ScanResult<A> {
  readonly rows: ReadonlyArray<A>
  readonly floor: number
}

export const scanFinished: ScanResult<never> = { rows: [], floor: 0 }

/** The parts of the stretches below a number; undefined: all of them. */
export const rangesBelow = (
  stretches: ReadonlyArray<SequenceRange>,
  last: number | undefined
): ReadonlyArray<SequenceRange> =>
  last === undefined
    ? stretches
    : stretches.flatMap(({ from, to }) =>
        from > last ? [] : [{ from, to: to === undefined ? last : Math.min(to, last) }]
      )

/**
 * `candidates (part, …columns)` and `scanned (floor)`, for a WITH. Every part gives at most its share of rows, its newest; below the
 * oldest row of a part that gave as many there may be more, so that far down and no further everything was seen.
 */
export const candidates = (sql: SqlClient.SqlClient, table: Table, { by, rowsMax, stretches }: ScanTarget) => {
  const ways: ReadonlyArray<KeyLookup | undefined> = by ?? [undefined]
  const parts = stretches.flatMap((stretch) => ways.map((keyed) => ({ stretch, keyed })))
  const keys = parts.reduce((sum, { keyed }) => sum + (keyed?.keys.length ?? 1), 0)
  const share = Math.max(1, Math.ceil(rowsMax / Math.max(1, keys)))
  const [number, name, shown] = [sql.literal(table.number), sql.literal(table.name), sql.literal(table.columns)]
  const rows = ({ from, to }: SequenceRange, keyed: KeyLookup | undefined) => sql`
    SELECT ${keyed?.coarse === true ? number : shown} FROM ${name}
    WHERE ${number} >= ${from} AND ${to === undefined ? sql`TRUE` : sql`${number} <= ${to}`}
      AND ${keyed === undefined ? sql`TRUE` : sql`${sql.literal(keyed.column)} = wanted.key`}
      AND ${sql.literal(keyed?.only ?? "TRUE")}
    ORDER BY ${number} DESC LIMIT ${share}`
  const found = (stretch: SequenceRange, keyed: KeyLookup) =>
    keyed.coarse === true
      ? sql`
        CROSS JOIN LATERAL (${rows(stretch, keyed)}) AS numbers (number)
        CROSS JOIN LATERAL (SELECT ${shown} FROM ${name} WHERE ${number} = numbers.number LIMIT 1) AS found`
      : sql`CROSS JOIN LATERAL (${rows(stretch, keyed)}) AS found`
  const selects = parts.map(({ keyed, stretch }, index) =>
    keyed === undefined
      ? sql`(SELECT ${String(index)}::text AS part, found.* FROM (${rows(stretch, undefined)}) AS found)`
      : sql`
        (SELECT ${String(index)}::text || wanted.key AS part, found.* FROM unnest(${columns.text(keyed.keys)}::text[]) AS wanted (key)
          ${found(stretch, keyed)})`
  )
  return sql`
    candidates AS MATERIALIZED (${union(sql, selects)}),
    scanned AS (
      SELECT max(lowest) AS floor
      FROM (SELECT min(${number}) AS lowest, count(*) AS given FROM candidates GROUP BY part) AS parts WHERE given >= ${share}
    )`
}

const union = (sql: SqlClient.SqlClient, [first, ...others]: ReadonlyArray<Statement.Fragment>): Statement.Fragment =>
  others.reduce((all, one) => sql`${all} UNION ALL ${one}`, first!)

/** Rows as a look gives them: each with the floor, and where there is none, one that holds the floor alone. */
interface Found {
  readonly floor: number | null
  readonly sequence: number | null
}

/** Of as many rows as were asked for, what lies below the last one was not seen. */
export const scanResultOf = <A extends Found>(
  found: ReadonlyArray<A>,
  limit: number
): ScanResult<A & { readonly sequence: number }> => {
  const rows = found.filter((row): row is A & { readonly sequence: number } => row.sequence !== null)
  return { rows, floor: rows.length < limit ? (found[0]?.floor ?? 0) : rows.at(-1)!.sequence }
}
