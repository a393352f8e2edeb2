/**
 * The OpenAPI document, derived from the contract. What the derivation cannot know is added here: the codes behind each status,
 * the headers, an example for each body. Nothing is stated here that the code states elsewhere.
 */
import type { JsonSchema } from "effect"
import { OpenApi } from "effect/http-api"
import { Api } from "../Api.ts"
import { exampleBody } from "./Examples.ts"
import { type Operation, operations } from "./Operations.ts"
import { nameOf, withOpenAnswers, withoutEnvelopes, withPlainValues } from "./Schemas.ts"

type Json = JsonSchema.JsonSchema
type Described = OpenApi.OpenAPISpecOperation & { [extension: string]: unknown }
type Spec = OpenApi.OpenAPISpec

/** The tags of operation groups in the contract's order. */
const tagOrder = [
  "runtime",
  "products",
  "policies",
  "features",
  "customers",
  "api-keys",
  "events",
  "ops",
  "webhooks",
  "licenses",
  "devices",
  "commerce",
  "custom-fields",
  "versions",
  "system"
]

const description = `Issues and manages software licenses and answers the license checks of applications.

Management operations take \`Authorization: Bearer <API_TOKEN>\` and the scopes in \`x-required-scopes\`; the scope \`admin\` \
satisfies all of them. Runtime operations take \`Authorization: License <LICENSE_KEY>\`, and their answers are signed: verify them \
with the keys of \`listPublicKeys\`. Every refusal is an \`Error\`, whose \`code\` is one of those listed at the operation. Every answer has the header \`X-Request-Id\`, which is the request's own where that has 8 to 64 letters, digits, dashes and underscores.

Clients ignore fields that they do not know. Requests with fields that are not known are refused.`

/** The contract as this service publishes it; \`baseUrl\` is its public address, where that is known. */
export const publishedApi = (baseUrl?: string) =>
  Api.annotateMerge(
    OpenApi.annotations({
      description,
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
      servers: [{ url: baseUrl ?? "/" }],
      transform: (spec) => published(spec as Spec)
    })
  )

/** The document. */
export const openApiDocument = (baseUrl?: string): Spec => OpenApi.fromApi(publishedApi(baseUrl))

const published = (spec: Spec): Spec => {
  const known = operations()
  const readable = withOpenAnswers(withPlainValues(withoutEnvelopes(spec)))
  const { schemas, securitySchemes } = readable.components
  const resolve = (schema: Json): Json => schemas[nameOf(schema) ?? ""] ?? schema
  const paths = mapOperations(readable.paths, (operation) =>
    described(operation, known.get(operation.operationId)!, resolve)
  )
  const components = { schemas: { ...schemas, Error: errorSchema }, securitySchemes, headers, parameters }
  return { ...readable, paths, components, tags: orderedTags(spec.tags) }
}

const orderedTags = (tags: Spec["tags"]): Spec["tags"] =>
  tagOrder.flatMap((name) => tags.find((tag) => tag.name === name && tag.description !== undefined) ?? [])

const mapOperations = (paths: Spec["paths"], f: (operation: Described) => Described): Spec["paths"] =>
  Object.fromEntries(
    Object.entries(paths).map(([path, item]) => [
      path,
      Object.fromEntries(Object.entries(item).map(([method, operation]) => [method, f(operation as Described)]))
    ])
  )

