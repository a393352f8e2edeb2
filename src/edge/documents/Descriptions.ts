/** Describes what the contract's declarations leave to their names: fields, parameters, successful responses, operations. */
import type { JsonSchema } from "effect"
import type { OpenApi } from "effect/http-api"
import { fieldDescriptions, nounOf, parameterDescriptions } from "./FieldDescriptions.ts"
import { nameOf } from "./Schemas.ts"

type Json = JsonSchema.JsonSchema
type Definitions = JsonSchema.Definitions

/** Adds shared descriptions to fields; a field that refers to another schema keeps that schema's description. */
export const withFieldDescriptions = <A>(schemas: A): A => described(schemas) as A

const described = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(described)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      key,
      key === "properties" ? describedFields(inner as Definitions) : described(inner)
    ])
  )
}

const describedFields = (fields: Definitions) =>
  Object.fromEntries(
    Object.entries(fields).map(([name, schema]) => {
      const description = fieldDescriptions[name]
      const isDescribed = "description" in schema || nameOf(schema) !== undefined || description === undefined
      const inner = described(schema) as Json
      return [name, isDescribed ? inner : { ...inner, description }]
    })
  )

export const parameterDescription = (
  path: string,
  { in: where, name }: Pick<OpenApi.OpenAPISpecParameter, "in" | "name">
): string | undefined => {
  if (where !== "path") return parameterDescriptions[name]
  const segments = path.split("/")
  const list = segments[segments.indexOf(`{${name}}`) - 1] ?? ""
  return `The id of the ${nounOf[list] ?? list}.`
}

interface Described {
  readonly method: string
  readonly path: string
  readonly schema: string | undefined
}

export const successDescription = ({ method, path, schema }: Described): string => {
  if (schema === undefined) return "Done. The response has no body."
  if (schema.endsWith("List")) return `A page of records: ${wordsOf(schema.slice(0, -"List".length))}.`
  const noun = wordsOf(schema.replace(/(Response|Result)$/, ""))
  return method === "post" && path.endsWith("s") ? `The new record: ${noun}.` : `The result: ${noun}.`
}

/** `LicenseFeature` → `license feature`. */
const wordsOf = (name: string): string =>
  name
    .replaceAll(/([a-z0-9])([A-Z])/g, "$1 $2")
    .toLowerCase()
    .replaceAll(/\bapi\b/g, "API")

export const operationDescription = ({ method, path, schema }: Described): string | undefined => {
  if (method !== "get" || schema === undefined) return undefined
  if (schema.endsWith("List"))
    return "Returns the newest first unless `sort` says otherwise. `page_info.next_cursor` is the cursor of the next page, and null on the last one."
  return path.endsWith("}") ? "Returns the record as it is now, after all changes by time." : undefined
}
