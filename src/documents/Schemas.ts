/**
 * The schemas of the document, made fit to read. Envelopes are written out where they stand. Answers are open, because clients
 * ignore fields that they do not know; bodies of requests stay closed, because the service does not.
 */
import type { JsonSchema } from "effect"
import type { OpenApi } from "effect/http-api"

type Json = JsonSchema.JsonSchema
type Definitions = JsonSchema.Definitions
type Spec = OpenApi.OpenAPISpec

const prefix = "#/components/schemas/"

/** The name of the schema that this one refers to. */
export const nameOf = ({ $ref }: Json): string | undefined =>
  typeof $ref === "string" && $ref.startsWith(prefix) ? $ref.slice(prefix.length) : undefined

// What a transformation wraps in an envelope has no name of its own, so one is made up for it.
const madeUp = /Encoded(_\d+)?$/

/** The document with schemas of made-up names written out in place. */
export const withoutEnvelopes = (spec: Spec): Spec => {
  const { schemas } = spec.components
  const inline = (value: unknown): unknown =>
    transformed(value, (schema) => {
      const name = nameOf(schema)
      return name !== undefined && madeUp.test(name) ? (inline(schemas[name]) as Json) : undefined
    })
  const named = Object.entries(schemas).filter(([name]) => !madeUp.test(name))
  return {
    ...spec,
    paths: inline(spec.paths) as Spec["paths"],
    components: {
      ...spec.components,
      schemas: Object.fromEntries(named.map(([name, schema]) => [name, inline(schema) as Json]))
    }
  }
}

/** The document with its answers open. A schema that requests refer to stays closed. */
export const withOpenAnswers = (spec: Spec): Spec => {
  const { schemas } = spec.components
  const asked = namesWithin(bodiesOf(spec), schemas)
  const open = (value: unknown): unknown =>
    transformed(value, (schema) => {
      if (schema["additionalProperties"] !== false) return undefined
      const { additionalProperties: _, ...rest } = schema
      return open(rest) as Json
    })
  const paths = Object.entries(spec.paths).map(([path, item]) => [
    path,
    Object.fromEntries(
      Object.entries(item).map(([method, operation]) => [
        method,
        { ...operation, responses: open(responsesOf(operation)) }
      ])
    )
  ])
  return {
    ...spec,
    paths: Object.fromEntries(paths),
    components: {
      ...spec.components,
      schemas: Object.fromEntries(
        Object.entries(schemas).map(([name, schema]) => [name, asked.has(name) ? schema : (open(schema) as Json)])
      )
    }
  }
}

const responsesOf = (operation: unknown) => (operation as OpenApi.OpenAPISpecOperation).responses
const bodiesOf = ({ paths }: Spec): unknown =>
  Object.values(paths).flatMap((item) =>
    Object.values(item).map((operation) => (operation as OpenApi.OpenAPISpecOperation).requestBody)
  )

/** The names that a value refers to, and those that they refer to. */
const namesWithin = (value: unknown, schemas: Definitions, found = new Set<string>()): ReadonlySet<string> => {
  transformed(value, (schema) => {
    const name = nameOf(schema)
    if (name === undefined || found.has(name)) return undefined
    found.add(name)
    namesWithin(schemas[name], schemas, found)
    return undefined
  })
  return found
}

/** The document with the checks of a value written as one schema, and without bounds that every JSON number has. */
export const withPlainValues = (spec: Spec): Spec => {
  const plain = (value: unknown): unknown =>
    transformed(value, (schema) => {
      const parts = schema["allOf"] as ReadonlyArray<Json> | undefined
      if (parts === undefined || parts.some((part) => "$ref" in part))
        return isUnbounded(schema) ? unbounded(schema) : undefined
      const { allOf: _, ...rest } = schema
      return plain(Object.assign({}, rest, ...parts)) as Json
    })
  return plain(spec) as Spec
}

const isUnbounded = ({ minimum }: Json) => minimum === -Number.MAX_SAFE_INTEGER

const unbounded = ({ minimum: _, maximum: __, ...rest }: Json): Json => rest

/** A copy in which `f` has replaced objects; what it leaves is looked into. */
const transformed = (value: unknown, f: (schema: Json) => Json | undefined): unknown => {
  if (Array.isArray(value)) return value.map((item) => transformed(item, f))
  if (typeof value !== "object" || value === null) return value
  return (
    f(value as Json) ?? Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, transformed(inner, f)]))
  )
}
