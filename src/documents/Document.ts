/**
 * The OpenAPI document, derived from the contract. This module adds what the derivation lacks: the codes of each status,
 * the headers, an example for each body. It repeats nothing that the contract declares.
 */
import { type JsonSchema, Schema } from "effect"
import { OpenApi } from "effect/http-api"
import { Api } from "../Api.ts"
import { isSignedStatus } from "../api/ErrorCode.ts"
import { RefusalFacts } from "../api/RefusalFacts.ts"
import { exampleBody } from "./Examples.ts"
import { type Operation, operations } from "./Operations.ts"
import { nameOf, withOpenResponses, withoutEnvelopes, withPlainValues } from "./Schemas.ts"

type Json = JsonSchema.JsonSchema
type SpecOperation = OpenApi.OpenAPISpecOperation & { [extension: string]: unknown }
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

const description = `Issues and manages software licenses, and serves the license checks of applications.

Management operations take \`Authorization: Bearer <API_TOKEN>\` and the scopes in \`x-required-scopes\`; the scope \`admin\` \
satisfies all of them. Runtime operations take \`Authorization: License <LICENSE_KEY>\`, and their responses are signed: verify them \
with the keys of \`listPublicKeys\`. Refusals of a right license key are signed, too. Every refusal is an \`Error\`, whose \`code\` is one of those listed at the operation. Every response has the header \`X-Request-Id\`. It repeats the request's own id, if that has 8 to 64 letters, digits, dashes and underscores.

Clients must ignore unknown fields. Requests with unknown fields are refused.`

/** The contract as this service publishes it; \`baseUrl\` is its public address, if known. */
export const publishedApi = (baseUrl?: string) =>
  Api.annotateMerge(
    OpenApi.annotations({
      description,
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
      servers: [{ url: baseUrl ?? "/" }],
      transform: (spec) => publish(spec as Spec)
    })
  )

/** The document. */
export const openApiDocument = (baseUrl?: string): Spec => OpenApi.fromApi(publishedApi(baseUrl))

const publish = (spec: Spec): Spec => {
  const byId = operations()
  const readable = withOpenResponses(withPlainValues(withSignedError(withoutEnvelopes(spec))))
  const { schemas, securitySchemes } = readable.components
  const resolve = (schema: Json): Json => schemas[nameOf(schema) ?? ""] ?? schema
  const paths = mapOperations(readable.paths, (operation) =>
    describe(operation, byId.get(operation.operationId)!, resolve)
  )
  const components = { schemas: { ...schemas, Error: errorSchema }, securitySchemes, headers, parameters }
  return { ...readable, paths, components, tags: orderedTags(spec.tags) }
}

const orderedTags = (tags: Spec["tags"]): Spec["tags"] =>
  tagOrder.flatMap((name) => tags.find((tag) => tag.name === name && tag.description !== undefined) ?? [])

const mapOperations = (paths: Spec["paths"], f: (operation: SpecOperation) => SpecOperation): Spec["paths"] =>
  Object.fromEntries(
    Object.entries(paths).map(([path, item]) => [
      path,
      Object.fromEntries(Object.entries(item).map(([method, operation]) => [method, f(operation as SpecOperation)]))
    ])
  )

const describe = (
  operation: SpecOperation,
  { id, refusals, idempotencyKey, signsRefusals }: Operation,
  resolve: (schema: Json) => Json
): SpecOperation => {
  const errors = [...refusals].map(([status, codes]) => {
    const schema = signsRefusals && isSignedStatus(status) ? "SignedError" : "Error"
    return [status, refusalResponse(status, codes, schema)] as const
  })
  const declared = Object.entries(operation.responses).filter(([status]) => Number(status) < 400)
  const successes = declared.map(([status, response]) => [
    status,
    {
      ...response,
      description: operation.summary ?? "",
      headers: { ...response.headers, ...headersOf("X-Request-Id") }
    }
  ])
  const key = idempotencyKey === "none" ? [] : [{ $ref: `#/components/parameters/${keyParameters[idempotencyKey]}` }]
  // Some operations declare the header themselves, for typed clients: without the filter it would be listed twice.
  const declaredParameters = operation.parameters.filter(({ name }) => name !== "idempotency-key")
  const parameters = [...declaredParameters.map(parameterOf), ...key] as unknown as SpecOperation["parameters"]
  const { parameters: _, requestBody, responses: __, ...rest } = operation
  return {
    ...rest,
    ...(parameters.length === 0 ? undefined : { parameters }),
    ...(requestBody === undefined ? undefined : { requestBody: withExample(id, requestBody, resolve) }),
    responses: Object.fromEntries([...successes, ...errors])
  } as SpecOperation
}

