/**
 * Maps a schema's issues to the contract's errors: the code, the field, and a sentence.
 *
 * A value of the wrong JSON type (null included) and an unknown field are faults of the JSON (400). An invalid value of the right
 * type and a missing field are faults of validation (422). The messages come from the schema alone, and never repeat a value of the
 * request.
 */
import { Predicate, SchemaAST, SchemaIssue } from "effect"
import { type FaultDetail, inOneLine, type Refusal, refuse } from "../../contract/api/Failure.ts"

export type Path = ReadonlyArray<PropertyKey>

export interface Fault {
  readonly code: "INVALID_JSON" | "VALIDATION_ERROR"
  readonly path: Path
  /** The rest of the sentence that begins with the field. */
  readonly problem: string
}

/** Faults in a refusal's details. */
export const faultsMax = 10

/**
 * The refusal for a body that its schema rejects. Faults of the JSON come first. The first fault gives code, message and detail; the
 * details list all faults.
 */
export const bodyRefusal = (found: ReadonlyArray<Fault>): Refusal<"INVALID_JSON"> | Refusal<"VALIDATION_ERROR"> => {
  const faults = found.toSorted((a, b) => Number(isValid(a)) - Number(isValid(b)))
  const [first] = faults
  if (first === undefined) return refuse("VALIDATION_ERROR", "The body is not valid: compare it with /openapi.yaml.")
  return refusalOf(first.code, faults.map(fieldDetail))
}

const isValid = ({ code }: Fault): boolean => code === "VALIDATION_ERROR"

const fieldDetail = ({ path, problem }: Fault): FaultDetail => ({
  path: formatPath(path),
  message: `${path.length === 0 ? "The body" : `The field ${inOneLine(formatPath(path))}`} ${problem}.`
})

/** The refusal for unknown or invalid query parameters. */
export const queryRefusal = (
  unknown: ReadonlyArray<string>,
  known: ReadonlyArray<string>,
  issue?: SchemaIssue.Issue,
  query?: unknown
): Refusal<"INVALID_QUERY"> => {
  const takes = known.length === 0 ? "takes none" : `takes ${known.join(", ")}`
  const notKnown = unknown.slice(0, faultsMax).map((name) => ({
    path: truncate(name),
    message: `${name === "" ? "A query parameter without a name" : `The query parameter ${inOneLine(truncate(name))}`} is not known: remove or correct it. This operation ${takes}.`
  }))
  const invalid = issue === undefined ? [] : faultsOf(issue, [], query).map((fault) => parameterDetail(fault, query))
  const details = [...notKnown, ...invalid]
  return details.length === 0
    ? refuse("INVALID_QUERY", "The query parameters are not valid: compare them with /openapi.yaml.")
    : refusalOf("INVALID_QUERY", details)
}

const parameterDetail = ({ path, problem }: Fault, query: unknown): FaultDetail => {
  const parameter = truncate(String(path[0] ?? ""))
  const isRepeated = path[0] !== undefined && Array.isArray(member(query, path[0]))
  return {
    path: parameter,
    message: `The query parameter ${inOneLine(parameter)} ${isRepeated ? "is given more than once: send it once" : problem}.`
  }
}

/** A refusal with the first fault of each path. The first of them gives the message and the detail. */
const refusalOf = <const C extends "INVALID_JSON" | "INVALID_QUERY" | "VALIDATION_ERROR">(
  code: C,
  faults: ReadonlyArray<FaultDetail>
): Refusal<C> => {
  const isFirst = ({ path }: FaultDetail, index: number) => faults.findIndex((fault) => fault.path === path) === index
  const details = faults.filter(isFirst).slice(0, faultsMax)
  const { message, path } = faults[0]!
  return refuse(code, message, path === "" && code !== "INVALID_QUERY" ? undefined : path, { details })
}

const messages = SchemaIssue.makeFormatterStandardSchemaV1()

/** The expectation of a schema, as the end of a sentence. The values of an enumeration are listed. */
const expectation = (issue: SchemaIssue.Issue): string => {
  const literals = "ast" in issue ? literalsOf(SchemaAST.toEncoded(issue.ast as SchemaAST.AST)) : undefined
  if (literals !== undefined && literals.length > 0) return `expected one of: ${literals.join(", ")}`
  const message = messages(issue).issues[0]?.message ?? "Expected another value"
  return message.charAt(0).toLowerCase() + message.slice(1).replace(/\.$/, "")
}

/** The values of an enumeration; undefined for other schemas. */
const literalsOf = (ast: SchemaAST.AST): ReadonlyArray<string> | undefined => {
  if (ast._tag === "Null") return []
  if (ast._tag === "Literal") return [String(ast.literal)]
  if (ast._tag !== "Union") return undefined
  const members = ast.types.map(literalsOf)
  return members.includes(undefined) ? undefined : members.flatMap((values) => values ?? [])
}

