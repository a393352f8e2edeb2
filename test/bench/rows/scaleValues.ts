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

const words = (text: string) =>
  `ARRAY[${text
    .split(" ")
    .map((word) => `'${word}'`)
    .join(", ")}]`
const firstNames = words(
  "Ada Ben Carla Dmitri Elena Farid Grace Hugo Ines Jonas Kira Luis Maria Nils Olga Pedro Rosa Sven Tara Uwe"
)
const syllables = words(
  "ber kow man sen lar tin mor vel dan gor hal rit san tur wal zan bel cor del fer gar hol jan kel lin mar nor ost"
)
const domains = words("example.com example.org example.net mail.example.com office.example.org")
/** One of the words, always the same for the same row. */
const pick = (array: string, n: string, salt: number) => `(${array})[${chance(n, salt)} % cardinality(${array}) + 1]`
/** Realistic names: 20 first names, 20,000 last names. */
export const personal = (n: string) => `
  LATERAL (SELECT ${pick(firstNames, n, 11)} AS first_name,
    initcap(${[12, 13, 14].map((salt) => pick(syllables, n, salt)).join(" || ")}) AS last_name) person`
export const address = (n: string) =>
  `lower(first_name || '.' || last_name) || ${n} % 100 || '@' || ${pick(domains, n, 15)}`