const withExample = (id: string, body: OpenApi.OpenAPISpecRequestBody, resolve: (schema: Json) => Json) => {
  const media = body.content["application/json"]
  if (media === undefined) return body
  return {
    ...body,
    content: { "application/json": { ...media, example: exampleBody(id, media.schema as Json, resolve) } }
  }
}

/** Moves a parameter's description from its schema to the parameter, and describes text with a number format as an integer. */
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
        message: { type: "string", description: "One sentence for people. It may change." },
        detail: { type: "string", description: "The subject of the code: a field's path, a missing scope, a limit." },
        details: {
          type: "array",
          description:
            "Each wrong field of a refused body or query: INVALID_JSON, VALIDATION_ERROR, INVALID_QUERY. The first one is in `detail` and `message`, too.",
          maxItems: 20,
          items: {
            type: "object",
            properties: { path: { type: "string" }, message: { type: "string" } },
            required: ["path", "message"]
          }
        }
      },
      required: ["code", "message"]
    },
    meta: { $ref: "#/components/schemas/Meta" }
  },
  required: ["error", "meta"]
}

/** The refusal of a runtime operation. It is signed if the license key is right. */
const withSignedError = (spec: Spec): Spec => {
  const { error, meta } = errorSchema["properties"] as { readonly error: Json; readonly meta: Json }
  const facts = Schema.toJsonSchemaDocument(RefusalFacts).schema
  const properties = { ...(error["properties"] as object), ...(facts["properties"] as object) }
  const SignedError: Json = {
    type: "object",
    description:
      "A refusal of a runtime operation. If the license key is right, the signature covers the JSON bytes of `error` exactly as sent, and `error` has the facts that explain the refusal. A client ignores a refusal without a valid signature.",
    properties: { error: { ...error, properties }, signature: { $ref: "#/components/schemas/Signature" }, meta },
    required: ["error", "meta"]
  }
  return { ...spec, components: { ...spec.components, schemas: { ...spec.components.schemas, SignedError } } }
}

const refusalResponse = (status: number, codes: ReadonlyArray<string>, schema: "Error" | "SignedError") => ({
  description: codes.join(", "),
  ...(status in headersByStatus ? { headers: headersOf(...headersByStatus[status]!) } : undefined),
  content: {
    "application/json": {
      schema: {
        allOf: [
          { $ref: `#/components/schemas/${schema}` },
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
  "X-Request-Id": {
    description: "The request's id, also in `meta.request_id`.",
    required: true,
    schema: { type: "string" }
  },
  "WWW-Authenticate": { description: "The required credential.", required: true, schema: { type: "string" } },
  "Retry-After": { description: "Seconds to wait before a retry.", required: true, schema: { type: "integer" } },
  RateLimit: {
    description:
      'The state of each rate limit that counts the request, for example `"runtime";r=2999;t=60`. Successful responses have it, too.',
    required: true,
    schema: { type: "string" }
  },
  "RateLimit-Policy": {
    description: 'Those limits, for example `"runtime";q=3000;w=60`.',
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
    "A text chosen by the caller. A repeated request with the same key and body gets the first response again, and changes nothing.",
  schema: { type: "string", minLength: 1, maxLength: 255 }
})

const parameters = { IdempotencyKey: keyParameter(false), RequiredIdempotencyKey: keyParameter(true) }
