/**
 * Makes the document's schemas readable. Envelopes are inlined. Response schemas are open, because clients must ignore unknown
 * fields; request bodies stay closed, because the service refuses unknown fields.
 */
import type { JsonSchema } from "effect"
import type { OpenApi } from "effect/http-api"

type Json = JsonSchema.JsonSchema
type Definitions = JsonSchema.Definitions
type Spec = OpenApi.OpenAPISpec

const prefix = "#/components/schemas/"

export const nameOf = ({ $ref }: Json): string | undefined =>
  typeof $ref === "string" && $ref.startsWith(prefix) ? $ref.slice(prefix.length) : undefined

// The generator gives such names to envelopes that a transformation adds.
const generatedName = /Encoded(_\d+)?$/

export const withoutEnvelopes = (spec: Spec): Spec => {
  const { schemas } = spec.components
  const inline = (value: unknown): unknown =>
    transformed(value, (schema) => {
      const name = nameOf(schema)
      return name !== undefined && generatedName.test(name) ? (inline(schemas[name]) as Json) : undefined
    })
  const named = Object.entries(schemas).filter(([name]) => !generatedName.test(name))
  return {
    ...spec,
    paths: inline(spec.paths) as Spec["paths"],
    components: {
      ...spec.components,
      schemas: Object.fromEntries(named.map(([name, schema]) => [name, inline(schema) as Json]))
    }
  }
}

/** A schema that a request body refers to stays closed. */
export const withOpenResponses = (spec: Spec): Spec => {
  const { schemas } = spec.components
  const requestSchemas = namesWithin(bodiesOf(spec), schemas)
  const open = (value: unknown): unknown =>
    transformed(value, (schema) => {
      if (schema["additionalProperties"] !== false) return undefined
      const { additionalProperties: _, ...rest } = schema
      return open(rest) as Json
    })
  return {
    ...spec,
    paths: mapOperations(spec.paths, ({ operation }) => ({
      ...operation,
      responses: open(operation.responses) as SpecOperation["responses"]
    })),
    components: {
      ...spec.components,
      schemas: Object.fromEntries(
        Object.entries(schemas).map(([name, schema]) => [
          name,
          requestSchemas.has(name) ? schema : (open(schema) as Json)
        ])
      )
    }
  }
}

const bodiesOf = ({ paths }: Spec): unknown =>
  Object.values(paths).flatMap((item) =>
    Object.values(item).map((operation) => (operation as OpenApi.OpenAPISpecOperation).requestBody)
  )

export const namesWithin = (value: unknown, schemas: Definitions, names = new Set<string>()): ReadonlySet<string> => {
  transformed(value, (schema) => {
    const name = nameOf(schema)
    if (name === undefined || names.has(name)) return undefined
    names.add(name)
    namesWithin(schemas[name], schemas, names)
    return undefined
  })
  return names
}

/** Merges the checks of each value into one schema, and removes bounds that every JSON number satisfies. */
export const withPlainValues = <A extends object>(schemas: A): A =>
  transformed(schemas, (schema) => {
    const parts = schema["allOf"] as ReadonlyArray<Json> | undefined
    if (parts === undefined || parts.some((part) => "$ref" in part))
      return isUnbounded(schema) ? unbounded(schema) : undefined
    const { allOf: _, ...rest } = schema
    return withPlainValues(Object.assign({}, rest, ...parts)) as Json
  }) as A

const isUnbounded = ({ minimum }: Json) => minimum === -Number.MAX_SAFE_INTEGER

const unbounded = ({ minimum: _, maximum: __, ...rest }: Json): Json => rest

export type SpecOperation = OpenApi.OpenAPISpecOperation & { [extension: string]: unknown }

/** An operation as the published document has it. */
export interface PublishedOperation {
  readonly method: string
  readonly path: string
  readonly operation: OpenApi.OpenAPISpecOperation & { readonly "x-required-scopes"?: ReadonlyArray<string> }
}

/** The tags with their operations, in the order of the document. */
export const operationsByTag = (spec: Spec) => {
  const all = Object.entries(spec.paths).flatMap(([path, item]) =>
    Object.entries(item).map(
      ([method, operation]) => ({ method: method.toUpperCase(), path, operation }) as PublishedOperation
    )
  )
  return spec.tags.map((tag) => ({
    ...tag,
    operations: all.filter(({ operation }) => operation.tags.includes(tag.name))
  }))
}

/** The schema of an envelope's data; undefined for other schemas. */
export const dataOf = (schema: Json): Json | undefined => {
  const { data, meta } = (schema["properties"] ?? {}) as { readonly data?: Json; readonly meta?: Json }
  return meta === undefined ? undefined : data
}

export interface LocatedOperation {
  readonly path: string
  readonly method: string
  readonly operation: SpecOperation
}

export const mapOperations = (
  paths: Spec["paths"],
  f: (located: LocatedOperation) => OpenApi.OpenAPISpecOperation
): Spec["paths"] =>
  Object.fromEntries(
    Object.entries(paths).map(([path, item]) => [
      path,
      Object.fromEntries(
        Object.entries(item).map(([method, operation]) => [
          method,
          f({ path, method, operation: operation as SpecOperation })
        ])
      )
    ])
  )

/** A copy in which `f` replaces objects; objects for which it returns undefined are traversed. */
export const transformed = (value: unknown, f: (schema: Json) => Json | undefined): unknown => {
  if (Array.isArray(value)) return value.map((item) => transformed(item, f))
  if (typeof value !== "object" || value === null) return value
  return (
    f(value as Json) ?? Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, transformed(inner, f)]))
  )
}
