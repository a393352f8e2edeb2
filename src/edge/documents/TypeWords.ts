import type { JsonSchema } from "effect"
import { nameOf } from "./Schemas.ts"

type Json = JsonSchema.JsonSchema

/** A schema in a few words: `string, 1 to 255 characters`, `Product[]`, `active | retired`. */
export const typeOf = (schema: Json): string => {
  const name = nameOf(schema)
  if (name !== undefined) return name
  const alternatives = (schema["anyOf"] ?? schema["oneOf"]) as ReadonlyArray<Json> | undefined
  if (alternatives !== undefined) return alternatives.map(typeOf).join(" | ")
  const literals = schema["enum"] as ReadonlyArray<unknown> | undefined
  if (literals !== undefined) return literals.map(String).join(" | ")
  if (schema["type"] === "array") return `${typeOf((schema["items"] ?? {}) as Json)}[]`
  if (schema["type"] === "object") return objectType(schema)
  return [String(schema["format"] ?? schema["type"] ?? "any JSON"), ...boundsOf(schema)].join(", ")
}

const objectType = (schema: Json): string => {
  const properties = schema["properties"] as { readonly [name: string]: Json } | undefined
  if (properties === undefined) return "object"
  return `{${Object.entries(properties)
    .map(([name, field]) => `${name}: ${typeOf(field)}`)
    .join("; ")}}`
}

const boundsOf = (schema: Json): ReadonlyArray<string> => {
  const [shortest, longest] = [schema["minLength"], schema["maxLength"]]
  const [minimum, maximum] = [schema["minimum"], schema["maximum"]]
  return [
    ...(longest === undefined && shortest === undefined
      ? []
      : [`${shortest ?? 0} to ${longest ?? "any number of"} characters`]),
    ...(minimum === undefined ? [] : [`at least ${minimum}`]),
    ...(maximum === undefined ? [] : [`at most ${maximum}`]),
    ...(typeof schema["pattern"] === "string" ? [`matching ${schema["pattern"]}`] : [])
  ]
}
