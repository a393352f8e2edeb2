/**
 * The API reference as HTML, derived from the OpenAPI document: each operation with its parameters, fields, codes and an example.
 * The light page and the documentation site show the same parts.
 */
import type { JsonSchema } from "effect"
import type { OpenApi } from "effect/http-api"
import { dataOf, nameOf, operationsByTag, type PublishedOperation } from "../Schemas.ts"
import { typeOf } from "../TypeWords.ts"
import { escaped, prose, table } from "./Html.ts"

type Json = JsonSchema.JsonSchema
type Spec = OpenApi.OpenAPISpec
type Operation = PublishedOperation["operation"]
type Parameter = OpenApi.OpenAPISpecParameter & { readonly $ref?: string }

export interface Places {
  readonly schema: (name: string) => string
  readonly code: (code: string) => string
}

export interface Part {
  readonly id: string
  readonly title: string
  /** One line, except examples, which have no empty line: so a Markdown page may contain it. */
  readonly html: string
}

export interface Group {
  readonly name: string
  readonly description: string
  readonly operations: ReadonlyArray<Part>
}

export const referenceGroups = (spec: Spec, places: Places): ReadonlyArray<Group> =>
  operationsByTag(spec).map(({ description = "", name, operations }) => ({
    name,
    description,
    operations: operations.map((located) => ({
      id: located.operation.operationId,
      title: located.operation.summary ?? located.operation.operationId,
      html: operationHtml(located, spec, places)
    }))
  }))

/** The named schemas except envelopes, which the introduction describes. */
export const referenceSchemas = (spec: Spec, places: Places): ReadonlyArray<Part> =>
  Object.entries(spec.components.schemas).flatMap(([name, schema]) =>
    dataOf(schema) === undefined
      ? [{ id: name, title: name, html: `<div class="part">${fieldsHtml(schema, spec, places)}</div>` }]
      : []
  )

const operationHtml = (located: PublishedOperation, spec: Spec, places: Places): string => {
  const { method, operation, path } = located
  const parameters = ((operation.parameters ?? []) as ReadonlyArray<Parameter>).map((parameter) =>
    resolved(parameter, spec)
  )
  const body = operation.requestBody?.content["application/json"] as { schema: Json; example?: unknown } | undefined
  const isDescribed = operation.description !== undefined && operation.description !== operation.summary
  return [
    `<div class="part"><p class="line"><b class="method ${method.toLowerCase()}">${method}</b> <code>${escaped(path)}</code></p>`,
    isDescribed ? `<p>${prose(operation.description!)}</p>` : "",
    `<p class="credential">${credentialHtml(operation)}</p>`,
    parametersHtml(parameters, spec, places),
    body === undefined ? "" : `<h4>Body</h4>${bodyHtml(body.schema, spec, places)}`,
    `<h4>Responses</h4>${responsesHtml(operation, spec, places)}`,
    `<details><summary>Example</summary><pre><code>${escaped(curlOf(located, body?.example))}</code></pre></details></div>`
  ].join("")
}

const resolved = (parameter: Parameter, spec: Spec): Parameter => {
  if (parameter.$ref === undefined) return parameter
  const { parameters } = spec.components as unknown as { readonly parameters: Record<string, Parameter> }
  return parameters[parameter.$ref.split("/").at(-1)!] ?? parameter
}

const kindOf = ({ security }: Operation): "key" | "token" | "none" => {
  const names = security.flatMap((requirement) => Object.keys(requirement))
  return names.includes("LicenseKey") ? "key" : names.length === 0 ? "none" : "token"
}

const credentialHtml = (operation: Operation): string => {
  const scopes = operation["x-required-scopes"] ?? []
  switch (kindOf(operation)) {
    case "none":
      return "Needs no credential."
    case "key":
      return "<code>Authorization: License &lt;license key&gt;</code>"
    case "token":
      return `<code>Authorization: Bearer &lt;API token&gt;</code>, ${
        scopes.length === 0
          ? "any valid token"
          : `scope ${scopes.map((scope) => `<code>${scope}</code>`).join(" and ")}`
      }`
  }
}

