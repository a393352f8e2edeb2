/**
 * Lists: newest first or in another sort, split into pages by an opaque keyset cursor over the sort's field and the id, so that a
 * client that reads all pages gets every row exactly once while rows are inserted. `limit` defaults to 50; above 200 it is clamped, below 1 refused.
 */
import { Effect, Result, Schema, SchemaGetter, SchemaIssue } from "effect"
import * as Base64Url from "effect/encoding/Base64Url"
import { publishedAs } from "./Text.ts"
import { Timestamp } from "./Timestamp.ts"

/** Rows per page if the request has no limit. */
export const limitDefault = 50
/** The largest page: larger limits are clamped (docs/API.md, "Lists"). */
export const limitMax = 200

const fault = (message: string) => Effect.fail(new SchemaIssue.InvalidValue({ message }))

/** The `limit` query parameter. */
export const Limit = Schema.String.annotate({
  format: "integer",
  description: "Rows in a page: 1 to 200, 50 unless given; larger values are clamped."
}).pipe(
  Schema.decodeTo(Schema.Number, {
    decode: SchemaGetter.transformEffect((text: string) =>
      /^\d+$/.test(text) && Number(text) >= 1
        ? Effect.succeed(Math.min(Number(text), limitMax))
        : fault("Expected an integer of at least 1")
    ),
    encode: SchemaGetter.transform(String)
  })
)

/** The fields that a list can be sorted by, each with its type. Each has an index. */
export interface Sorts {
  readonly created_at: "instant"
  readonly [field: string]: "instant" | "text"
}

/** A field of a list, descending after a minus sign. */
export type SortOf<S extends Sorts> = `${"" | "-"}${keyof S & string}`

/** The sort of a list without `sort`. */
export const newestFirst = "-created_at"

/** A position in a list: the row after which the next page begins. */
export interface Keyset {
  readonly sort: string
  /** The row's value of the sort field: text, or an instant in milliseconds, or `infinity` for a row without one. */
  readonly value: string
  readonly id: string
}

const encodeKeyset = ({ id, sort, value }: Keyset): string =>
  Base64Url.encode(sort === newestFirst ? `${value}.${id}` : `${sort} ${id} ${value}`)

export const keysetOf = (text: string): Keyset | undefined => {
  const plain = Result.getOrElse(Base64Url.decodeString(text), () => "")
  const newest = /^(\d{1,15})\.([A-Za-z0-9_-]{1,64})$/.exec(plain)
  if (newest !== null) return { sort: newestFirst, value: newest[1]!, id: newest[2]! }
  const sorted = /^(-?[a-z_]{1,64}) ([A-Za-z0-9_-]{1,64}) ([^\0]{0,1000})$/su.exec(plain)
  return sorted === null || sorted[1] === newestFirst
    ? undefined
    : { sort: sorted[1]!, id: sorted[2]!, value: sorted[3]! }
}

/** The `cursor` query parameter of keyset lists. */
const cursorOf = (isTaken: (keyset: Keyset) => boolean) =>
  Schema.String.annotate({ description: "The next_cursor of the page before." })
    .check(publishedAs({ minLength: 1 }))
    .pipe(
      Schema.decodeTo(
        Schema.declare((value): value is Keyset => typeof value === "object" && value !== null),
        {
          decode: SchemaGetter.transformEffect((text: string) => {
            const keyset = keysetOf(text)
            return keyset === undefined || !isTaken(keyset)
              ? fault("Expected the next_cursor of an earlier response")
              : Effect.succeed(keyset)
          }),
          encode: SchemaGetter.transform(encodeKeyset)
        }
      )
    )

/** The `cursor` query parameter of sequence lists: rows with lower sequence numbers follow (docs/API.md, "Lists"). */
export const SequenceCursor = Schema.String.annotate({
  format: "int64",
  description: "A sequence number of at least 1; lower ones are returned."
})
  .check(publishedAs({ maximum: Number.MAX_SAFE_INTEGER }))
  .pipe(
    Schema.decodeTo(Schema.Number, {
      decode: SchemaGetter.transformEffect((text: string) =>
        /^\d{1,16}$/.test(text) && Number(text) >= 1 && Number.isSafeInteger(Number(text))
          ? Effect.succeed(Number(text))
          : fault(`Expected an integer from 1 to ${Number.MAX_SAFE_INTEGER}`)
      ),
      encode: SchemaGetter.transform(String)
    })
  )

