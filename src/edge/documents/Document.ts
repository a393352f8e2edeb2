/**
 * The OpenAPI document, derived from the contract. This module adds what the derivation lacks: the codes of each status,
 * the headers, an example for each body. It repeats nothing that the contract declares.
 */
import { Context, type JsonSchema } from "effect"
import { OpenApi } from "effect/http-api"
import { Api } from "../../Api.ts"
import { ifMatchMax, ifMatchPattern } from "../../access/preconditions/Conditional.ts"
import { isSignedStatus } from "../../contract/api/ErrorCode.ts"
import { BodyOptional, ServesRanges } from "../../contract/api/Requests.ts"
import {
  operationDescription,
  parameterDescription,
  successDescription,
  withFieldDescriptions
} from "./Descriptions.ts"
import { type Operation, operations } from "./DocumentedOperations.ts"
import { withNamedEnvelopes, withoutVariants } from "./Envelopes.ts"
import { errorSchemas } from "./ErrorSchemas.ts"
import { readExamples, refusalExamples, withExamples } from "./Examples.ts"
import { withLinks } from "./Links.ts"
import {
  type LocatedOperation,
  mapOperations,
  nameOf,
  type SpecOperation,
  withOpenResponses,
  withoutEnvelopes,
  withPlainValues
} from "./Schemas.ts"
import { webhookEventSchema, webhooks } from "./WebhookOperations.ts"

type Json = JsonSchema.JsonSchema
type Spec = OpenApi.OpenAPISpec

const description = `Issues and manages software licenses, and serves the license checks of applications.

Management operations take \`Authorization: Bearer <API_TOKEN>\` and the scopes in \`x-required-scopes\`; the scope \`admin\` \
satisfies all of them. \`x-reaches-products\` tells whether a token limited to products can call an operation. Runtime operations take \`Authorization: License <LICENSE_KEY>\`, and their responses are signed: verify them \
with the keys of \`listPublicKeys\`. Refusals of a right license key are signed, too. Every refusal is an \`ErrorResponse\`, whose \`code\` is one of those listed at the operation. Every response has the header \`X-Request-Id\`. It repeats the request's own id, if that has 8 to 64 letters, digits, dashes and underscores.

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

export const openApiDocument = (baseUrl?: string): Spec => OpenApi.fromApi(publishedApi(baseUrl))

const publish = (spec: Spec): Spec => {
  const byId = operations()
  const readable = withNamedEnvelopes(withOpenResponses(withPlainValues(withoutVariants(withoutEnvelopes(spec)))))
  const { schemas } = readable.components
  const paths = mapOperations(readable.paths, (located) =>
    describe({ ...located, ...byId.get(located.operation.operationId)! })
  )
  const examples = readExamples()
  return {
    ...readable,
    info: { ...readable.info, contact: { name: "The operator of this service" } },
    paths: withExamples(withLinks(paths, schemas), examples),
    webhooks: webhooks(examples.deliveries),
    components: {
      schemas: withFieldDescriptions({ ...schemas, ...errorSchemas, WebhookEvent: webhookEventSchema }),
      examples: refusalExamples(examples),
      securitySchemes,
      headers,
      parameters
    },
    // Groups without a description share another group's tag.
    tags: spec.tags.filter((tag) => tag.description !== undefined)
  } as Spec
}

const securitySchemes = {
  ApiToken: { type: "http", scheme: "bearer", description: "An API token, or a JWT of the configured OIDC issuer." },
  LicenseKey: {
    type: "apiKey",
    in: "header",
    name: "Authorization",
    description: "The word `License`, a space, and the license key."
  }
}

interface DescribedOperation extends Operation, LocatedOperation {}

const describe = ({
  endpoint,
  refusals,
  hasTag,
  idempotencyKey,
  isConditional,
  signsRefusals,
  takesMetadata,
  reachesProducts,
  path,
  method,
  operation
}: DescribedOperation): SpecOperation => {
  const errors = [...refusals].map(([status, codes]) => {
    const schema = signsRefusals && isSignedStatus(status) ? "SignedErrorResponse" : "ErrorResponse"
    return [status, refusalResponse(status, codes, schema)] as const
  })
  const declared = Object.entries(operation.responses).filter(([status]) => Number(status) < 400)
  const schemaOf = ({ content }: OpenApi.OpenAPISpecResponses[number]) =>
    nameOf((content?.["application/json"]?.schema ?? {}) as Json) ?? (content === undefined ? undefined : "File")
  const successes = declared.map(([status, response]) => [
    status,
    {
      ...response,
      description: successDescription({ path, method, schema: schemaOf(response) }),
      headers: { ...response.headers, ...headersOf("X-Request-Id", ...(hasTag ? (["ETag"] as const) : [])) }
    }
  ])
  const servesRanges = Context.get(endpoint.annotations, ServesRanges)
  const key = idempotencyKey === "none" ? [] : [{ $ref: `#/components/parameters/${keyParameters[idempotencyKey]}` }]
  // Some operations declare this header for typed clients: without the filter it would be listed twice.
  const declaredParameters = operation.parameters.filter(({ name }) => name !== "idempotency-key")
  const parameters = [
    ...declaredParameters.map((parameter) => parameterOf(path, parameter)),
    ...(isConditional ? [{ $ref: "#/components/parameters/IfMatch" }] : []),
    ...(takesMetadata ? [{ $ref: "#/components/parameters/MetadataFilter" }] : []),
    ...(servesRanges
      ? [{ $ref: "#/components/parameters/Range" }, { $ref: "#/components/parameters/IfNoneMatch" }]
      : []),
    ...key
  ] as unknown as SpecOperation["parameters"]
  const { parameters: _, requestBody, responses: __, ...rest } = operation
  const isOptional = Context.get(endpoint.annotations, BodyOptional)
  const [success] = declared
  const description =
    operation["description"] ??
    (success && operationDescription({ path, method, schema: schemaOf(success[1]) })) ??
    operation.summary
  return {
    ...rest,
    ...(reachesProducts === undefined ? undefined : { "x-reaches-products": reachesProducts }),
    description,
    ...(parameters.length === 0 ? undefined : { parameters }),
    ...(requestBody === undefined ? undefined : { requestBody: { ...requestBody, required: !isOptional } }),
    responses: { ...Object.fromEntries([...successes, ...errors]), ...(servesRanges ? rangeResponses : undefined) }
  } as SpecOperation
}

