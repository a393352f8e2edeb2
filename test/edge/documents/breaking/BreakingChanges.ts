/** What a client of one OpenAPI document can no longer do with another one. */
import type { Json } from "../../../contract/cases/Surface.ts"
import { comparison, type Definitions, type Direction, type Sides, schemaBreaks } from "./Schemas.ts"

interface Parameter {
  readonly name: string
  readonly in: string
  readonly required?: boolean
  readonly schema: Json
  readonly $ref?: string
}

type Content = Readonly<Record<string, { readonly schema?: Json }>>

interface Response {
  readonly content?: Content
  readonly headers?: Readonly<Record<string, unknown>>
}

interface Operation {
  readonly operationId: string
  readonly parameters?: ReadonlyArray<Parameter>
  readonly requestBody?: { readonly required?: boolean; readonly content: Content }
  readonly responses: Readonly<Record<string, Response>>
  readonly security?: ReadonlyArray<Readonly<Record<string, unknown>>>
  readonly "x-required-scopes"?: ReadonlyArray<string>
}

type Paths = Readonly<Record<string, Readonly<Record<string, Operation>>>>

export interface Document {
  readonly paths: Paths
  readonly webhooks?: Paths
  readonly components: {
    readonly schemas: Definitions
    readonly parameters?: Readonly<Record<string, Parameter>>
    readonly securitySchemes?: Readonly<Record<string, Readonly<Record<string, unknown>>>>
  }
}

/** Enumerations in responses that grow with the service; clients take unknown values as such (docs/API.md, "Two surfaces"). */
const growing = new Set(["ActivityAction"])

/** Every breaking difference, each with its place; none if all clients of the old document work with the new one. */
export const breakingChanges = (documents: Sides<Document>): ReadonlyArray<string> => {
  const of = <A>(part: (document: Document) => A): Sides<A> => ({ old: part(documents.old), new: part(documents.new) })
  const breaksIn = (direction: Direction) => (schemas: Sides<Json>, at: string) =>
    schemaBreaks(
      comparison(
        direction,
        of(({ components }) => components.schemas),
        growing
      ),
      schemas,
      at
    )
  const breaks: Breaks = { request: breaksIn("request"), response: breaksIn("response") }
  const operations = of(({ components, paths }) => operationsOf(paths, components.parameters ?? {}))
  const deliveries = of(({ webhooks = {} }) => operationsOf(webhooks, {}))
  return [
    ...pairs(operations, (at, pair) => operationBreaks(breaks, pair, at)),
    // The service sends deliveries: their bodies are read by the receiver.
    ...pairs(deliveries, (at, pair) =>
      contentBreaks(
        breaks.response,
        { old: pair.old.requestBody?.content ?? {}, new: pair.new.requestBody?.content ?? {} },
        at
      )
    ),
    ...schemeBreaks(of(({ components }) => components.securitySchemes ?? {}))
  ]
}

interface Breaks {
  readonly request: SchemaBreaks
  readonly response: SchemaBreaks
}

type SchemaBreaks = (schemas: Sides<Json>, at: string) => ReadonlyArray<string>

const operationsOf = (paths: Paths, shared: Readonly<Record<string, Parameter>>): Readonly<Record<string, Operation>> =>
  Object.fromEntries(
    Object.entries(paths).flatMap(([path, item]) =>
      Object.entries(item).map(([method, operation]) => [
        `${method.toUpperCase()} ${path}`,
        {
          ...operation,
          parameters: (operation.parameters ?? []).map((parameter) =>
            parameter.$ref === undefined ? parameter : shared[parameter.$ref.split("/").at(-1)!]!
          )
        }
      ])
    )
  )

/** Compares what both sides have; what only the old side has was removed. */
const pairs = <A>(
  { old, new: now }: Sides<Readonly<Record<string, A>>>,
  compare: (name: string, pair: Sides<A>) => ReadonlyArray<string>,
  prefix = ""
): ReadonlyArray<string> =>
  Object.entries(old).flatMap(([name, before]) =>
    Object.hasOwn(now, name) ? compare(name, { old: before, new: now[name]! }) : [`${prefix}${name}: was removed`]
  )

