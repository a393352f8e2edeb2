/**
 * Names the envelopes of responses, so that generated clients have one type for each: `LicenseResponse` and `LicenseList` for a schema
 * with a name, otherwise `TransferLicenseResult`.
 */
import type { JsonSchema } from "effect"
import type { OpenApi } from "effect/http-api"
import { mapOperations, nameOf, transformed } from "./Schemas.ts"

type Json = JsonSchema.JsonSchema
type Spec = OpenApi.OpenAPISpec
type Response = OpenApi.OpenAPISpecResponses[number]

export const withNamedEnvelopes = (spec: Spec): Spec => {
  const named: Record<string, Json> = {}

  const refer = (name: string, schema: Json): Json => {
    const existing = named[name] ?? spec.components.schemas[name]
    if (existing !== undefined && JSON.stringify(existing) !== JSON.stringify(schema))
      throw new Error(`Two different schemas have the name ${name}`)
    named[name] = schema
    return { $ref: `#/components/schemas/${name}` }
  }

  const responseOf = (operationId: string, response: Response): Response => {
    const media = response.content?.["application/json"]
    const schema = media?.schema as Json | undefined
    if (media === undefined || schema === undefined || nameOf(schema) !== undefined) return response
    const content = {
      ...response.content,
      "application/json": { ...media, schema: refer(name(operationId, schema), schema) }
    }
    return { ...response, content } as Response
  }

  const paths = mapOperations(spec.paths, ({ operation }) => {
    const responses = Object.entries(operation.responses).map(([status, response]) => [
      status,
      Number(status) < 400 ? responseOf(operation.operationId, response) : response
    ])
    return { ...operation, responses: Object.fromEntries(responses) }
  })
  return {
    ...spec,
    paths,
    components: { ...spec.components, schemas: { ...spec.components.schemas, ...named } }
  }
}

const name = (operationId: string, schema: Json): string => {
  const data = (schema["properties"] as Record<string, Json> | undefined)?.["data"] ?? {}
  const item = nameOf((data["items"] as Json | undefined) ?? {})
  if (item !== undefined) return `${item}List`
  const own = nameOf(data)
  // Generators name their own types after the operation: TransferLicenseResponse.
  return own === undefined ? `${operationId.charAt(0).toUpperCase()}${operationId.slice(1)}Result` : `${own}Response`
}

/** The generator adds a number to the name of a variant with its own default: refers to the plain name instead. */
export const withoutVariants = (spec: Spec): Spec => {
  const { schemas } = spec.components
  const variants = Object.keys(schemas).filter((name) => plainNameOf(name) in schemas && plainNameOf(name) !== name)
  const plain = (value: unknown): unknown =>
    transformed(value, (schema) => {
      const name = nameOf(schema)
      if (name === undefined || !variants.includes(name)) return undefined
      const own = Object.entries(schemas[name]!).filter(
        ([key, inner]) => JSON.stringify(inner) !== JSON.stringify(schemas[plainNameOf(name)]![key])
      )
      return { ...schema, $ref: `#/components/schemas/${plainNameOf(name)}`, ...Object.fromEntries(own) }
    })
  const kept = Object.entries(schemas).filter(([name]) => !variants.includes(name))
  return {
    ...spec,
    paths: plain(spec.paths) as Spec["paths"],
    components: { ...spec.components, schemas: plain(Object.fromEntries(kept)) as Spec["components"]["schemas"] }
  }
}

const plainNameOf = (name: string): string => name.replace(/_\d+$/, "")
