/**
 * Whether a schema may replace another one. In requests it must accept all that the old one accepts, because clients send it. In
 * responses it must give only what the old one gives, because clients read it; they ignore fields that they do not know.
 */
import type { Json } from "../../../contract/cases/Surface.ts"

export type Direction = "request" | "response"

/** The schemas of a document by name. */
export type Definitions = Readonly<Record<string, Json>>

export interface Sides<A> {
  readonly old: A
  readonly new: A
}

interface Comparison {
  readonly direction: Direction
  readonly definitions: Sides<Definitions>
  /** The pairs of names that are compared already: schemas refer to themselves. */
  readonly seen: Set<string>
  /** Named response enumerations to which values may be added: clients are told so. */
  readonly growing: ReadonlySet<string>
}

export const comparison = (
  direction: Direction,
  definitions: Sides<Definitions>,
  growing: ReadonlySet<string> = new Set()
): Comparison => ({ direction, definitions, growing, seen: new Set() })

/** The breaking differences between two schemas, each with its place. */
export const schemaBreaks = (context: Comparison, given: Sides<Json>, at: string): ReadonlyArray<string> => {
  const names = { old: nameOf(given.old), new: nameOf(given.new) }
  const pair = `${names.old} ${names.new}`
  if (names.old !== undefined && names.new !== undefined) {
    if (context.seen.has(pair)) return []
    context.seen.add(pair)
  }
  const sides = { old: resolved(given.old, context.definitions.old), new: resolved(given.new, context.definitions.new) }
  const alternatives = { old: alternativesOf(sides.old), new: alternativesOf(sides.new) }
  if (alternatives.old.length === 1 && alternatives.new.length === 1) return plainBreaks(context, sides, at, names.new)
  // Every alternative on the one side needs one on the other side.
  const [needed, offered] = context.direction === "request" ? (["old", "new"] as const) : (["new", "old"] as const)
  return alternatives[needed].flatMap((alternative, index) => {
    const fits = alternatives[offered].some((other) => {
      const pair = { [needed]: alternative, [offered]: other } as unknown as Sides<Json>
      return schemaBreaks({ ...context, seen: new Set(context.seen) }, pair, at).length === 0
    })
    const what = context.direction === "request" ? "is no longer accepted" : "is new in a response"
    return fits ? [] : [`${at}: alternative ${index + 1} ${what}`]
  })
}

const nameOf = ({ $ref }: Json): string | undefined => (typeof $ref === "string" ? $ref.split("/").at(-1) : undefined)

const resolved = (schema: Json, definitions: Definitions): Json => {
  const name = nameOf(schema)
  return name === undefined ? withParts(schema, definitions) : resolved(definitions[name] ?? {}, definitions)
}

/** Merges the parts of `allOf`. */
const withParts = ({ allOf, ...schema }: Json, definitions: Definitions): Json => {
  if (!Array.isArray(allOf)) return schema
  const parts = (allOf as ReadonlyArray<Json>).map((part) => resolved(part, definitions))
  const properties = Object.assign({}, ...[schema, ...parts].map((part) => part["properties"]))
  const required = [schema, ...parts].flatMap((part) => (part["required"] ?? []) as ReadonlyArray<string>)
  return { ...Object.assign({}, schema, ...parts), properties, required }
}

const alternativesOf = (schema: Json): ReadonlyArray<Json> => {
  const alternatives = (schema["anyOf"] ?? schema["oneOf"]) as ReadonlyArray<Json> | undefined
  if (alternatives !== undefined) return alternatives
  const { type } = schema
  return Array.isArray(type) ? type.map((each: string) => ({ ...schema, type: each })) : [schema]
}

const plainBreaks = (context: Comparison, sides: Sides<Json>, at: string, name: string | undefined) => [
  ...typeBreaks(context, sides, at),
  ...enumBreaks(context, sides, at, name),
  ...boundBreaks(context, sides, at),
  ...fieldBreaks(context, sides, at),
  ...itemBreaks(context, sides, at)
]

const typeBreaks = ({ direction }: Comparison, sides: Sides<Json>, at: string): ReadonlyArray<string> => {
  const [from, to] = [typeOf(sides.old), typeOf(sides.new)]
  const [wide, narrow] = direction === "request" ? [to, from] : [from, to]
  // A schema without a type takes every value.
  const fits = wide === narrow || wide === undefined || (wide === "number" && narrow === "integer")
  if (!fits) return [`${at}: the type ${from} became ${to}`]
  const [format, became] = [sides.old["format"], sides.new["format"]]
  const isNarrower = direction === "request" && became === undefined
  return format === became || isNarrower ? [] : [`${at}: the format ${format} became ${became}`]
}

