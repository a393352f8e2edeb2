/**
 * Lists: newest first, split into pages by an opaque keyset cursor over (created_at, id), so that a client that reads all
 * pages gets every row exactly once while rows are inserted. `limit` defaults to 50; above 200 it is clamped, below 1 refused.
 */
import { Effect, Schema, SchemaGetter, SchemaIssue } from "effect"

/** Rows per page if the request has no limit. */
export const limitDefault = 50
/** The largest page: larger limits are clamped (docs/API.md, "Lists"). */
export const limitMax = 200

const fault = (message: string) => Effect.fail(new SchemaIssue.InvalidValue({ message }))

/** The `limit` query parameter. */
export const Limit = Schema.String.annotate({
  format: "int32",
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

/** A position in a list: the row after which the next page begins. */
export interface Keyset {
  readonly createdAt: number
  readonly id: string
}

const encodeKeyset = ({ createdAt, id }: Keyset): string => Buffer.from(`${createdAt}.${id}`).toString("base64url")

const decodeKeyset = (text: string): Keyset | undefined => {
  const parts = /^(\d{1,15})\.([A-Za-z0-9_-]{1,64})$/.exec(Buffer.from(text, "base64url").toString())
  return parts === null ? undefined : { createdAt: Number(parts[1]), id: parts[2]! }
}

/** The `cursor` query parameter of keyset lists. */
const Cursor = Schema.String.annotate({ description: "The next_cursor of the page before." }).pipe(
  Schema.decodeTo(
    Schema.declare((value): value is Keyset => typeof value === "object" && value !== null),
    {
      decode: SchemaGetter.transformEffect((text: string) => {
        const keyset = decodeKeyset(text)
        return keyset === undefined ? fault("Expected the next_cursor of an earlier response") : Effect.succeed(keyset)
      }),
      encode: SchemaGetter.transform(encodeKeyset)
    }
  )
)

/** The `cursor` query parameter of sequence lists: rows with lower sequence numbers follow (docs/API.md, "Lists"). */
export const SequenceCursor = Schema.String.annotate({
  format: "int64",
  description: "A sequence number of at least 1; lower ones are returned."
}).pipe(
  Schema.decodeTo(Schema.Number, {
    decode: SchemaGetter.transformEffect((text: string) =>
      /^\d{1,16}$/.test(text) && Number(text) >= 1 && Number.isSafeInteger(Number(text))
        ? Effect.succeed(Number(text))
        : fault(`Expected an integer from 1 to ${Number.MAX_SAFE_INTEGER}`)
    ),
    encode: SchemaGetter.transform(String)
  })
)

/** Query parameters of every keyset list. */
export const pageQuery = { limit: Schema.optionalKey(Limit), cursor: Schema.optionalKey(Cursor) }

export interface PageRequest {
  readonly limit?: number
  readonly cursor?: Keyset
}

/** A page of a list; `next` is absent on the last one. */
export interface Page<A, C = Keyset> {
  readonly items: ReadonlyArray<A>
  readonly next?: C
  /** On the last page of a list by sequence number: the number up to which rows were removed by retention. */
  readonly removedTo?: number
}

/** Makes a page from up to `limit + 1` rows: the extra row only shows that there is a next page. */
export const pageOf = <A extends { readonly id: string; readonly created_at: number }>(
  rows: ReadonlyArray<A>,
  limit: number
): Page<A> => {
  const items = rows.slice(0, limit)
  const last = items.at(-1)
  return rows.length > limit && last !== undefined
    ? { items, next: { createdAt: last.created_at, id: last.id } }
    : { items }
}

export const nextCursorOf = (page: Page<unknown>): string | null =>
  page.next === undefined ? null : encodeKeyset(page.next)
export const keysetOf = decodeKeyset