const operationBreaks = (breaks: Breaks, pair: Sides<Operation>, at: string): ReadonlyArray<string> => [
  ...(pair.old.operationId === pair.new.operationId ? [] : [`${at}: operationId became ${pair.new.operationId}`]),
  ...credentialBreaks(pair, at),
  ...parameterBreaks(breaks.request, pair, at),
  ...bodyBreaks(breaks.request, pair, at),
  ...responseBreaks(breaks.response, pair, at)
]

const credentialBreaks = (pair: Sides<Operation>, at: string): ReadonlyArray<string> => {
  const scopes = (pair.new["x-required-scopes"] ?? []).filter(
    (scope) => pair.old["x-required-scopes"]?.includes(scope) !== true
  )
  const namesOf = ({ security = [] }: Operation) => JSON.stringify(security.map(Object.keys))
  return [
    ...scopes.map((scope) => `${at}: needs the scope ${scope}`),
    ...(namesOf(pair.old) === namesOf(pair.new) ? [] : [`${at}: takes another credential`])
  ]
}

const parameterBreaks = (breaks: SchemaBreaks, pair: Sides<Operation>, at: string): ReadonlyArray<string> => {
  const byName = ({ parameters = [] }: Operation) =>
    Object.fromEntries(parameters.map((parameter) => [`${parameter.in} ${parameter.name}`, parameter]))
  const sides = { old: byName(pair.old), new: byName(pair.new) }
  return [
    ...pairs(
      sides,
      (name, { old, new: now }) => breaks({ old: old.schema, new: now.schema }, `${at}: ${name}`),
      `${at}: `
    ),
    ...Object.entries(sides.new)
      .filter(([name, { required }]) => required === true && sides.old[name]?.required !== true)
      .map(([name]) => `${at}: ${name} is now required`)
  ]
}

const bodyBreaks = (breaks: SchemaBreaks, { old, new: now }: Sides<Operation>, at: string): ReadonlyArray<string> => {
  const [before, after] = [old.requestBody, now.requestBody]
  const isNowRequired = after?.required === true && before?.required !== true
  return [
    ...(isNowRequired ? [`${at}: the body is now required`] : []),
    ...(before === undefined
      ? []
      : contentBreaks(breaks, { old: before.content, new: after?.content ?? {} }, `${at}: body`))
  ]
}

const contentBreaks = (breaks: SchemaBreaks, contents: Sides<Content>, at: string): ReadonlyArray<string> =>
  Object.entries(contents.old).flatMap(([type, { schema: before }]) => {
    const media = contents.new[type]
    if (media === undefined) return [`${at}: ${type} was removed`]
    return before === undefined || media.schema === undefined ? [] : breaks({ old: before, new: media.schema }, at)
  })

/** A refusal's status may go or come: clients take it by its class. */
const responseBreaks = (breaks: SchemaBreaks, pair: Sides<Operation>, at: string): ReadonlyArray<string> => {
  const compared = ({ responses }: Operation, other: Operation) =>
    Object.fromEntries(
      Object.entries(responses).filter(([status]) => !/^[45]/.test(status) || Object.hasOwn(other.responses, status))
    )
  return pairs(
    { old: compared(pair.old, pair.new), new: pair.new.responses },
    (status, { old, new: now }) => [
      ...contentBreaks(breaks, { old: old.content ?? {}, new: now.content ?? {} }, `${at}: ${status}`),
      ...Object.keys(old.headers ?? {})
        .filter((header) => !Object.hasOwn(now.headers ?? {}, header))
        .map((header) => `${at}: ${status} has no header ${header}`)
    ],
    `${at}: `
  )
}

const schemeBreaks = (schemes: Sides<Readonly<Record<string, Readonly<Record<string, unknown>>>>>) =>
  pairs(schemes, (name, { old, new: now }) =>
    ["type", "scheme", "in", "name"]
      .filter((key) => old[key] !== now[key])
      .map((key) => `${name}: ${key} became ${now[key]}`)
  )
