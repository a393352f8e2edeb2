/**
 * Decodes bodies with their schemas. The schema library examines all fields of a schema for each object, which takes most of the
 * time for a list of a thousand objects with twenty optional fields each. Here objects and lists are decoded directly, and only
 * their parts by the library.
 *
 * What must stay true: the result is the library's for every schema and value, a field that a schema does not have makes a body
 * invalid, and a list that is longer than its schema allows is not decoded item by item.
 */
import { Exit, Schema, SchemaAST } from "effect"
import { memoize } from "effect/Function"

/** What a decoder returns for an invalid value. `BodyFaults` finds the faults. */
export const invalid: unique symbol = Symbol("licensing/access/requests/BodyDecoder/invalid")

export type Decoder = (value: unknown) => unknown

/** The decoder of a schema. */
export const decoderOf: (ast: SchemaAST.AST) => Decoder = memoize((ast: SchemaAST.AST): Decoder => {
  if (ast.encoding !== undefined) return ofWhole(ast)
  if (SchemaAST.isObjects(ast) && ast.indexSignatures.length === 0) return checked(ast, ofStruct(ast))
  if (SchemaAST.isArrays(ast) && ast.elements.length === 0) return checked(ast, ofList(ast))
  const type = jsonTypes[ast._tag]
  if (type !== undefined) return checked(ast, (value) => (typeof value === type ? value : invalid))
  const [some, none, ...others] = SchemaAST.isUnion(ast) ? ast.types : []
  if (some === undefined || none?._tag !== "Null" || others.length > 0) return ofWhole(ast)
  const decode = decoderOf(some)
  return (value) => (value === null ? null : decode(value))
})

/** The types of values that are decoded as they are. */
const jsonTypes: { readonly [tag: string]: string } = { String: "string", Number: "number", Boolean: "boolean" }

const ofStruct = (ast: SchemaAST.Objects): Decoder => {
  const fields = ast.propertySignatures.map(({ name, type }) => ({
    name: String(name),
    decode: decoderOf(type),
    isOptional: SchemaAST.isOptional(type)
  }))
  return (value) => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) return invalid
    const members = value as { readonly [name: string]: unknown }
    const decoded: Record<string, unknown> = {}
    let known = 0
    for (const { decode, isOptional, name } of fields) {
      if (Object.hasOwn(members, name)) {
        const part = decode(members[name])
        if (part === invalid) return invalid
        decoded[name] = part
        known++
      } else if (!isOptional) return invalid
    }
    return Object.keys(members).length === known ? decoded : invalid
  }
}

const ofList = (ast: SchemaAST.Arrays): Decoder => {
  const decode = decoderOf(ast.rest[0]!)
  return (value) => {
    if (!Array.isArray(value) || isTooLong(ast, value)) return invalid
    const decoded: Array<unknown> = []
    for (const item of value) {
      const part = decode(item)
      if (part === invalid) return invalid
      decoded.push(part)
    }
    return decoded
  }
}

/** Applies the rules over several parts. */
const checked = (ast: SchemaAST.AST, decode: Decoder): Decoder => {
  const { checks } = ast
  if (checks === undefined) return decode
  return (value) => {
    const decoded = decode(value)
    return decoded === invalid || isAccepted(checks, decoded, ast) ? decoded : invalid
  }
}

const isAccepted = (checks: SchemaAST.Checks, value: unknown, ast: SchemaAST.AST): boolean =>
  checks.every((check) =>
    check._tag === "Filter" ? check.run(value, ast, {}) === undefined : isAccepted(check.checks, value, ast)
  )

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
  lengthChecks(ast).some((check) => check.run(items, ast, {}) !== undefined)
