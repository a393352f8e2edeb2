/**
 * The contract as text for language models, derived from the OpenAPI document: a short index, a text of each operation, and a full
 * text. Lines are short and state one fact, so that an excerpt is meaningful.
 */
import type { JsonSchema } from "effect"
import type { OpenApi } from "effect/http-api"
import { type Code, statuses } from "../../../contract/api/ErrorCode.ts"
import { dataOf, nameOf, namesWithin, operationsByTag, type PublishedOperation } from "../Schemas.ts"
import { typeOf } from "../TypeWords.ts"
import { errorCatalogue } from "./ErrorCatalogue.ts"
import { facts } from "./Facts.ts"

type Json = JsonSchema.JsonSchema
type Spec = OpenApi.OpenAPISpec

export const baseUrlPlaceholder = "{base_url}"

export interface SitePage {
  readonly path: string
  readonly title: string
  readonly description: string
  /** Of the site, as `Guides`. */
  readonly section: string
}

export const operationPath = (operationId: string): string => `/docs/operations/${operationId}.md`

/** `/llms.txt`, by the convention of llmstxt.org: a summary, then sections of links. */
export const llmsIndex = (spec: Spec, baseUrl: string, pages: ReadonlyArray<SitePage> = []): string =>
  [
    ...introduction(baseUrl),
    "## Documents",
    "",
    `- [Everything in one text](${baseUrl}/llms-full.txt): operations with fields, errors and examples; webhooks, offline envelopes, repeated requests`,
    `- [OpenAPI document](${baseUrl}/openapi.yaml): schemas, statuses and codes`,
    "",
    ...[...Map.groupBy(pages, ({ section }) => section)].flatMap(([section, itsPages]) => [
      `## ${section}`,
      "",
      ...itsPages.map((page) => guideLine(page, baseUrl)),
      ""
    ]),
    ...operationsByTag(spec).flatMap(({ name, operations }) => [
      `## Operations: ${name}`,
      "",
      ...operations.map(
        ({ method, path, operation }) =>
          `- [${operation.operationId}](${baseUrl}${operationPath(operation.operationId)}): ${operation.summary}. \`${method} ${path}\`${scopesOf(operation)}`
      ),
      ""
    ]),
    "## Optional",
    "",
    `- [OpenAPI document as JSON](${baseUrl}/openapi.json): the same document`,
    `- [Reference for people](${baseUrl}/docs/): a page with forms that send requests`,
    ""
  ].join("\n")

const guideLine = ({ description, path, title }: SitePage, baseUrl: string): string =>
  `- [${title}](${baseUrl}/docs/${path}): ${description}`

export const operationTexts = (spec: Spec, baseUrl: string): ReadonlyMap<string, string> =>
  new Map(
    operationsByTag(spec)
      .flatMap(({ operations }) => operations)
      .map((entry) => [entry.operation.operationId, operationDocument(entry, spec, baseUrl)])
  )

const operationDocument = (entry: PublishedOperation, spec: Spec, baseUrl: string): string =>
  [
    ...operationText(entry, spec, baseUrl).with(0, `# ${entry.operation.operationId}`),
    ...[...namesWithin(shapesOf(entry.operation), spec.components.schemas)].flatMap((name) =>
      dataOf(spec.components.schemas[name]!) === undefined ? schemaSection(name, spec) : []
    ),
    `Envelopes, errors and lists: ${baseUrl}/llms.txt`,
    ""
  ].join("\n")

/** `/llms-full.txt`: every operation with its fields, errors and an example, then every schema. */
export const llmsFull = (spec: Spec, baseUrl: string): string =>
  [
    ...introduction(baseUrl),
    ...facts(),
    ...errorLines,
    ...operationsByTag(spec).flatMap(({ name, description, operations }) => [
      `# ${name}`,
      "",
      ...(description === undefined ? [] : [description, ""]),
      ...operations.flatMap((operation) => operationText(operation, spec, baseUrl))
    ]),
    "# Schemas",
    "",
    // The introduction describes the envelopes.
    ...Object.entries(spec.components.schemas).flatMap(([name, schema]) =>
      dataOf(schema) === undefined ? schemaSection(name, spec) : []
    )
  ].join("\n")

const schemaSection = (name: string, spec: Spec): ReadonlyArray<string> => [
  `## ${name}`,
  "",
  ...schemaLines(spec.components.schemas[name]!),
  ""
]

const errorLines: ReadonlyArray<string> = [
  "# Error codes",
  "",
  ...Object.entries(errorCatalogue).map(
    ([code, { remedy, when }]) => `- ${code} (${statuses[code as Code]}): ${when} ${remedy}`
  ),
  ""
]

