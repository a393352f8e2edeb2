/**
 * The expected answer to a body, derived from the published schema alone and not from the service's decoding: a value of
 * another JSON type and an unknown field are INVALID_JSON, all other violations are VALIDATION_ERROR.
 */
import { type Json, nameOf, resolved } from "./Surface.ts"

export interface Fault {
  readonly code: "INVALID_JSON" | "VALIDATION_ERROR"
  /** The path as in an error's detail: `filters.ids[2]`. */
  readonly path: string
  readonly what: string
}

/** Names in a request may be long; an error's detail contains only their beginning. */
const pathLengthMax = 256

const fault = (code: Fault["code"], path: string, what: string): ReadonlyArray<Fault> => [
  { code, path: path.slice(0, pathLengthMax), what }
]

/** All faults of a value. Objects are closed: a member that the schema does not list is a fault. */
export const faultsOf = (given: Json, value: unknown, path = ""): ReadonlyArray<Fault> => {
  const schema = resolved(given)
  const alternatives = (schema["anyOf"] ?? schema["oneOf"]) as ReadonlyArray<Json> | undefined
  if (alternatives !== undefined) return alternativeFaults(alternatives, value, path)
  const parts = schema["allOf"] as ReadonlyArray<Json> | undefined
  if (parts !== undefined) {
    const { allOf: _, ...rest } = schema
    return faultsOf(merged([rest, ...parts]), value, path)
  }
  if (!takes(schema, value)) return fault("INVALID_JSON", path, `no ${typesOf(schema).join(" or ")}`)
  const literals = literalsOf(schema)
  if (literals !== undefined && !literals.includes(value))
    return fault("VALIDATION_ERROR", path, "not one of the values")
  if (nameOf(given) === "Metadata") return metadataFaults(value as object, path)
  if (typeof value === "string") return textFaults(schema, value, path)
  if (typeof value === "number") return numberFaults(schema, value, path)
  if (Array.isArray(value)) return arrayFaults(schema, value, path)
  if (typeof value === "object" && value !== null) return objectFaults(schema, value as Record<string, unknown>, path)
  return []
}

/** Levels of objects and arrays in a body, the body itself included. */
const depthMax = 16

/** The faults of a body that may be reported: faults of the JSON come before all others. */
export const bodyFaults = (schema: Json, text: string): ReadonlyArray<Fault> => {
  const misleading = nameWithBackslash(text)
  if (misleading !== undefined) return fault("INVALID_JSON", misleading, "a backslash in a name")
  const body: unknown = JSON.parse(text)
  if (typeof body !== "object" || body === null || Array.isArray(body)) return fault("INVALID_JSON", "", "no object")
  if (isDeeper(body, depthMax)) return fault("INVALID_JSON", "", "too deep")
  const prototypes = prototypePaths(body, "")
  if (prototypes.length > 0) return prototypes.flatMap((path) => fault("INVALID_JSON", path, "__proto__"))
  const faults = faultsOf(schema, body)
  const ofJson = faults.filter(({ code }) => code === "INVALID_JSON")
  return ofJson.length > 0 ? ofJson : faults
}

/** Looked for in the text: parsing such a name misleads the parser of the service, which may run in this process. */
const nameWithBackslash = (text: string): string | undefined =>
  Array.from(text.matchAll(/("(?:[^"\\]|\\.)*")(\s*:)?/g), ([, quoted, isName]) =>
    isName === undefined ? "" : String(JSON.parse(quoted!))
  ).find((name) => name.includes("\\"))

const isDeeper = (value: unknown, levels: number): boolean =>
  typeof value === "object" &&
  value !== null &&
  (levels === 0 || Object.values(value).some((member) => isDeeper(member, levels - 1)))

const prototypePaths = (value: unknown, path: string): ReadonlyArray<string> => {
  if (typeof value !== "object" || value === null) return []
  return Object.entries(value).flatMap(([name, member]) => {
    const at = Array.isArray(value) ? `${path}[${name}]` : path === "" ? name : `${path}.${name}`
    return name === "__proto__" ? [at] : prototypePaths(member, at)
  })
}

const alternativeFaults = (alternatives: ReadonlyArray<Json>, value: unknown, path: string): ReadonlyArray<Fault> => {
  const fitting = alternatives.filter((alternative) => takes(resolved(alternative), value))
  if (fitting.length === 0) return fault("INVALID_JSON", path, "no alternative of this JSON type")
  const found = fitting.map((alternative) => faultsOf(alternative, value, path))
  return found.find((faults) => faults.length === 0) ?? found[0]!
}

/** Merges the schemas of `allOf` into one. */
const merged = (schemas: ReadonlyArray<Json>): Json =>
  Object.assign({}, ...schemas.map(resolved), {
    properties: Object.assign({}, ...schemas.map((schema) => resolved(schema)["properties"]))
  })

const literalsOf = (schema: Json): ReadonlyArray<unknown> | undefined =>
  "const" in schema ? [schema["const"]] : (schema["enum"] as ReadonlyArray<unknown> | undefined)

const typesOf = (schema: Json): ReadonlyArray<string> => {
  const literals = literalsOf(schema)
  if (schema["type"] === undefined) return literals === undefined ? [] : literals.map((literal) => typeof literal)
  return [schema["type"] as string | ReadonlyArray<string>].flat()
}

const jsonTypes: { readonly [type: string]: (value: unknown) => boolean } = {
  string: (value) => typeof value === "string",
  number: (value) => typeof value === "number",
  integer: (value) => typeof value === "number",
  boolean: (value) => typeof value === "boolean",
  null: (value) => value === null,
  array: Array.isArray,
  object: (value) => typeof value === "object" && value !== null && !Array.isArray(value)
}

