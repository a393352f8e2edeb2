/**
 * The free-form `metadata` object of most resources. Its limits keep rows, events and webhook bodies small:
 * 16 KiB as JSON, 4 levels deep, 64 keys in total. The parsed value is passed on as it is, never copied key by key.
 */
import { Schema } from "effect"
import { isStorable } from "./Text.ts"

const bytesMax = 16_384
const depthMax = 4
const keysMax = 64
const utf8 = new TextEncoder()

export type Metadata = { readonly [key: string]: Schema.Json }

/** The metadata of most records, which share this object. */
export const noMetadata: Metadata = Object.freeze({})

/** Metadata as a row holds them. */
export const storedMetadata = (metadata: Metadata): Metadata =>
  Object.keys(metadata).length === 0 ? noMetadata : metadata

/** Counters of a walk over a metadata object. */
interface Walk {
  keys: number
  /** An upper bound of the size as JSON: every character counts as an escape, every number as the longest number. */
  bytes: number
}

const escapeBytes = 6
const scalarBytes = 26
/** Quotes, a colon and a comma. */
const punctuationBytes = 4

/** The fault of a metadata object, or undefined. The depth is checked before each recursion. */
const metadataFault = (metadata: Metadata): string | undefined => {
  const walk: Walk = { keys: 0, bytes: 0 }
  return (
    valueFault(metadata, 1, walk) ??
    (walk.bytes > bytesMax && utf8.encode(JSON.stringify(metadata)).length > bytesMax
      ? `at most ${bytesMax} bytes of JSON`
      : undefined)
  )
}

const valueFault = (value: unknown, depth: number, walk: Walk): string | undefined => {
  if (typeof value === "object" && value !== null) return partsFault(value, depth, walk)
  if (typeof value === "string") {
    walk.bytes += value.length * escapeBytes + punctuationBytes
    return isStorable(value) ? undefined : "texts without NUL characters and lone surrogates"
  }
  walk.bytes += scalarBytes
  if (typeof value === "number") return Number.isFinite(value) ? undefined : "finite numbers"
  return value === null || typeof value === "boolean" ? undefined : "JSON values"
}

const partsFault = (value: object, depth: number, walk: Walk): string | undefined => {
  if (depth > depthMax) return `at most ${depthMax} levels`
  walk.bytes += punctuationBytes
  if (!Array.isArray(value)) {
    const names = Object.keys(value)
    walk.keys += names.length
    if (walk.keys > keysMax) return `at most ${keysMax} keys`
    for (const name of names) {
      if (!isStorable(name)) return "keys without NUL characters and lone surrogates"
      walk.bytes += name.length * escapeBytes + punctuationBytes
    }
  }
  const parts: ReadonlyArray<unknown> = Array.isArray(value) ? value : Object.values(value)
  for (const part of parts) {
    const fault = valueFault(part, depth + 1, walk)
    if (fault !== undefined) return fault
  }
  return undefined
}

const isJson = Schema.is(Schema.Json)

/** Names the keys whose values are not JSON. This fault takes precedence over every limit. */
const metadataIssue = (metadata: Metadata): Schema.FilterOutput => {
  const fault = metadataFault(metadata)
  if (fault === undefined) return undefined
  const wrong = Object.keys(metadata).filter((name) => !isJson(metadata[name]))
  return wrong.length > 0
    ? wrong.map((name) => ({ path: [name], issue: "Expected JSON value" }))
    : `Expected metadata with ${fault}`
}

/**
 * One walk checks the whole object. With `Schema.Record`, which decodes and copies each member, an object of 64 keys took four
 * times as long.
 */
export const Metadata = Schema.declare(
  (value: unknown): value is Metadata => typeof value === "object" && value !== null && !Array.isArray(value),
  { expected: "object", jsonType: "object", toCodecJson: () => undefined }
)
  .check(
    Schema.makeFilter(metadataIssue, {
      toJsonSchema: () => ({ type: "object" }),
      description:
        "A free-form JSON object: at most 16 KiB, 4 levels deep, 64 keys; no key is __proto__ or has a backslash or NUL."
    })
  )
  .annotate({ identifier: "Metadata" })

/** Metadata filters in one query. */
const filtersMax = 10

/** Query parameters `metadata[key]=value`: only records whose metadata has these values. */
export interface MetadataFilter {
  readonly [parameter: `metadata[${string}]`]: string
}

/** The query of a list that takes `metadata[key]=value` besides its other parameters. */
export const withMetadataFilter = <const S extends Schema.Struct<Schema.Struct.Fields>>(query: S) =>
  Schema.StructWithRest(query, [
    Schema.Record(
      Schema.TemplateLiteral(["metadata[", Schema.String, "]"]),
      Schema.String.check(
        Schema.makeFilter((text) => isStorable(text) || "Expected text without NUL characters and lone surrogates")
      )
    )
  ]).check(
    Schema.makeFilter((parameters: object) => {
      const names = Object.keys(parameters).filter(isMetadataParameter)
      const unstorable = names.find((name) => !isStorable(name))
      if (unstorable !== undefined)
        return { path: [unstorable], issue: "Expected a key without NUL characters and lone surrogates" }
      return names.length > filtersMax
        ? { path: [names[filtersMax]!], issue: `Expected at most ${filtersMax} keys` }
        : undefined
    })
  )

/** Whether a query parameter filters by metadata. */
export const isMetadataParameter = (name: string): boolean => name.startsWith("metadata[") && name.endsWith("]")