const introduction = (baseUrl: string): ReadonlyArray<string> => [
  "# Licensing Service",
  "",
  "> Issues and manages software licenses, and serves runtime license checks. Self-hosted. JSON over HTTP.",
  "",
  `- Base address: ${baseUrl}`,
  "- Management operations: `Authorization: Bearer <API_TOKEN>`. The scope `admin` satisfies all; each operation lists its required scopes.",
  "- Runtime operations (`/api/v1/license/…`): `Authorization: License <LICENSE_KEY>`. Responses are signed with Ed25519 over the JSON of `data`, and refusals of a right key over the JSON of `error`.",
  "- Responses are `{data, meta}`, lists `{data, page_info: {next_cursor}, meta}`, runtime responses `{data, signature, meta}`, refusals `{error: {code, message, detail?, details?}, meta}`, runtime refusals `{error, signature, meta}`. 204 has no body.",
  "- Lists: `limit` (1 to 200, 50 by default) and `cursor` (the previous page's `next_cursor`); `next_cursor` is null on the last page.",
  "- Bodies are JSON objects; unknown fields are refused (400 INVALID_JSON, `detail` is the field's path), and so are invalid values (422 VALIDATION_ERROR). `details` lists all wrong fields as `{path, message}`.",
  "- PATCH changes only the fields in the body; null clears an optional field. GET and PATCH of one record return its `ETag`; a PATCH with `If-Match: <ETag>` is 409 CONFLICT if the record was changed since.",
  "- `Idempotency-Key` on POST, PUT, PATCH and DELETE of management operations: a repeated request with the same key and body gets the first response again.",
  "- Times are ISO 8601 with an offset. Ids are opaque strings.",
  ""
]

/** Without refusals, which the introduction describes. */
const shapesOf = ({ parameters, requestBody, responses }: PublishedOperation["operation"]): unknown => [
  parameters,
  requestBody,
  Object.entries(responses).filter(([status]) => Number(status) < 400)
]

const scopesOf = ({ "x-required-scopes": scopes }: PublishedOperation["operation"]) =>
  scopes === undefined ? "" : `; ${scopes.length === 0 ? "any token" : scopes.join(", ")}`

const operationText = (
  { method, path, operation }: PublishedOperation,
  spec: Spec,
  baseUrl: string
): ReadonlyArray<string> => {
  const body = operation.requestBody?.content["application/json"] as { schema: Json; example?: unknown } | undefined
  return [
    `## ${operation.operationId}`,
    "",
    `\`${method} ${path}\`: ${operation.summary}.${operation.description === undefined ? "" : ` ${operation.description}`}`,
    "",
    `- Authorization: ${authorizationOf(operation)}`,
    ...(operation.parameters ?? []).flatMap(parameterLine),
    ...(body === undefined ? [] : [`- Body: ${typeOf(body.schema)}`, ...inlineFields(body.schema)]),
    ...Object.entries(operation.responses).map(
      ([status, response]) => `- ${status}: ${responseText(Number(status), response, spec)}`
    ),
    ...(body?.example === undefined ? [] : ["", ...curl(method, baseUrl + path, operation, body.example)]),
    ""
  ]
}

const authorizationOf = (operation: PublishedOperation["operation"]): string => {
  const names = operation.security.flatMap((requirement) => Object.keys(requirement))
  if (names.includes("LicenseKey")) return "`License <LICENSE_KEY>`"
  return names.length === 0 ? "none" : `\`Bearer <API_TOKEN>\`${scopesOf(operation).replace("; ", " with ")}`
}

const parameterLine = (parameter: OpenApi.OpenAPISpecParameter & { readonly $ref?: string }): ReadonlyArray<string> => {
  if (parameter.$ref !== undefined) {
    return [`- Header \`Idempotency-Key\` (string, ${parameter.$ref.includes("Required") ? "required" : "optional"})`]
  }
  const { name, required, schema, description } = parameter
  const location = parameter.in === "path" ? "Path" : parameter.in === "query" ? "Query" : "Header"
  return [
    `- ${location} \`${name}\` (${typeOf(schema as Json)}, ${required ? "required" : "optional"})${description === undefined ? "" : `: ${description}`}`
  ]
}

const responseText = (status: number, response: OpenApi.OpenApiSpecResponse, spec: Spec): string => {
  if (status >= 400) return response.description
  const schema = response.content?.["application/json"]?.schema as Json | undefined
  if (schema === undefined) return "no body, or a file"
  const envelope = spec.components.schemas[nameOf(schema) ?? ""] ?? schema
  const data = dataOf(envelope)
  return data === undefined ? typeOf(schema) : `data: ${typeOf(data)}`
}

const curl = (
  method: string,
  address: string,
  operation: PublishedOperation["operation"],
  example: unknown
): ReadonlyArray<string> => {
  const credential = authorizationOf(operation).includes("LICENSE_KEY") ? "License $LICENSE_KEY" : "Bearer $API_TOKEN"
  return [
    "```sh",
    `curl -X ${method} ${address} \\`,
    `  -H "Authorization: ${credential}" -H "Content-Type: application/json" \\`,
    `  -d '${JSON.stringify(example)}'`,
    "```"
  ]
}

/** A named schema has its own section. */
const inlineFields = (schema: Json): ReadonlyArray<string> =>
  nameOf(schema) === undefined ? schemaLines(schema).map((line) => `  ${line}`) : []

const schemaLines = (schema: Json): ReadonlyArray<string> => {
  const properties = schema["properties"] as { readonly [name: string]: Json } | undefined
  const required = (schema["required"] ?? []) as ReadonlyArray<string>
  const description = typeof schema["description"] === "string" ? [schema["description"], ""] : []
  if (properties === undefined) return [...description, `- ${typeOf(schema)}`]
  return [
    ...description,
    ...Object.entries(properties).map(([name, field]) => {
      const description = typeof field["description"] === "string" ? `: ${field["description"]}` : ""
      return `- \`${name}\` (${typeOf(field)}, ${required.includes(name) ? "required" : "optional"})${description}`
    })
  ]
}