const typeOf = ({ const: literal, enum: values, type }: Json): unknown =>
  type ?? (literal !== undefined ? typeof literal : Array.isArray(values) ? typeof values[0] : undefined)

const valuesOf = ({ const: literal, enum: values }: Json): ReadonlyArray<unknown> | undefined =>
  literal !== undefined ? [literal] : (values as ReadonlyArray<unknown> | undefined)

const enumBreaks = (
  { direction, growing }: Comparison,
  sides: Sides<Json>,
  at: string,
  name: string | undefined
): ReadonlyArray<string> => {
  const [before, after] = [valuesOf(sides.old), valuesOf(sides.new)]
  if (direction === "request") {
    if (after === undefined) return []
    const lost = before?.filter((value) => !after.includes(value)) ?? ["any other value"]
    return lost.map((value) => `${at}: ${value} is no longer accepted`)
  }
  // Error codes grow with the service, too.
  if (before === undefined || (name !== undefined && growing.has(name)) || at.endsWith(".code")) return []
  const added = after?.filter((value) => !before.includes(value)) ?? ["any other value"]
  return added.map((value) => `${at}: ${value} is new in a response`)
}

const lowest = ["minimum", "minLength", "minItems", "exclusiveMinimum"]
const highest = ["maximum", "maxLength", "maxItems", "exclusiveMaximum"]

/** Limits of requests may only be relaxed. Responses may keep to any. */
const boundBreaks = ({ direction }: Comparison, sides: Sides<Json>, at: string): ReadonlyArray<string> => {
  if (direction === "response") return []
  const isTighter = (key: string, isBeyond: (before: number, after: number) => boolean) => {
    const [before, after] = [sides.old[key], sides.new[key]] as [number | undefined, number | undefined]
    return after !== undefined && (before === undefined || isBeyond(before, after))
  }
  const tighter = [
    ...lowest.filter((key) => isTighter(key, (before, after) => after > before)),
    ...highest.filter((key) => isTighter(key, (before, after) => after < before)),
    ...["pattern", "uniqueItems"].filter((key) => sides.new[key] !== undefined && sides.new[key] !== sides.old[key])
  ]
  return tighter.map((key) => `${at}: ${key} ${sides.old[key]} became ${sides.new[key]}`)
}

const fieldBreaks = (context: Comparison, sides: Sides<Json>, at: string): ReadonlyArray<string> => {
  const fields = { old: fieldsOf(sides.old), new: fieldsOf(sides.new) }
  const required = { old: requiredOf(sides.old), new: requiredOf(sides.new) }
  const [more, less, what] =
    context.direction === "request"
      ? [required.new, required.old, "is now required"]
      : [required.old, required.new, "is no longer in every response"]
  const closed = sides.new["additionalProperties"] === false && sides.old["additionalProperties"] !== false
  return [
    ...Object.entries(fields.old).flatMap(([name, schema]) =>
      Object.hasOwn(fields.new, name)
        ? schemaBreaks(context, { old: schema, new: fields.new[name]! }, `${at}.${name}`)
        : [`${at}.${name}: was removed`]
    ),
    ...more
      .filter((name) => !less.includes(name) && (context.direction === "request" || Object.hasOwn(fields.new, name)))
      .map((name) => `${at}.${name}: ${what}`),
    ...(context.direction === "request" && closed ? [`${at}: other fields are no longer accepted`] : [])
  ]
}

const fieldsOf = (schema: Json) => (schema["properties"] ?? {}) as Readonly<Record<string, Json>>
const requiredOf = (schema: Json) => (schema["required"] ?? []) as ReadonlyArray<string>

const itemBreaks = (context: Comparison, sides: Sides<Json>, at: string): ReadonlyArray<string> => {
  const isSchema = (value: unknown): value is Json => typeof value === "object" && value !== null
  const places = [
    { key: "items", place: `${at}[]` },
    { key: "additionalProperties", place: `${at}.*` }
  ]
  return places.flatMap(({ key, place }) => {
    const [before, after] = [sides.old[key], sides.new[key]]
    return isSchema(before) && isSchema(after) ? schemaBreaks(context, { old: before, new: after }, place) : []
  })
}