const described = (
  operation: Described,
  { id, refusals, idempotencyKey }: Operation,
  resolve: (schema: Json) => Json
): Described => {
  const errors = [...refusals].map(([status, codes]) => [status, refusalResponse(status, codes)] as const)
  const successes = Object.entries(operation.responses).filter(([status]) => Number(status) < 400)
  const answers = successes.map(([status, response]) => [
    status,
    {
      ...response,
      description: operation.summary ?? "",
      headers: { ...response.headers, ...headersOf("X-Request-Id") }
    }
  ])
  const key = idempotencyKey === "none" ? [] : [{ $ref: `#/components/parameters/${keyParameters[idempotencyKey]}` }]
  // Where the contract itself names the header, for typed clients, it would stand here twice.
  const own = operation.parameters.filter(({ name }) => name !== "idempotency-key")
  const taken = [...own.map(parameterOf), ...key] as unknown as Described["parameters"]
  const { parameters: _, requestBody, responses: __, ...rest } = operation
  return {
    ...rest,
    ...(taken.length === 0 ? undefined : { parameters: taken }),
    ...(requestBody === undefined ? undefined : { requestBody: withExample(id, requestBody, resolve) }),
    responses: Object.fromEntries([...answers, ...errors])
  } as Described
}

const withExample = (id: string, body: OpenApi.OpenAPISpecRequestBody, resolve: (schema: Json) => Json) => {
  const media = body.content["application/json"]
  if (media === undefined) return body
  return {
    ...body,
    content: { "application/json": { ...media, example: exampleBody(id, media.schema as Json, resolve) } }
  }
}

/** A parameter's description stands beside its schema, where readers look for it; text that is read as a number is one. */
const parameterOf = (parameter: OpenApi.OpenAPISpecParameter) => {
  const { description, ...schema } = parameter.schema as Json & { readonly description?: string }
  const { format } = schema
  const isNumber = format === "int32" || format === "int64"
  return {
    ...parameter,
    schema: isNumber ? { type: "integer", format, minimum: 1 } : schema,
    ...(description === undefined ? undefined : { description })
  }
}

const errorSchema: Json = {
  type: "object",
  properties: {
    error: {
      type: "object",
      properties: {
        code: { type: "string" },
        message: { type: "string", description: "One sentence for people, which may change." },
        detail: { type: "string", description: "What the code is about: a field's path, a missing scope, a limit." }
      },
      required: ["code", "message"]
    },
    meta: { $ref: "#/components/schemas/Meta" }
  },
  required: ["error", "meta"]
}

const refusalResponse = (status: number, codes: ReadonlyArray<string>) => ({
  description: codes.join(", "),
  ...(status in headersByStatus ? { headers: headersOf(...headersByStatus[status]!) } : undefined),
  content: {
    "application/json": {
      schema: {
        allOf: [
          { $ref: "#/components/schemas/Error" },
          { properties: { error: { properties: { code: { enum: [...codes] } } } } }
        ]
      }
    }
  }
})

const headersByStatus: { readonly [status: number]: ReadonlyArray<keyof typeof headers> } = {
  401: ["WWW-Authenticate"],
  429: ["Retry-After", "RateLimit", "RateLimit-Policy"],
  503: ["Retry-After"]
}

const headers = {
  "X-Request-Id": { description: "The request's id, as in meta.", required: true, schema: { type: "string" } },
  "WWW-Authenticate": { description: "The credential that is wanted.", required: true, schema: { type: "string" } },
  "Retry-After": { description: "Seconds to wait before the next try.", required: true, schema: { type: "integer" } },
  RateLimit: {
    description:
      'Where the request stands with each limit that counts it, as `"runtime";r=2999;t=60`. Answers of success have it too.',
    required: true,
    schema: { type: "string" }
  },
  "RateLimit-Policy": {
    description: 'Those limits, as `"runtime";q=3000;w=60`.',
    required: true,
    schema: { type: "string" }
  }
}

const headersOf = (...names: ReadonlyArray<keyof typeof headers>) =>
  Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))

const keyParameters = { optional: "IdempotencyKey", required: "RequiredIdempotencyKey" }

const keyParameter = (required: boolean) => ({
  name: "Idempotency-Key",
  in: "header",
  required,
  description:
    "A text of the caller's own: a repeat with the same key and body gets the first answer again, and changes nothing.",
  schema: { type: "string", minLength: 1, maxLength: 255 }
})

const parameters = { IdempotencyKey: keyParameter(false), RequiredIdempotencyKey: keyParameter(true) }
