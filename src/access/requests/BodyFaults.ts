/**
 * Finds the first faults of an invalid body, as many as a refusal lists. The schema library finds either the first fault or all, and
 * finding all faults of 10,000 fields takes a hundred times as long as parsing them. So the body is decoded again here, part by
 * part, and valid parts are skipped.
 *
 * What must stay true: a list that is longer than its schema allows is not decoded item by item, and decoding ends as soon as there
 * are enough faults.
 */
import { Cause, Exit, Option, Schema, SchemaAST, SchemaIssue } from "effect"
import { memoize } from "effect/Function"
import { decoderOf, invalid, isTooLong, lengthChecks } from "./BodyDecoder.ts"
import { type Fault, faultsMax, faultsOf, missing, type Path, takes, unknownField, wrongType } from "./RequestFaults.ts"

/** Finds the first faults of a body; faults of the JSON come first. */
export const firstFaults = (ast: SchemaAST.AST, body: unknown): ReadonlyArray<Fault> => {
  const found: Array<Fault> = []
  jsonFaults(ast, body, [], found)
  valueFaults(ast, body, [], found)
  return found.slice(0, faultsMax)
}

/** Adds unknown fields and values of a wrong JSON type. */
const jsonFaults = (ast: SchemaAST.AST, value: unknown, path: Path, found: Array<Fault>): void => {
  if (found.length >= faultsMax) return
  const part = partFor(ast, value)
  if (!takes(part, value)) return void found.push(wrongType(part, path))
  const struct = structOf(part, value)
  if (struct !== undefined) {
    for (const name in struct.members) {
      if (found.length >= faultsMax) return
      const type = struct.types.get(name)
      if (type === undefined) found.push(unknownField([...path, name]))
      else jsonFaults(type, struct.members[name], [...path, name], found)
    }
    return
  }
  const { isLong = true, item = part, items = [] } = listOf(part, value) ?? {}
  if (isLong) return
  for (let index = 0; index < items.length && found.length < faultsMax; index++)
    if (isInvalid(item, items[index])) jsonFaults(item, items[index], [...path, index], found)
}

/** Adds invalid values, missing fields, and violations of rules over several fields. */
const valueFaults = (ast: SchemaAST.AST, value: unknown, path: Path, found: Array<Fault>): void => {
  if (found.length >= faultsMax) return
  const part = partFor(ast, value)
  if (!takes(part, value)) return
  const before = found.length
  const struct = structOf(part, value)
  const list = listOf(part, value)
  // Of a body and of a list, each part is decoded below.
  if (path.length > 0 && list === undefined && !isInvalid(part, value)) return
  if (struct !== undefined) {
    for (const { name, type } of struct.fields) {
      const field = String(name)
      if (Object.hasOwn(struct.members, field)) valueFaults(type, struct.members[field], [...path, field], found)
      else if (!SchemaAST.isOptional(type)) found.push(missing([...path, field]))
    }
  } else if (list !== undefined) {
    if (list.isLong) return void found.push(...lengthFaults(part as SchemaAST.Arrays, list.items, path))
    for (let index = 0; index < list.items.length && found.length < faultsMax; index++)
      valueFaults(list.item, list.items[index], [...path, index], found)
  }
  const isWhole = struct === undefined && list === undefined
  // The rules over several parts apply only if each part is valid.
  if (isWhole || (part.checks !== undefined && found.length === before && isInvalid(part, value)))
    found.push(...wholeFaults(ast, value, path))
}

const isInvalid = (ast: SchemaAST.AST, value: unknown): boolean => decoderOf(ast)(value) === invalid

interface Members {
  readonly [name: string]: unknown
}

/** The only member of a union that accepts this object or list; otherwise the schema itself. */
const partFor = (ast: SchemaAST.AST, value: unknown): SchemaAST.AST => {
  if (!SchemaAST.isUnion(ast) || ast.encoding !== undefined || typeof value !== "object" || value === null) return ast
  const taking = ast.types.filter((type) => takes(type, value))
  return taking.length === 1 ? taking[0]! : ast
}

/** A value that is decoded field by field. */
const structOf = (ast: SchemaAST.AST, value: unknown) =>
  SchemaAST.isObjects(ast) && ast.encoding === undefined && ast.indexSignatures.length === 0 && takes(ast, value)
    ? { fields: ast.propertySignatures, types: typesOf(ast), members: value as Members }
    : undefined

/** The fields' schemas by name. */
const typesOf = memoize(
  ({ propertySignatures }: SchemaAST.Objects) => new Map(propertySignatures.map(({ name, type }) => [name, type]))
)

/** A value that is decoded item by item. */
const listOf = (ast: SchemaAST.AST, value: unknown) => {
  if (!SchemaAST.isArrays(ast) || ast.encoding !== undefined || ast.elements.length > 0 || !Array.isArray(value))
    return undefined
  const items: ReadonlyArray<unknown> = value
  return { item: ast.rest[0]!, items, isLong: isTooLong(ast, items) }
}

const lengthFaults = (ast: SchemaAST.Arrays, items: ReadonlyArray<unknown>, path: Path): ReadonlyArray<Fault> =>
  lengthChecks(ast).flatMap((check) => {
    const issue = check.run(items, ast, {})
    return issue === undefined ? [] : faultsOf(new SchemaIssue.Filter(check, issue, items), path, items)
  })

/** The faults of a value that is decoded as a whole. */
const wholeFaults = (ast: SchemaAST.AST, value: unknown, path: Path): ReadonlyArray<Fault> => {
  const decoded = libraryDecoderOf(ast)(value)
  if (Exit.isSuccess(decoded)) return []
  const error = Option.getOrUndefined(Cause.findErrorOption(decoded.cause))
  return error === undefined ? [] : faultsOf(error.issue, path, value)
}

const libraryDecoderOf = memoize((ast: SchemaAST.AST) =>
  Schema.decodeUnknownExit(Schema.make<Schema.Codec<unknown, unknown>>(ast), {
    errors: "all",
    onExcessProperty: "error"
  })
)