/**
 * Moves a parameter's description from its schema to the parameter. Text with a number format becomes an integer, text with
 * items a list separated by commas.
 */
const parameterOf = (path: string, parameter: OpenApi.OpenAPISpecParameter) => {
  const { description = parameterDescription(path, parameter), ...given } = parameter.schema as Json & {
    readonly description?: string
  }
  const { format, ...rest } = given
  const isNumber = format === "int32" || format === "int64" || format === "integer"
  const schema = format === "integer" ? rest : given
  return {
    ...parameter,
    ...("items" in schema ? { style: "form", explode: false } : undefined),
    schema: isNumber
      ? { minimum: 1, ...schema, type: "integer" }
      : { ...schema, ...("items" in schema ? { type: "array" } : undefined) },
    ...(description === undefined ? undefined : { description })
  }
}

const refusalResponse = (
  status: number,
  codes: ReadonlyArray<string>,
  schema: "ErrorResponse" | "SignedErrorResponse"
) => ({
  description: codes.join(", "),
  "x-error-codes": codes,
  ...(status in headersByStatus ? { headers: headersOf(...headersByStatus[status]!) } : undefined),
  content: {
    "application/json": {
      schema: { $ref: `#/components/schemas/${schema}` }
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
  ETag: {
    description:
      "Identifies the state that a PATCH of the record can change: send it as If-Match. A replayed response lacks it.",
    schema: { type: "string" }
  },
  "Content-Range": {
    description: "Which bytes these are, and of how many.",
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

const parameters = {
  IdempotencyKey: keyParameter(false),
  RequiredIdempotencyKey: keyParameter(true),
  IfMatch: {
    name: "If-Match",
    in: "header",
    required: false,
    description:
      "The ETag of the record's last response. The change is refused with 409 CONFLICT if the record has changed since then.",
    schema: { type: "string", maxLength: ifMatchMax, pattern: ifMatchPattern }
  },
  Range: {
    name: "Range",
    in: "header",
    required: false,
    description:
      "One range of bytes, such as `bytes=0-1023`. An invalid one, or one beyond the end, gets the whole file.",
    schema: { type: "string" }
  },
  IfNoneMatch: {
    name: "If-None-Match",
    in: "header",
    required: false,
    description: "The ETag of a file that is already there: it is not sent again.",
    schema: { type: "string" }
  },
  MetadataFilter: {
    name: "metadata",
    in: "query",
    required: false,
    style: "deepObject",
    explode: true,
    description:
      "`metadata[key]=value`: only records whose metadata has this value, at most 10 keys. Text also matches a number, true or false that is written like it.",
    schema: { type: "object", additionalProperties: { type: "string" } }
  }
}

const rangeResponses = {
  206: {
    description: "The requested range of the file, in its content type.",
    headers: headersOf("X-Request-Id", "Content-Range"),
    content: { "*/*": { schema: { type: "string", format: "binary" } } }
  },
  304: { description: "The file is the one that If-None-Match names.", headers: headersOf("X-Request-Id") }
}
