/**
 * Decodes bodies with their schemas. The schema library examines all fields of a schema for each object, which takes most of the
 * time for a list of a thousand objects with twenty optional fields each. Here objects, lists, texts, numbers, instants and metadata are
 * decoded directly, and only other parts by the library.
 *
 * What must stay true: the result is the library's for every schema and value, a field that a schema does not have makes a body
 * invalid, and a list that is longer than its schema allows is not decoded item by item.
 */
import { Exit, Predicate, Schema, SchemaAST } from "effect"
import { memoize } from "effect/Function"
import { decodesText } from "../../contract/api/Timestamp.ts"

/** What a decoder returns for an invalid value. `BodyFaults` finds the faults. */
export const invalid: unique symbol = Symbol("licensing/access/requests/BodyDecoder/invalid")

export type Decoder = (value: unknown) => unknown

/** The decoder of a schema. */
export const decoderOf: (ast: SchemaAST.AST) => Decoder = memoize((ast: SchemaAST.AST): Decoder => {
  if (ast.encoding !== undefined) return ofEncoded(ast)
  if (SchemaAST.isObjects(ast) && ast.indexSignatures.length === 0) return checked(ast, ofStruct(ast))
  if (SchemaAST.isArrays(ast) && ast.elements.length === 0) return checked(ast, ofList(ast))
  if (SchemaAST.isDeclaration(ast) && ast.annotations?.["jsonType"] === "object")
    return checked(ast, (value) => (Predicate.isObject(value) ? value : invalid))
  const type = jsonTypes[ast._tag]
  if (type !== undefined) return checked(ast, (value) => (typeof value === type ? value : invalid))
  const [some, none, ...others] = SchemaAST.isUnion(ast) ? ast.types : []
  if (some === undefined || none?._tag !== "Null" || others.length > 0) return ofWhole(ast)
  const decode = decoderOf(some)
  return (value) => (value === null ? null : decode(value))
})

/** The types of values that are decoded as they are. */
const jsonTypes: { readonly [tag: string]: string } = { String: "string", Number: "number", Boolean: "boolean" }

/** The library takes twenty times as long as the function that decodes a text. */
const ofEncoded = (ast: SchemaAST.AST): Decoder => {
  const decode = ast.annotations?.[decodesText] as ((text: string) => unknown) | undefined
  if (decode === undefined) return ofWhole(ast)
  return checked(ast, (value) => (typeof value === "string" ? (decode(value) ?? invalid) : invalid))
}

/** Copies an object only if a part is decoded to another value. */
const ofStruct = (ast: SchemaAST.Objects): Decoder => {
  const decoders = new Map(ast.propertySignatures.map(({ name, type }) => [String(name), decoderOf(type)]))
  const required = ast.propertySignatures
    .filter(({ type }) => !SchemaAST.isOptional(type))
    .map(({ name }) => String(name))
  return (value) => {
    if (!Predicate.isObject(value)) return invalid
    const members = value as { readonly [name: string]: unknown }
    let decoded: Record<string, unknown> | undefined
    for (const name of Object.keys(members)) {
      const member = members[name]
      const decode = decoders.get(name)
      const part = decode === undefined ? invalid : decode(member)
      if (part === invalid) return invalid
      if (part === member) continue
      decoded ??= { ...members }
      decoded[name] = part
    }
    return required.every((name) => Object.hasOwn(members, name)) ? (decoded ?? members) : invalid
  }
}

const ofList = (ast: SchemaAST.Arrays): Decoder => {
  const decode = decoderOf(ast.rest[0]!)
  return (value) => {
    if (!Array.isArray(value) || isTooLong(ast, value)) return invalid
    const items: ReadonlyArray<unknown> = value
    let decoded: Array<unknown> | undefined
    for (let index = 0; index < items.length; index++) {
      const item = items[index]
      const part = decode(item)
      if (part === invalid) return invalid
      if (part === item) continue
      decoded ??= items.slice()
      decoded[index] = part
    }
    return decoded ?? items
  }
}

/** Applies the rules over several parts. */
const checked = (ast: SchemaAST.AST, decode: Decoder): Decoder => {
  const filters = filtersOf(ast.checks)
  if (filters.length === 0) return decode
  return (value) => {
    const decoded = decode(value)
    if (decoded === invalid) return invalid
    for (const filter of filters) if (filter.run(decoded, ast, options) !== undefined) return invalid
    return decoded
  }
}

const filtersOf = (checks: SchemaAST.Checks | undefined): ReadonlyArray<SchemaAST.Filter<unknown>> =>
  checks?.flatMap((check) => (check._tag === "Filter" ? check : filtersOf(check.checks))) ?? []

const options = {}

const ofWhole = (ast: SchemaAST.AST): Decoder => {
  const decode = Schema.decodeUnknownExit(Schema.make<Schema.Codec<unknown, unknown>>(ast), {
    errors: "first",
    onExcessProperty: "error"
  })
  return (value) => {
    const decoded = decode(value)
    return Exit.isSuccess(decoded) ? decoded.value : invalid
  }
}

type LengthCheck = SchemaAST.Filter<ReadonlyArray<unknown>>

/** The checks of a list's maximum length. */
export const lengthChecks = memoize(
  ({ checks }: SchemaAST.Arrays): ReadonlyArray<LengthCheck> =>
    (checks?.filter(({ annotations }) => annotations?.representation?.id === maxLengthId) ??
      []) as ReadonlyArray<LengthCheck>
)

const maxLengthId = "effect/schema/isMaxLength"

/** Whether a list has more items than its schema allows. */
export const isTooLong = (ast: SchemaAST.Arrays, items: ReadonlyArray<unknown>): boolean =>
  lengthChecks(ast).some((check) => check.run(items, ast, options) !== undefined)
