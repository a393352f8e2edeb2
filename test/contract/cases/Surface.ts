/**
 * The whole API as the contract declares it: every operation with its credential, its scopes, and its schemas in the published
 * document. Tests iterate over this list, so a new operation is tested at once.
 */
import { Context, type JsonSchema, Option } from "effect"
import { HttpApi, OpenApi } from "effect/http-api"
import { Api } from "../../../src/Api.ts"
import { ManagementAuthorization, RequiredScopes } from "../../../src/access/Management.ts"
import { openApiDocument } from "../../../src/edge/documents/Document.ts"
import { RuntimeAuthorization } from "../../../src/licensing/runtime/credentials/RuntimeAuthorization.ts"

export type Json = JsonSchema.JsonSchema

export interface QueryParameter {
  readonly name: string
  readonly schema: Json
  readonly required: boolean
}

export interface Operation {
  readonly id: string
  readonly method: string
  /** As in the document: `/api/v1/products/{id}`. */
  readonly path: string
  readonly tag: string
  readonly credential: "token" | "license key" | "none"
  /** The enforced scopes: the annotation that authorization reads. */
  readonly scopes: ReadonlyArray<string>
  /** The published scopes. */
  readonly publishedScopes: ReadonlyArray<string>
  /** Whether the document says that a token for some products can call it. */
  readonly publishedReach: boolean | undefined
  /** The path's parameters in order, each with its kind: `{id}` after `/products/` is one of `products`. */
  readonly params: ReadonlyArray<{ readonly name: string; readonly kind: string }>
  readonly query: ReadonlyArray<QueryParameter>
  readonly body: Json | undefined
  readonly hasOptionalBody: boolean
  readonly example: unknown
  /** Whether it takes an Idempotency-Key. */
  readonly takesKey: boolean
  readonly keyRequired: boolean
  readonly takesIfMatch: boolean
  /** The documented answers by status. */
  readonly answers: ReadonlyMap<number, Documentation>
}

interface Documentation {
  /** The content types of the answer; none if it has no body. */
  readonly media: ReadonlyArray<string>
  /** The body's schema, if it is JSON. */
  readonly schema: Json | undefined
  /** The codes of a refusal. */
  readonly codes: ReadonlyArray<string>
}

const document = openApiDocument()

type Located = Record<string, Record<string, Documented>>
interface Documented {
  readonly operationId: string
  readonly tags: ReadonlyArray<string>
  readonly parameters?: ReadonlyArray<
    { readonly name: string; readonly in: string; readonly schema: Json; readonly required: boolean } & {
      readonly $ref?: string
    }
  >
  readonly requestBody?: {
    readonly required?: boolean
    readonly content: Record<string, { readonly schema: Json; readonly example?: unknown }>
  }
  readonly responses: Record<
    string,
    {
      readonly content?: Record<string, { readonly schema: Json }>
      readonly "x-error-codes"?: ReadonlyArray<string>
    }
  >
  readonly "x-required-scopes"?: ReadonlyArray<string>
  readonly "x-reaches-products"?: boolean
}

/** Resolves a reference to its schema; returns any other schema unchanged. */
export const resolved = (schema: Json): Json => {
  const name = typeof schema["$ref"] === "string" ? schema["$ref"].split("/").at(-1)! : undefined
  return name === undefined ? schema : (document.components.schemas[name] as Json)
}

/** The published name of a schema, if any. */
export const nameOf = (schema: Json): string | undefined =>
  typeof schema["$ref"] === "string" ? schema["$ref"].split("/").at(-1) : undefined

type Parameter = NonNullable<Documented["parameters"]>[number]

const parameterOf = (parameter: Parameter): Parameter => {
  const { parameters } = document.components as unknown as { readonly parameters: Record<string, Parameter> }
  return parameter.$ref === undefined ? parameter : parameters[parameter.$ref.split("/").at(-1)!]!
}

const answersOf = ({ responses }: Documented): Operation["answers"] =>
  new Map(
    Object.entries(responses).map(([status, { content = {}, "x-error-codes": codes = [] }]) => {
      const schema = content["application/json"]?.schema
      return [Number(status), { media: Object.keys(content), schema, codes }]
    })
  )

const reflected = (): ReadonlyArray<Operation> => {
  const found: Array<Operation> = []
  HttpApi.reflect(Api, {
    onGroup: () => {},
    onEndpoint: ({ group, endpoint, mergedAnnotations }) => {
      const path = endpoint.path.replaceAll(/:(\w+)/g, "{$1}")
      const documented = (document.paths as unknown as Located)[path]![endpoint.method.toLowerCase()]!
      const annotations = mergedAnnotations as Context.Context<never>
      const middlewares = [...endpoint.middlewares] as ReadonlyArray<unknown>
      const body = documented.requestBody?.content["application/json"]
      const parameters = documented.parameters ?? []
      found.push({
        id: Context.getOrElse(annotations, OpenApi.Identifier, () => `${group.identifier}.${endpoint.identifier}`),
        method: endpoint.method,
        path,
        tag: documented.tags[0]!,
        credential: middlewares.includes(ManagementAuthorization)
          ? "token"
          : middlewares.includes(RuntimeAuthorization)
            ? "license key"
            : "none",
        scopes: Option.getOrElse(Context.getOption(annotations, RequiredScopes), () => [] as ReadonlyArray<string>),
        publishedScopes: documented["x-required-scopes"] ?? [],
        publishedReach: documented["x-reaches-products"],
        params: [...path.matchAll(/([\w-]+)\/\{(\w+)\}/g)].map(([, kind, name]) => ({ kind: kind!, name: name! })),
        query: parameters.map(parameterOf).filter((parameter) => parameter.in === "query"),
        body: body?.schema,
        hasOptionalBody: documented.requestBody?.required === false,
        example: body?.example,
        takesKey: parameters.some(({ $ref }) => $ref?.endsWith("IdempotencyKey") === true),
        keyRequired: parameters.some(({ $ref }) => $ref?.endsWith("/RequiredIdempotencyKey") === true),
        takesIfMatch: parameters.some(({ $ref }) => $ref?.endsWith("/IfMatch") === true),
        answers: answersOf(documented)
      })
    }
  })
  return found
}

export const operations: ReadonlyArray<Operation> = reflected()
