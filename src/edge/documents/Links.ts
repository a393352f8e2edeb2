/** Links from the operations that create a record to those that take its id, for tools that call operations in a row. */
import type { JsonSchema } from "effect"
import type { OpenApi } from "effect/http-api"
import { mapOperations, nameOf } from "./Schemas.ts"

type Json = JsonSchema.JsonSchema
type Paths = OpenApi.OpenAPISpec["paths"]

interface Target {
  readonly operationId: string
  readonly parameters: ReadonlyArray<string>
  readonly list: string
}

export const withLinks = (paths: Paths, schemas: JsonSchema.Definitions): Paths => {
  const targets = Object.entries(paths).flatMap(([path, item]) => targetsAt(path, Object.values(item)))
  return mapOperations(paths, ({ path, operation }) => {
    const { responses } = operation
    const created = responses[201]
    if (created === undefined) return operation
    // Most records have their own list beside the one that creates them: /orders beside /products/{id}/orders.
    const linked = targets.filter(({ list }) => list === path || list === `/api/v1/${path.split("/").at(-1)}`)
    if (linked.length === 0) return operation
    const links = linksTo(linked, idPathOf(created, schemas))
    return { ...operation, responses: { ...responses, 201: { ...created, links } } }
  })
}

const targetsAt = (path: string, operations: ReadonlyArray<unknown>): ReadonlyArray<Target> => {
  const [, list] = /^(.*)\/\{\w+\}(?:\/[a-z-]+)*$/.exec(path) ?? []
  const parameters = Array.from(path.matchAll(/\{(\w+)\}/g), ([, name]) => name!)
  if (list === undefined) return []
  return operations.map((operation) => ({
    list,
    parameters,
    operationId: (operation as OpenApi.OpenAPISpecOperation).operationId
  }))
}

const linksTo = (targets: ReadonlyArray<Target>, id: string) =>
  Object.fromEntries(
    targets.map(({ operationId, parameters }) => [
      operationId,
      {
        operationId,
        parameters: Object.fromEntries(
          parameters.map((name, index) => [
            name,
            index === parameters.length - 1 ? `$response.body#/data/${id}` : `$request.path.${name}`
          ])
        )
      }
    ])
  )

/** Some responses contain the record beside its secret. */
const idPathOf = (response: OpenApi.OpenAPISpecResponses[number], schemas: JsonSchema.Definitions): string => {
  const resolve = (schema: Json): Json => schemas[nameOf(schema) ?? ""] ?? schema
  const fieldsOf = (schema: Json) => (resolve(schema)["properties"] ?? {}) as Record<string, Json>
  const fields = fieldsOf(fieldsOf((response.content?.["application/json"]?.schema ?? {}) as Json)["data"] ?? {})
  if ("id" in fields) return "id"
  const record = Object.keys(fields).find((name) => "id" in fieldsOf(fields[name]!))
  return `${record}/id`
}
