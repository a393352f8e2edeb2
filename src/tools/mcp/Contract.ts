/** Reads the management operations from the service's OpenAPI document. */
import { Predicate } from "effect"
import type { JsonSchema } from "effect/JsonSchema"

interface Parameter {
  readonly name: string
  readonly in: "path" | "query"
  readonly description: string | undefined
  readonly required: boolean
  readonly schema: JsonSchema
}

export interface ContractOperation {
  readonly id: string
  readonly group: string
  readonly method: string
  /** With `{name}` for path parameters. */
  readonly path: string
  readonly summary: string
  readonly description: string
  readonly scopes: ReadonlyArray<string>
  readonly reachesProducts: boolean
  readonly parameters: ReadonlyArray<Parameter>
  readonly body: { readonly schema: JsonSchema; readonly required: boolean } | undefined
  readonly takesIdempotencyKey: boolean
}

export interface Contract {
  readonly operations: ReadonlyArray<ContractOperation>
  readonly schemas: Readonly<Record<string, JsonSchema>>
}

export const argumentsOf = ({ body, parameters }: ContractOperation) => ({
  names: [...parameters.map(({ name }) => name), ...(body === undefined ? [] : ["body"])],
  required: [
    ...parameters.filter(({ required }) => required).map(({ name }) => name),
    ...(body?.required === true ? ["body"] : [])
  ]
})

type Json = Readonly<Record<string, unknown>>

const methods = ["get", "post", "put", "patch", "delete"]

export const readContract = (document: unknown): Contract | undefined => {
  if (!isJson(document) || !isJson(document.paths) || !isJson(document.components)) return undefined
  const components = document.components
  const operations = Object.entries(document.paths).flatMap(([path, item]) =>
    methods.flatMap((method) => {
      const operation = isJson(item) ? item[method] : undefined
      return isJson(operation) && "x-required-scopes" in operation && answersJson(operation)
        ? [readOperation(path, method, operation, components)]
        : []
    })
  )
  return { operations, schemas: withDefs(components.schemas ?? {}) as Contract["schemas"] }
}

/** `Predicate.isObject` narrows to `object`. */
const isJson = (value: unknown): value is Json => Predicate.isObject(value)

const readOperation = (path: string, method: string, operation: Json, components: Json): ContractOperation => {
  const { description, operationId, summary, tags } = operation
  const parameters = ((operation.parameters ?? []) as ReadonlyArray<Json>).map((parameter) =>
    resolve(parameter, components)
  )
  return {
    id: String(operationId),
    group: String((tags as ReadonlyArray<string>)[0]),
    method: method.toUpperCase(),
    path,
    summary: String(summary ?? ""),
    description: String(description ?? ""),
    scopes: operation["x-required-scopes"] as ReadonlyArray<string>,
    reachesProducts: operation["x-reaches-products"] === true,
    parameters: parameters.filter((parameter) => parameter.in !== "header").map(readParameter),
    body: readBody(operation.requestBody),
    takesIdempotencyKey: parameters.some(({ name }) => name === "Idempotency-Key")
  }
}

const readParameter = ({ description, in: place, name, required, schema }: Json): Parameter => ({
  name: String(name),
  in: place === "path" ? "path" : "query",
  description: description === undefined ? undefined : String(description),
  required: required === true,
  schema: withDefs(schema) as JsonSchema
})

const readBody = (body: unknown): ContractOperation["body"] => {
  const content = isJson(body) && isJson(body.content) ? body.content["application/json"] : undefined
  if (!isJson(content)) return undefined
  return { schema: withDefs(content.schema) as JsonSchema, required: (body as Json).required === true }
}

/** Files and text for other programs are useless in a conversation. */
const answersJson = ({ responses }: Json): boolean =>
  Object.entries(isJson(responses) ? responses : {}).every(([status, response]) => {
    const content = isJson(response) && isJson(response.content) ? Object.keys(response.content) : []
    return !status.startsWith("2") || content.every((type) => type === "application/json")
  })

const resolve = (parameter: Json, components: Json): Json => {
  const name = String(parameter.$ref ?? "").replace("#/components/parameters/", "")
  const shared = isJson(components.parameters) ? components.parameters[name] : undefined
  return isJson(shared) ? shared : parameter
}

const withDefs = (schema: unknown): unknown =>
  JSON.parse(JSON.stringify(schema).replaceAll('"#/components/schemas/', '"#/$defs/'))
