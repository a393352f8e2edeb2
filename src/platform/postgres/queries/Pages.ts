/** Keyset pages in SQL: position, order, filters by creation time, and the total. */
import { Effect } from "effect"
import type { SqlClient, SqlError, Statement } from "effect/sql"
import {
  fieldOf,
  type Keyset,
  type ListRequest,
  limitDefault,
  newestFirst,
  type Page,
  pageOf,
  type Sorts,
  type Total,
  totalMax
} from "../../../contract/api/Paging.ts"
import { columns as arrays, instant } from "../driver/Parameters.ts"
import { indexedMatches, isCommon, type Match, sampleOf, search } from "./Search.ts"

/** The instant of a cursor. Rows without one come last. */
const instantOf = (sql: SqlClient.SqlClient, { value }: Keyset) =>
  value === "infinity" ? sql.literal("'infinity'::timestamptz") : sql`${instant(Number(value))}`

interface Sorted {
  /** The condition for rows after the cursor. */
  readonly isAfter: Statement.Fragment
  readonly order: Statement.Fragment
}

/** The order of a list, and the position of a request's page. `column` writes fields that are not columns. */
export const sortedBy = (
  sql: SqlClient.SqlClient,
  { cursor, sort = newestFirst }: ListRequest,
  sorts: Sorts,
  column: (field: string) => string = (field) => field
): Sorted => {
  const field = fieldOf(sort)
  const [by, id] = [sql.literal(column(field)), sql.literal(column("id"))]
  const descending = sort.startsWith("-")
  const direction = sql.literal(descending ? "DESC" : "ASC")
  const order = sql`ORDER BY ${by} ${direction}, ${id} ${direction}`
  if (cursor === undefined) return { isAfter: sql`TRUE`, order }
  const value = sorts[field] === "instant" ? instantOf(sql, cursor) : sql`${cursor.value}`
  return { isAfter: sql`(${by}, ${id}) ${sql.literal(descending ? "<" : ">")} (${value}, ${cursor.id})`, order }
}

/** The filters by the time of creation. */
export const createdWithin = (
  sql: SqlClient.SqlClient,
  { created_after, created_before }: ListRequest,
  column = "created_at"
): Statement.Fragment =>
  sql.and([
    created_after === undefined ? sql`TRUE` : sql`${sql.literal(column)} > ${instant(created_after)}`,
    created_before === undefined ? sql`TRUE` : sql`${sql.literal(column)} < ${instant(created_before)}`
  ])

/** A part of a list: few rows by their ids, or the rows with a condition that no index serves. */
export type Part = { readonly ids: ReadonlyArray<string> } | { readonly condition: (row: string) => Statement.Fragment }

export interface List<A, E> {
  readonly columns: Statement.Fragment
  /** The table's name. */
  readonly table: string
  /** The conditions of the list and its filters. */
  readonly where: Statement.Fragment
  /** A filter that is searched. */
  readonly match?: Match | undefined
  /** The part of the table that is listed; undefined: all of it. */
  readonly part?: Part | undefined
  readonly sorts: Sorts
  readonly decode: (rows: Effect.Effect<ReadonlyArray<object>, SqlError.SqlError>) => Effect.Effect<ReadonlyArray<A>, E>
}

/** A page of a list, with the total if the request asks for it. */
export const readPage = Effect.fnUntraced(function* <A extends { readonly id: string; readonly created_at: number }, E>(
  sql: SqlClient.SqlClient,
  request: ListRequest,
  list: List<A, E>
) {
  if (list.part !== undefined) return yield* readPart(sql, request, list, list.part)
  const { columns, decode, match, sorts, table, where } = list
  const from = sql.literal(table)
  const { limit = limitDefault, sort } = request
  const { isAfter, order } = sortedBy(sql, request, sorts)
  const matching = sql`${where} AND ${createdWithin(sql, request)}`
  const fits = sql`${matching} AND ${isAfter}`
  const read = (part: Statement.Fragment, condition: Statement.Fragment) =>
    decode(sql`SELECT ${columns} FROM ${part} WHERE ${condition} ${order} LIMIT ${limit + 1}`)
  const counted = (rows: ReadonlyArray<A>, part: Statement.Fragment, condition: Statement.Fragment) =>
    withTotal(sql, request, pageOf(rows, limit, sort), sql`SELECT FROM ${part} WHERE ${condition}`)
  if (match === undefined) return yield* counted(yield* read(from, fits), from, matching)
  const sample = yield* sampleOf(sql, table, from, match)
  const found = sql`${indexedMatches(sql, from, match)} AS found`
  const first = (width: number) => sql`(SELECT * FROM ${from} WHERE ${fits} ${order} LIMIT ${width}) AS first`
  const rows = yield* search({
    rowsMin: limit + 1,
    sample,
    isScanned: () => true,
    scan: (width) => read(first(width), match.matches),
    lookUp: read(found, fits)
  })
  return yield* isCommon(sample)
    ? counted(rows, from, sql`${matching} AND ${match.matches}`)
    : counted(rows, found, matching)
})

