/**
 * Maps a schema's issues to the contract's errors: the code, the field, and one helpful sentence.
 *
 * A value of the wrong JSON type, null included, and an unknown field are faults of the JSON (400); a value of the right type
 * that is not allowed, and a missing field, are faults of validation (422). The messages come from the schema alone: they
 * never repeat a value of the request.
 */
import { SchemaAST, SchemaIssue } from "effect"
import { type Refusal, refuse } from "../api/Failure.ts"

type Path = ReadonlyArray<PropertyKey>

interface Fault {
  readonly code: "INVALID_JSON" | "VALIDATION_ERROR"
  readonly path: Path
  readonly message: string
}

/** The refusal for a body that its schema rejects; the first fault of the JSON takes precedence over all others. */
export const bodyRefusal = (
  issue: SchemaIssue.Issue,
  body: unknown
): Refusal<"INVALID_JSON"> | Refusal<"VALIDATION_ERROR"> => {
  const faults = faultsOf(issue, [], body)
  const fault = faults.find(({ code }) => code === "INVALID_JSON") ?? faults[0]
  if (fault === undefined) return refuse("VALIDATION_ERROR", "The body is not valid.")
  return refuse(fault.code, fault.message, fault.path.length === 0 ? undefined : formatPath(fault.path))
}

/** The refusal for a body with fields if the operation has none. */
export const unknownFieldsRefusal = (names: ReadonlyArray<string>): Refusal<"INVALID_JSON"> | undefined => {
  const [name] = names
  if (name === undefined) return undefined
  const { message, path } = unknownField([name])
  return refuse("INVALID_JSON", message, formatPath(path))
}

const unknownField = (path: Path) =>
  ({
    code: "INVALID_JSON",
    path,
    message: `The operation does not know the field ${formatPath(path)}: remove or correct it.`
  }) as const

/** The refusal for query parameters that their schema rejects. */
export const queryRefusal = (issue: SchemaIssue.Issue): Refusal<"INVALID_QUERY"> => {
  const [first] = messages(issue).issues
  const name = first?.path?.[0]
  if (first === undefined || name === undefined) return refuse("INVALID_QUERY", "The query parameters are not valid.")
  const parameter = truncate(String(name))
  const message =
    first.message === missing
      ? `The query parameter ${parameter} is required.`
      : `The query parameter ${parameter} is not valid: ${inSentence(first.message)}.`
  return refuse("INVALID_QUERY", message, parameter)
}

/** The refusal for a query parameter that the operation does not know. */
export const unknownParameterRefusal = (name: string, known: ReadonlyArray<string>): Refusal<"INVALID_QUERY"> => {
  const parameter = truncate(name)
  const takes = known.length === 0 ? "takes none" : `takes ${known.join(", ")}`
  return refuse(
    "INVALID_QUERY",
    `The query parameter ${parameter} is not known: remove or correct it. This operation ${takes}.`,
    parameter
  )
}

const messages = SchemaIssue.makeFormatterStandardSchemaV1()
const missing = "Missing key"
const messageOf = (issue: SchemaIssue.Issue) =>
  inSentence(messages(issue).issues[0]?.message ?? "Expected another value")
const inSentence = (message: string) => message.charAt(0).toLowerCase() + message.slice(1).replace(/\.$/, "")

const faultsOf = (issue: SchemaIssue.Issue, path: Path, value: unknown): ReadonlyArray<Fault> => {
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
      return [{ code: "VALIDATION_ERROR", path, message: `The field ${formatPath(path)} is required.` }]
    case "InvalidType":
      return [typeFault(issue, path, value)]
    case "AnyOf":
      return unionFaults(issue, path, value)
    default:
      return [invalid(issue, path)]
  }
}

const member = (value: unknown, key: PropertyKey): unknown => (value as Record<PropertyKey, unknown> | undefined)?.[key]

/** A rule over several fields reports the faulty one with a path of its own. */
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
  takes(issue.ast, value)
    ? invalid(issue, path)
    : { code: "INVALID_JSON", path, message: `${subject(path)} has the wrong JSON type: ${messageOf(issue)}.` }

const invalid = (issue: SchemaIssue.Issue, path: Path): Fault => ({
  code: "VALIDATION_ERROR",
  path,
  message: `${subject(path)} is not valid: ${messageOf(issue)}.`
})

const subject = (path: Path) => (path.length === 0 ? "The body" : `The field ${formatPath(path)}`)

/** Whether a schema accepts any value of this value's JSON type. */
const takes = (ast: SchemaAST.AST, value: unknown): boolean => {
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
      return typeof value === "object" && value !== null && !Array.isArray(value)
    case "Arrays":
      return Array.isArray(value)
    case "Union":
      return encoded.types.some((type) => takes(type, value))
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