/** Query parameters of lists of a few rows. */
export const pageQuery = {
  limit: Schema.optionalKey(Limit),
  cursor: Schema.optionalKey(cursorOf(({ sort }) => sort === newestFirst))
}

/** The query parameter `expand`: the records that each row of a list is returned with. */
export const expandOf = <const Name extends string>(expandable: ReadonlyArray<Name>, note = "") =>
  Schema.String.annotate({
    description: `Records to return under expanded, separated by commas: ${expandable.join(", ")}.${note}`
  })
    .check(publishedAs({ items: { type: "string", enum: expandable }, minItems: 1 }))
    .pipe(
      Schema.decodeTo(Schema.Array(Schema.Literals(expandable)), {
        decode: SchemaGetter.transformEffect((text: string) => {
          const names = text.split(",").map((name) => expandable.find((known) => known === name.trim()))
          return names.every((name) => name !== undefined)
            ? Effect.succeed(names)
            : fault(`Expected names out of ${expandable.join(", ")}`)
        }),
        encode: SchemaGetter.transform((names: ReadonlyArray<string>) => names.join(","))
      })
    )

/** The query of a list with filters of its own. A cursor of another sort is refused. */
export const listQuery = <const S extends Sorts, F extends Schema.Struct.Fields>(sorts: S, filters: F) =>
  Schema.Struct({
    limit: Schema.optionalKey(Limit),
    cursor: Schema.optionalKey(cursorOf(() => true)),
    sort: Schema.optionalKey(
      Schema.Literals(Object.keys(sorts).flatMap((field) => [field, `-${field}`]) as ReadonlyArray<SortOf<S>>)
    ),
    created_after: Schema.optionalKey(Timestamp),
    created_before: Schema.optionalKey(Timestamp),
    include_total: Schema.optionalKey(Schema.Literals(["true", "false"])),
    ...filters
  }).check(Schema.makeFilter(cursorFault(sorts)))

/** The fault of a cursor that does not belong to the list's sort. */
const cursorFault =
  (sorts: Sorts) =>
  ({ cursor, sort = newestFirst }: { readonly cursor?: Keyset; readonly sort?: string }) => {
    if (cursor === undefined) return undefined
    const isInstant = sorts[fieldOf(sort)] === "instant"
    const fits = cursor.sort === sort && (!isInstant || cursor.value === "infinity" || isInstantText(cursor.value))
    const issue = "Expected the next_cursor of an earlier response with the same sort"
    return fits ? undefined : { path: ["cursor"], issue }
  }

/** The year 0. PostgreSQL refuses instants that are much earlier. */
const earliestMillis = -62_167_219_200_000

const isInstantText = (text: string): boolean => /^-?\d{1,15}$/.test(text) && Number(text) >= earliestMillis

/** The field of a sort. */
export const fieldOf = (sort: string): string => sort.replace("-", "")

export interface PageRequest {
  readonly limit?: number
  readonly cursor?: Keyset
}

export interface ListRequest extends PageRequest {
  readonly sort?: string
  readonly created_after?: number
  readonly created_before?: number
  readonly include_total?: "true" | "false"
}

/** Rows that are counted for `include_total`. */
export const totalMax = 10_000

/** The number of rows of a list; if it is capped, there are more. */
export interface Total {
  readonly total: number
  readonly total_is_capped: boolean
}

/** A page of a list; `next` is absent on the last one. */
export interface Page<A, C = Keyset> extends Partial<Total> {
  readonly items: ReadonlyArray<A>
  readonly next?: C
  /** On the last page of a list by sequence number: the number up to which rows were removed by retention. */
  readonly removedTo?: number
}

/** Makes a page from up to `limit + 1` rows: the extra row only shows that there is a next page. */
export const pageOf = <A extends { readonly id: string; readonly created_at: number }>(
  rows: ReadonlyArray<A>,
  limit: number,
  sort: string = newestFirst
): Page<A> => {
  const items = rows.slice(0, limit)
  const last = items.at(-1)
  if (rows.length <= limit || last === undefined) return { items }
  const value = (last as Record<string, unknown>)[fieldOf(sort)]
  return { items, next: { sort, value: value === undefined ? "infinity" : String(value), id: last.id } }
}

export const nextCursorOf = (page: Page<unknown>): string | null =>
  page.next === undefined ? null : encodeKeyset(page.next)
