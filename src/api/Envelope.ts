/**
 * The success envelopes of the management API. Handlers return domain values; encoding a response adds the envelope, and
 * decoding by a client removes it. Runtime responses are signed and keep their envelope: see `Signed`.
 */
import { Effect, Schema, SchemaGetter } from "effect"
import { currentMeta, Meta } from "./Meta.ts"
import { type Keyset, keysetOf, nextCursorOf, type Page } from "./Paging.ts"

/** `{data, meta}` */
export const Data = <S extends Schema.Constraint>(schema: S) =>
  Schema.Struct({ data: schema, meta: Meta }).pipe(
    Schema.decodeTo(Schema.toType(schema), {
      decode: SchemaGetter.transform((envelope) => (envelope as { readonly data: S["Type"] }).data),
      encode: SchemaGetter.transformEffect((data: S["Type"]) =>
        Effect.map(currentMeta, (meta) => ({ data, meta }) as never)
      )
    })
  )

/** `{data: T[], page_info: {next_cursor: string | null}, meta}` */
export const Paged = <S extends Schema.Constraint>(schema: S) =>
  pagedWith<S, Keyset>(
    schema,
    Schema.NullOr(Schema.String),
    (page) => nextCursorOf(page as Page<unknown>),
    (cursor) => (cursor === null ? undefined : keysetOf(cursor as string))
  )

/** `{data: T[], page_info: {next_cursor: int64 | null}, meta}`, for lists by sequence number. */
export const PagedBySequence = <S extends Schema.Constraint>(schema: S) =>
  pagedWith<S, number>(
    schema,
    Schema.NullOr(Schema.Number.check(Schema.isInt()).annotate({ format: "int64" })),
    (page) => page.next ?? null,
    (cursor) => (cursor === null ? undefined : (cursor as number))
  )

const pagedWith = <S extends Schema.Constraint, C>(
  schema: S,
  cursor: Schema.Codec<string | null> | Schema.Codec<number | null>,
  encodeNext: (page: Page<S["Type"], C>) => unknown,
  decodeNext: (cursor: unknown) => C | undefined
) =>
  Schema.Struct({ data: Schema.Array(schema), page_info: Schema.Struct({ next_cursor: cursor }), meta: Meta }).pipe(
    Schema.decodeTo(
      Schema.declare((value): value is Page<S["Type"], C> => typeof value === "object" && value !== null),
      {
        decode: SchemaGetter.transform((envelope) => {
          const { data, page_info } = envelope as unknown as {
            data: ReadonlyArray<S["Type"]>
            page_info: { next_cursor: unknown }
          }
          const next = decodeNext(page_info.next_cursor)
          return next === undefined ? { items: data } : { items: data, next }
        }),
        encode: SchemaGetter.transformEffect((page: Page<S["Type"], C>) =>
          Effect.map(
            currentMeta,
            (meta) => ({ data: page.items, page_info: { next_cursor: encodeNext(page) }, meta }) as never
          )
        )
      }
    )
  )

/** `{data, signature, meta}`: the signature covers the JSON bytes of `data` exactly as sent. */
export const Signed = <S extends Schema.Constraint>(schema: S) =>
  Schema.Struct({ data: schema, signature: Signature, meta: Meta })

/** An Ed25519 signature over the canonical JSON (RFC 8785) of the `data` member. */
export const Signature = Schema.Struct({
  alg: Schema.Literal("Ed25519"),
  kid: Schema.String,
  value: Schema.String.annotate({ description: "Base64 of the 64 signature bytes." })
}).annotate({ identifier: "Signature" })
export type Signature = typeof Signature.Type
