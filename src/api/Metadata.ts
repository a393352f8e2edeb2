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

/** What is wrong with a metadata object, or undefined. Depth is bounded before anything recurses further. */
const metadataFault = (metadata: Metadata): string | undefined => {
  let keys = 0
  const fault = (value: unknown, depth: number): string | undefined => {
    if (typeof value === "string")
      return isStorable(value) ? undefined : "texts without NUL characters and lone surrogates"
    if (typeof value === "number") return Number.isFinite(value) ? undefined : "finite numbers"
    if (typeof value !== "object" || value === null) return undefined
    if (depth > depthMax) return `at most ${depthMax} levels`
    if (Array.isArray(value)) return firstFault(value, depth + 1)
    const names = Object.keys(value)
    keys += names.length
    if (keys > keysMax) return `at most ${keysMax} keys`
    if (!names.every(isStorable)) return "keys without NUL characters and lone surrogates"
    return firstFault(Object.values(value), depth + 1)
  }
  const firstFault = (values: ReadonlyArray<unknown>, depth: number) => {
    for (const value of values) {
      const first = fault(value, depth)
      if (first !== undefined) return first
    }
    return undefined
  }
  return (
    fault(metadata, 1) ??
    (utf8.encode(JSON.stringify(metadata)).length > bytesMax ? `at most ${bytesMax} bytes of JSON` : undefined)
  )
}

export const Metadata = Schema.Record(Schema.String, Schema.Json)
  // Before the check: annotations after a check that JSON Schema cannot express are not published.
  .annotate({
    description:
      "A free-form JSON object: at most 16 KiB, 4 levels deep, 64 keys; no key is __proto__ or has a backslash or NUL."
  })
  .check(
    Schema.makeFilter((metadata) => {
      const fault = metadataFault(metadata)
      return fault === undefined || `Expected metadata with ${fault}`
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
