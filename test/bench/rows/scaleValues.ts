/** Values of rows that are written by the million, as SQL: always the same for the same row. */

/** The statements that fill a table. */
export type Statement = readonly [table: string, statement: string]

/** The id of the n-th row of a kind. */
export const id = (prefix: string, n: string) => `'${prefix}_' || upper(lpad(to_hex(${n}), 26, '0'))`
/** A pseudo-random number from 0 to 2^31 - 1, always the same for the same row. */
export const chance = (n: string, salt: number) => `(hashint8extended(${n}, ${salt}) & 2147483647)`
/** The service writes whole milliseconds, and cursors contain no finer times. */
export const instant = (time: string) => `date_trunc('milliseconds', ${time})`
/** Rows are spread over the last two years, the newest with the highest number. */
export const created = (n: string, count: number) =>
  instant(`now() - (${count} - ${n}) * (interval '2 years' / ${count + 1})`)