/** The faults of an issue, for the value at a path. */
export const faultsOf = (issue: SchemaIssue.Issue, path: Path, value: unknown): ReadonlyArray<Fault> => {
  switch (issue._tag) {
    case "Pointer":
      return faultsOf(issue.issue, [...path, ...issue.path], issue.path.reduce(member, value))
    case "Composite":
      return issue.issues.flatMap((inner) => faultsOf(inner, path, value))
    case "Encoding":
      return faultsOf(issue.issue, path, value)
    case "Filter":
      return filterFaults(issue, path, value)
    case "UnexpectedKey":
      return [unknownField(path)]
    case "MissingKey":
      return [missing(path)]
    case "InvalidType":
      return [typeFault(issue, path, value)]
    case "AnyOf":
      return unionFaults(issue, path, value)
    default:
      return [invalid(issue, path)]
  }
}

const member = (value: unknown, key: PropertyKey): unknown => (value as Record<PropertyKey, unknown> | undefined)?.[key]

/** A rule over several fields reports the path of the faulty one. */
const filterFaults = (issue: SchemaIssue.Filter, path: Path, value: unknown) =>
  issue.issue._tag === "Pointer" || issue.issue._tag === "Composite"
    ? faultsOf(issue.issue, path, value)
    : [invalid(issue, path)]

/** The faults within the alternatives that match the value's JSON type; the faults of the other alternatives are meaningless. */
const unionFaults = (issue: SchemaIssue.AnyOf, path: Path, value: unknown): ReadonlyArray<Fault> => {
  if (!takes(issue.ast, value)) return [typeFault(issue, path, value)]
  const inner = issue.issues
    .flatMap((alternative) => faultsOf(alternative, path, value))
    .filter(({ code, path: { length } }) => code === "VALIDATION_ERROR" || length > path.length)
  return inner.length > 0 ? inner : [invalid(issue, path)]
}

const typeFault = (issue: SchemaIssue.InvalidType | SchemaIssue.AnyOf, path: Path, value: unknown): Fault =>
  takes(issue.ast, value) ? invalid(issue, path) : wrongType(issue.ast, path)

/** The fault of a value with the wrong JSON type. */
export const wrongType = (ast: SchemaAST.AST, path: Path): Fault => ({
  code: "INVALID_JSON",
  path,
  problem: `has the wrong JSON type: expected ${typeNames(ast).join(" or ")}`
})

export const missing = (path: Path): Fault => ({ code: "VALIDATION_ERROR", path, problem: "is required: add it" })

const invalid = (issue: SchemaIssue.Issue, path: Path): Fault => ({
  code: "VALIDATION_ERROR",
  path,
  problem: `is not valid: ${expectation(issue)}`
})

export const unknownField = (path: Path): Fault => ({
  code: "INVALID_JSON",
  path,
  problem: "is not known to this operation: remove or correct it"
})

/** The JSON types that a schema accepts, in words. */
const typeNames = (ast: SchemaAST.AST): ReadonlyArray<string> => {
  const encoded = SchemaAST.toEncoded(ast)
  switch (encoded._tag) {
    case "Number":
      return ["a number"]
    case "Boolean":
      return ["true or false"]
    case "Null":
      return ["null"]
    case "Literal":
      return [typeof encoded.literal === "string" ? "a string" : String(encoded.literal)]
    case "Objects":
    case "Declaration":
      return ["an object"]
    case "Arrays":
      return ["an array"]
    case "Union":
      return [...new Set(encoded.types.flatMap(typeNames))]
    case "Suspend":
      return typeNames(encoded.thunk())
    default:
      return ["a string"]
  }
}

/** Whether a schema accepts any value of this value's JSON type. */
export const takes = (ast: SchemaAST.AST, value: unknown): boolean => {
  const encoded = SchemaAST.toEncoded(ast)
  switch (encoded._tag) {
    case "String":
    case "TemplateLiteral":
      return typeof value === "string"
    case "Number":
      return typeof value === "number"
    case "Boolean":
      return typeof value === "boolean"
    case "Null":
      return value === null
    case "Literal":
      return typeof value === typeof encoded.literal
    case "Objects":
      return Predicate.isObject(value)
    case "Arrays":
      return Array.isArray(value)
    case "Union":
      return encoded.types.some((type) => takes(type, value))
    case "Declaration":
      return encoded.annotations?.["jsonType"] !== "object" || Predicate.isObject(value)
    case "Suspend":
      return takes(encoded.thunk(), value)
    default:
      return true
  }
}

// A request can contain arbitrarily long names; their beginning is enough to find the field.
const pathLengthMax = 256

const truncate = (text: string): string => text.slice(0, pathLengthMax).toWellFormed()

/** A field's path: dots between names, brackets around indices, as `filters.ids[2]`. */
const formatPath = (path: Path): string =>
  truncate(
    path.reduce<string>(
      (text, key) =>
        typeof key === "number" ? `${text}[${key}]` : text === "" ? String(key) : `${text}.${String(key)}`,
      ""
    )
  )
