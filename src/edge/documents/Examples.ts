/**
 * Examples for the documents: the requests and responses that a test recorded from a run of the service (docs/TESTING.md,
 * "Examples"). `npm run examples` records them again.
 */
import { readFileSync } from "node:fs"
import type { JsonSchema } from "effect"
import type { OpenApi } from "effect/http-api"
import { mapOperations, nameOf, type SpecOperation } from "./Schemas.ts"

type Json = JsonSchema.JsonSchema
type Paths = OpenApi.OpenAPISpec["paths"]
type Response = OpenApi.OpenAPISpecResponses[number]

interface Example {
  readonly parameters?: Readonly<Record<string, string>>
  readonly body?: unknown
  readonly responses: Readonly<Record<string, Readonly<Record<string, unknown>>>>
}

export interface Examples {
  readonly operations: Readonly<Record<string, Example>>
  /** By code; a signed refusal's name ends with `_SIGNED`. */
  readonly refusals: Readonly<Record<string, unknown>>
  readonly deliveries: {
    /** The endpoint's secret, which verifies all deliveries. */
    readonly secret: string
    readonly byType: Readonly<Record<string, Delivery>>
  }
}

export interface Delivery {
  readonly headers: Readonly<Record<string, string>>
  /** The signatures cover it as JSON without spaces. */
  readonly body: unknown
}

export const readExamples = (): Examples =>
  JSON.parse(readFileSync(new URL("../../../schema/examples.json", import.meta.url), "utf8"))

export const refusalExamples = ({ refusals }: Examples) =>
  Object.fromEntries(Object.entries(refusals).map(([name, value]) => [name, { value }]))

export const withExamples = (paths: Paths, { operations, refusals }: Examples): Paths =>
  mapOperations(paths, ({ operation }) => {
    const example = operations[operation.operationId]
    const responses = Object.entries(operation.responses).map(([status, response]) => [
      status,
      Number(status) < 400
        ? withResponseExample(response, example?.responses[status] ?? {})
        : withRefusalExamples(response, refusals)
    ])
    return { ...withRequestExample(operation, example), responses: Object.fromEntries(responses) }
  })

const withRequestExample = (operation: SpecOperation, example: Example | undefined): SpecOperation => {
  if (example === undefined) return operation
  const { parameters = {}, body } = example
  const media = operation.requestBody?.content["application/json"]
  return {
    ...operation,
    ...(operation.parameters && {
      parameters: operation.parameters.map((parameter) =>
        parameter.name in parameters ? { ...parameter, example: exampleOf(parameter, parameters) } : parameter
      )
    }),
    ...(media !== undefined &&
      body !== undefined && {
        requestBody: { ...operation.requestBody, content: { "application/json": { ...media, example: body } } }
      })
  } as SpecOperation
}

const exampleOf = ({ name, schema }: OpenApi.OpenAPISpecParameter, texts: Readonly<Record<string, string>>) => {
  const { type } = schema as Json
  return type === "integer" ? Number(texts[name]) : type === "array" ? texts[name]!.split(",") : texts[name]
}

const withResponseExample = (response: Response, examples: Readonly<Record<string, unknown>>): Response => {
  if (response.content === undefined) return response
  const content = Object.entries(response.content).map(([type, media]) => [
    type,
    type in examples ? { ...media, example: examples[type] } : media
  ])
  return { ...response, content: Object.fromEntries(content) }
}

/** Operations share the examples of refusals. */
const withRefusalExamples = (response: Response, refusals: Examples["refusals"]): Response => {
  const media = response.content?.["application/json"]
  const codes = (response as { readonly "x-error-codes"?: ReadonlyArray<string> })["x-error-codes"]
  if (media === undefined || codes === undefined) return response
  const isSigned = nameOf(media.schema as Json) === "SignedErrorResponse"
  const names = codes.map((code) => (isSigned && `${code}_SIGNED` in refusals ? `${code}_SIGNED` : code))
  const known = names.filter((name) => name in refusals)
  if (known.length === 0) return response
  const examples = Object.fromEntries(known.map((name) => [name, { $ref: `#/components/examples/${name}` }]))
  return { ...response, content: { "application/json": { ...media, examples } } } as Response
}