const parametersHtml = (parameters: ReadonlyArray<Parameter>, spec: Spec, places: Places): string => {
  const rows = parameters.map(({ description, in: where, name, required, schema }) => [
    `<code>${escaped(name)}</code>`,
    where,
    `${typeHtml(schema as Json, spec, places)}${required ? ", required" : ""}`,
    prose(description ?? "")
  ])
  return rows.length === 0 ? "" : `<h4>Parameters</h4>${table(["Name", "In", "Type", "Meaning"], rows)}`
}

const bodyHtml = (schema: Json, spec: Spec, places: Places): string => {
  const name = nameOf(schema)
  return name === undefined
    ? fieldsHtml(schema, spec, places)
    : `<p>${typeHtml(schema, spec, places)}</p>${fieldsHtml(spec.components.schemas[name] ?? {}, spec, places)}`
}

const fieldsHtml = (schema: Json, spec: Spec, places: Places): string => {
  const properties = schema["properties"] as { readonly [name: string]: Json } | undefined
  const required = (schema["required"] ?? []) as ReadonlyArray<string>
  const description = typeof schema["description"] === "string" ? `<p>${prose(schema["description"])}</p>` : ""
  if (properties === undefined) return `${description}<p>${typeHtml(schema, spec, places)}</p>`
  const rows = Object.entries(properties).map(([name, field]) => [
    `<code>${escaped(name)}</code>`,
    `${typeHtml(field, spec, places)}${required.includes(name) ? ", required" : ""}`,
    prose(typeof field["description"] === "string" ? field["description"] : "")
  ])
  return `${description}${table(["Field", "Type", "Meaning"], rows)}`
}

const typeHtml = (schema: Json, spec: Spec, places: Places): string =>
  escaped(typeOf(schema)).replaceAll(/\b[A-Z][A-Za-z]+\b/g, (name) =>
    spec.components.schemas[name] === undefined ? name : `<a href="${places.schema(name)}">${name}</a>`
  )

const responsesHtml = (operation: Operation, spec: Spec, places: Places): string =>
  `<ul>${Object.entries(operation.responses)
    .map(([status, response]) => `<li><b>${status}</b> ${responseHtml(Number(status), response, spec, places)}</li>`)
    .join("")}</ul>`

const responseHtml = (status: number, response: OpenApi.OpenApiSpecResponse, spec: Spec, places: Places): string => {
  const codes = (response as { readonly "x-error-codes"?: ReadonlyArray<string> })["x-error-codes"] ?? []
  if (status >= 400) return codes.map((code) => `<a href="${places.code(code)}"><code>${code}</code></a>`).join(" ")
  const media = response.content?.["application/json"] as
    | { readonly schema?: Json; readonly example?: unknown }
    | undefined
  if (media?.schema === undefined) return prose(response.description)
  const data = dataOf(spec.components.schemas[nameOf(media.schema) ?? ""] ?? media.schema)
  const type = `<code>data</code>: ${typeHtml(data ?? media.schema, spec, places)}`
  const example =
    media.example === undefined ? "" : `<pre><code>${escaped(JSON.stringify(media.example, null, 2))}</code></pre>`
  return `${prose(response.description)} ${data === undefined ? typeHtml(media.schema, spec, places) : type}${example}`
}

const curlOf = ({ method, operation, path }: PublishedOperation, example: unknown): string => {
  const kind = kindOf(operation)
  const credential =
    kind === "none" ? "" : ` \\\n  -H "Authorization: ${kind === "key" ? "License $KEY" : "Bearer $TOKEN"}"`
  const body = example === undefined ? "" : ` \\\n  -H "Content-Type: application/json" -d '${JSON.stringify(example)}'`
  return `curl${method === "GET" ? "" : ` -X ${method}`} "$URL${path}"${credential}${body}`
}