/** Whether a schema allows any value of this value's JSON type. */
const takes = (schema: Json, value: unknown): boolean => {
  const alternatives = (schema["anyOf"] ?? schema["oneOf"]) as ReadonlyArray<Json> | undefined
  if (alternatives !== undefined) return alternatives.some((alternative) => takes(resolved(alternative), value))
  const types = typesOf(schema)
  return types.length === 0 || types.some((type) => jsonTypes[type]!(value))
}

/** Text that PostgreSQL and UTF-8 can represent. */
const isStorable = (text: string): boolean => !text.includes("\u0000") && text.isWellFormed()

const dateTime = /^(\d{4}-\d{2}-\d{2})T(\d{2}:\d{2}:\d{2})(?:\.\d{1,9})?(?:Z|[+-](\d{2}):(\d{2}))$/i

/** A date-time of RFC 3339 on an existing day, in UTC in the years 1 to 9999. */
export const isDateTime = (text: string): boolean => {
  const [, day, time, hours = "0", minutes = "0"] = dateTime.exec(text) ?? []
  if (day === undefined || day.startsWith("0000") || Number(hours) > 23 || Number(minutes) > 59) return false
  const instant = new Date(`${day}T${time}Z`)
  if (Number.isNaN(instant.getTime()) || instant.toISOString() !== `${day}T${time}.000Z`) return false
  return /^(?!0000)\d{4}-/.test(new Date(text.toUpperCase()).toISOString())
}

const textFaults = (schema: Json, text: string, path: string): ReadonlyArray<Fault> => {
  const { minLength = 0, maxLength = Number.POSITIVE_INFINITY, pattern, format } = schema as Record<string, never>
  // JSON Schema counts code points.
  const length = Array.from(text).length
  const right =
    isStorable(text) &&
    length >= minLength &&
    length <= maxLength &&
    (pattern === undefined || new RegExp(pattern, "u").test(text)) &&
    (format !== "date-time" || isDateTime(text))
  return right ? [] : fault("VALIDATION_ERROR", path, "text that is not allowed")
}

const numberFaults = (schema: Json, number: number, path: string): ReadonlyArray<Fault> => {
  const { minimum = Number.MIN_SAFE_INTEGER, maximum = Number.MAX_SAFE_INTEGER } = schema as Record<string, number>
  const whole = schema["type"] !== "integer" || Number.isInteger(number)
  const right = whole && number >= minimum && number <= maximum
  return right ? [] : fault("VALIDATION_ERROR", path, "a number that is not allowed")
}

const arrayFaults = (schema: Json, items: ReadonlyArray<unknown>, path: string): ReadonlyArray<Fault> => {
  const { minItems = 0, maxItems = Number.POSITIVE_INFINITY } = schema as Record<string, number>
  // The items of a list that is too long are not read.
  if (items.length > maxItems) return fault("VALIDATION_ERROR", path, "too many items")
  const inItems = items.flatMap((item, index) => faultsOf((schema["items"] ?? {}) as Json, item, `${path}[${index}]`))
  return items.length >= minItems ? inItems : [...inItems, ...fault("VALIDATION_ERROR", path, "too few items")]
}

const objectFaults = (schema: Json, object: Record<string, unknown>, path: string): ReadonlyArray<Fault> => {
  const properties = schema["properties"] as { readonly [name: string]: Json } | undefined
  const others = schema["additionalProperties"]
  const at = (name: string) => (path === "" ? name : `${path}.${name}`)
  if (properties === undefined) {
    if (typeof others !== "object" || others === null) return []
    return Object.entries(object).flatMap(([name, member]) => faultsOf(others as Json, member, at(name)))
  }
  const required = (schema["required"] ?? []) as ReadonlyArray<string>
  return [
    ...Object.keys(object)
      .filter((name) => !Object.hasOwn(properties, name))
      .flatMap((name) => fault("INVALID_JSON", at(name), "a field that is not known")),
    ...required
      .filter((name) => !Object.hasOwn(object, name))
      .flatMap((name) => fault("VALIDATION_ERROR", at(name), "missing")),
    ...Object.entries(object)
      .filter(([name]) => Object.hasOwn(properties, name))
      .flatMap(([name, member]) => faultsOf(properties[name]!, member, at(name)))
  ]
}

/** The limits of metadata in the contract's decisions: 16 KiB, 4 levels, 64 keys. */
const metadataFaults = (metadata: object, path: string): ReadonlyArray<Fault> => {
  let keys = 0
  const isRight = (value: unknown, depth: number): boolean => {
    if (typeof value === "string") return isStorable(value)
    if (typeof value === "number") return Number.isFinite(value)
    if (typeof value !== "object" || value === null) return true
    if (!Array.isArray(value)) keys += Object.keys(value).length
    return depth <= 4 && Object.entries(value).every(([name, member]) => isStorable(name) && isRight(member, depth + 1))
  }
  // Counted before the body is parsed.
  if (hasManyNames(metadata)) return fault("INVALID_JSON", "metadata", "an object with too many names")
  const right = isRight(metadata, 1) && keys <= 64 && Buffer.byteLength(JSON.stringify(metadata)) <= 16_384
  return right ? [] : fault("VALIDATION_ERROR", path, "metadata beyond its limits")
}

const hasManyNames = (value: unknown): boolean =>
  typeof value === "object" &&
  value !== null &&
  ((!Array.isArray(value) && Object.keys(value).length > 64) || Object.values(value).some(hasManyNames))