const withTotal = Effect.fnUntraced(function* <A>(
  sql: SqlClient.SqlClient,
  { include_total }: ListRequest,
  page: Page<A>,
  counted: Statement.Fragment
) {
  return include_total === "true" ? { ...page, ...(yield* totalOf(sql, [counted])) } : page
})

/** Rows that are read for a page of rows with a condition. Reading them takes a few milliseconds. */
const windowRows = 1_000

/** A page of a part of a list. */
const readPart = Effect.fnUntraced(function* <A extends { readonly id: string; readonly created_at: number }, E>(
  sql: SqlClient.SqlClient,
  request: ListRequest,
  { columns, decode, match, sorts, table, where }: List<A, E>,
  part: Part
) {
  const from = sql.literal(table)
  const { limit = limitDefault, sort } = request
  const { isAfter, order } = sortedBy(sql, request, sorts)
  const matching = sql`${where} AND ${createdWithin(sql, request)}`
  const isMatch = match === undefined ? sql`TRUE` : match.matches
  const readAll = Effect.fnUntraced(function* (rows: Statement.Fragment, condition: Statement.Fragment) {
    const found = sql`SELECT ${columns} FROM ${rows} WHERE ${condition} AND ${isAfter} ${order} LIMIT ${limit + 1}`
    const page = pageOf(yield* decode(found), limit, sort)
    return yield* withTotal(sql, request, page, sql`SELECT FROM ${rows} WHERE ${condition}`)
  })
  if ("ids" in part) {
    const few = sql`(SELECT * FROM ${from} WHERE id = ANY(${arrays.text(part.ids)}::text[]) OFFSET 0) AS few`
    return yield* readAll(few, sql`${matching} AND ${isMatch}`)
  }
  // The cursor of a window may be a row that is not listed, and must not reveal its name or code.
  if (!fieldOf(sort ?? newestFirst).endsWith("_at"))
    return yield* readAll(from, sql`${matching} AND ${isMatch} AND ${part.condition(table)}`)
  if (match !== undefined && !isCommon(yield* sampleOf(sql, table, from, match))) {
    const rows = sql`${indexedMatches(sql, from, match)} AS found`
    return yield* readAll(rows, sql`${matching} AND ${part.condition("found")}`)
  }
  const rows = yield* sql<{ readonly is_listed: boolean }>`
    SELECT ${columns}, ${isMatch} AND ${part.condition("first")} AS is_listed
    FROM (SELECT * FROM ${from} WHERE ${matching} AND ${isAfter} ${order} LIMIT ${windowRows}) AS first ${order}`
  const records = yield* decode(Effect.succeed(rows))
  return pageOfWindow(records, (index) => rows[index]!.is_listed, { limit, sort, width: windowRows })
})

interface Window {
  readonly limit: number
  readonly sort?: string | undefined
  /** The maximum number of rows that were read. */
  readonly width: number
}

/**
 * Makes a page from the first rows of a list, of which only some are listed. The next page begins after the last row that was
 * returned or read, so a page may have fewer rows than the limit, or none, although others follow. It has no total.
 */
export const pageOfWindow = <A extends { readonly id: string }>(
  rows: ReadonlyArray<A>,
  isListed: (index: number) => boolean,
  { limit, sort = newestFirst, width }: Window
): Page<A> => {
  const listed = rows.filter((_, index) => isListed(index))
  const items = listed.slice(0, limit)
  const last = listed.length > limit ? items.at(-1) : rows.length === width ? rows.at(-1) : undefined
  if (last === undefined) return { items }
  const value = String((last as { readonly [field: string]: unknown })[fieldOf(sort)])
  return { items, next: { sort, value, id: last.id } }
}

/** The total number of rows of some statements. At most one row beyond the maximum total is read. */
export const totalOf = (sql: SqlClient.SqlClient, statements: ReadonlyArray<Statement.Fragment>) => {
  const rows = sql.join(" UNION ALL ", false)(statements.map((each) => sql`(${each} LIMIT ${totalMax + 1})`))
  return Effect.map(
    sql<{ readonly found: number }>`SELECT count(*)::int4 AS found FROM (${rows}) AS matching`,
    ([row]): Total => {
      const found = row?.found ?? 0
      return { total: Math.min(found, totalMax), total_is_capped: found > totalMax }
    }
  )
}
