/**
 * The success envelopes of the management API. Handlers return domain values; encoding a response adds the envelope, and
 * decoding by a client removes it. Runtime responses are signed and keep their envelope: see `Signed`.
 */
import { Effect, Schema, SchemaGetter } from "effect"
import { currentMeta, Meta } from "./Meta.ts"
import { type Keyset, keysetOf, nextCursorOf, type Page, type Total } from "./Paging.ts"

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

/** The additional members of `page_info` in a response to include_total=true. */
const total = {
  total: Schema.optionalKey(
    Schema.Number.check(Schema.isInt()).annotate({
      format: "int32",
      description: "With include_total=true: how many records match."
    })
  ),
  total_is_capped: Schema.optionalKey(
    Schema.Boolean.annotate({ description: "Whether more records match than total says." })
  )
}

/** `{data: T[], page_info: {next_cursor: string | null, total?, total_is_capped?}, meta}` */
export const Paged = <S extends Schema.Constraint>(schema: S) =>
  pagedWith<S, Keyset>(schema, {
    pageInfo: Schema.Struct({ next_cursor: Schema.NullOr(Schema.String), ...total }),
    encode: (page) => {
      const { items: _, next: __, ...counted } = page
      return { next_cursor: nextCursorOf(page as Page<unknown>), ...counted }
    },
    decode: ({ next_cursor, ...counted }) => ({
      ...(next_cursor === null ? undefined : { next: keysetOf(next_cursor as string)! }),
      ...(counted as Partial<Total>)
    })
  })

const number = Schema.Number.check(Schema.isInt()).annotate({ format: "int64" })

/** `{data: T[], page_info: {next_cursor: int64 | null, removed_to?: int64}, meta}`, for lists by sequence number. */
export const PagedBySequence = <S extends Schema.Constraint>(schema: S) =>
  pagedWith<S, number>(schema, {
    pageInfo: Schema.Struct({
      next_cursor: Schema.NullOr(number),
      removed_to: Schema.optionalKey(
        number.annotate({
          description: "On the last page, if retention has removed rows: rows up to this number may be missing."
        })
      )
    }),
    encode: ({ next, removedTo }) => ({
      next_cursor: next ?? null,
      ...(removedTo === undefined ? undefined : { removed_to: removedTo })
    }),
    decode: ({ next_cursor, removed_to }) => ({
      ...(next_cursor === null ? undefined : { next: next_cursor as number }),
      ...(removed_to === undefined ? undefined : { removedTo: removed_to as number })
    })
  })

type PageInfo = { readonly next_cursor: unknown; readonly removed_to?: unknown }

const pagedWith = <S extends Schema.Constraint, C>(
  schema: S,
  info: {
    readonly pageInfo: Schema.Codec<PageInfo>
    readonly encode: (page: Page<S["Type"], C>) => PageInfo
    readonly decode: (info: PageInfo) => Omit<Page<S["Type"], C>, "items">
  }
) =>
  Schema.Struct({ data: Schema.Array(schema), page_info: info.pageInfo, meta: Meta }).pipe(
    Schema.decodeTo(
      Schema.declare((value): value is Page<S["Type"], C> => typeof value === "object" && value !== null),
      {
        decode: SchemaGetter.transform((envelope) => {
          const { data, page_info } = envelope as unknown as { data: ReadonlyArray<S["Type"]>; page_info: PageInfo }
          return { items: data, ...info.decode(page_info) }
        }),
        encode: SchemaGetter.transformEffect((page: Page<S["Type"], C>) =>
          Effect.map(currentMeta, (meta) => ({ data: page.items, page_info: info.encode(page), meta }) as never)
        )
      }
    )
  )

/** `{data, signature, meta}`: the signature covers the JSON bytes of `data` exactly as sent. */
export const Signed = <S extends Schema.Constraint>(schema: S) =>
  Schema.Struct({ data: schema, signature: Signature, meta: Meta })

/** An Ed25519 signature over the canonical JSON (RFC 8785) of the `data` member. */
export const Signature = Schema.Struct({
  alg: Schema.Literal("Ed25519").annotate({ description: "The algorithm." }),
  kid: Schema.String.annotate({ description: "The id of the signing key." }),
  value: Schema.String.annotate({ description: "Base64 of the 64 signature bytes." })
}).annotate({
  identifier: "Signature",
  description: "The Ed25519 signature of the bytes of `data`, or of `error` in a refusal."
})
export type Signature = typeof Signature.Type
