/** The operations of the contract, for the documents: each operation's possible refusals and its idempotency header. */
import { Context, SchemaAST } from "effect"
import { HttpApi, type HttpApiEndpoint, OpenApi } from "effect/http-api"
import { Api } from "../../Api.ts"
import { Idempotency, KeyRequired } from "../../access/idempotency/Idempotency.ts"
import { ManagementAuthorization, ProductReach, RequiredScopes } from "../../access/Management.ts"
import { Conditional } from "../../access/preconditions/Conditional.ts"
import { reachesProducts } from "../../access/productLimits/PathRecords.ts"
import { type Code, statuses } from "../../contract/api/ErrorCode.ts"
import { RuntimeAuthorization } from "../../licensing/runtime/credentials/RuntimeAuthorization.ts"

export interface Operation {
  readonly id: string
  readonly endpoint: HttpApiEndpoint.Top
  /** The codes of all possible refusals, by status. */
  readonly refusals: ReadonlyMap<number, ReadonlyArray<Code>>
  readonly idempotencyKey: "none" | "optional" | "required"
  readonly isConditional: boolean
  readonly hasTag: boolean
  readonly takesMetadata: boolean
  /** Whether a token limited to products can call it; undefined for operations that are not of management. */
  readonly reachesProducts: boolean | undefined
  readonly signsRefusals: boolean
}

export const operations = (): ReadonlyMap<string, Operation> => {
  const list: Array<Operation> = []
  HttpApi.reflect(Api, {
    onGroup: () => {},
    onEndpoint: ({ endpoint, errors, group }) => {
      const idempotencyKey = idempotencyKeyOf(endpoint)
      const declared = new Set([...endpoint.error].flatMap(codesOf))
      const all = new Set([...errors.values()].flat().flatMap(codesOf))
      const possible = [...all].filter((code) => declared.has(code) || isPossible(code, endpoint, idempotencyKey))
      const id = Context.getOrElse(endpoint.annotations, OpenApi.Identifier, () => endpoint.identifier)
      const signsRefusals = middlewaresOf(endpoint).includes(RuntimeAuthorization)
      const query = endpoint.query === undefined ? undefined : SchemaAST.toEncoded(endpoint.query.ast)
      const takesMetadata = query?._tag === "Objects" && query.indexSignatures.length > 0
      const isConditional = middlewaresOf(endpoint).includes(Conditional)
      const isManagement = middlewaresOf(endpoint).includes(ManagementAuthorization)
      const reached = isManagement ? reachesProducts(endpoint, group) : undefined
      const told = { idempotencyKey, isConditional, signsRefusals, takesMetadata, reachesProducts: reached }
      list.push({ id, endpoint, ...told, hasTag: false, refusals: byStatus(possible) })
    }
  })
  const tagged = new Set(list.filter(({ isConditional }) => isConditional).map(({ endpoint }) => endpoint.path))
  const hasTag = ({ endpoint, isConditional }: Operation) =>
    isConditional || (endpoint.method === "GET" && tagged.has(endpoint.path))
  return new Map(list.map((operation) => [operation.id, { ...operation, hasTag: hasTag(operation) }]))
}

const middlewaresOf = (endpoint: HttpApiEndpoint.Top) => [...endpoint.middlewares] as ReadonlyArray<unknown>

const idempotencyKeyOf = (endpoint: HttpApiEndpoint.Top): Operation["idempotencyKey"] => {
  if (endpoint.method === "GET" || !middlewaresOf(endpoint).includes(Idempotency)) return "none"
  return Context.get(endpoint.annotations, KeyRequired) ? "required" : "optional"
}

const byStatus = (codes: ReadonlyArray<Code>): Operation["refusals"] =>
  new Map([...Map.groupBy(codes, (code) => statuses[code] as number)].sort(([a], [b]) => a - b))

/** Excludes a middleware's refusals that cannot happen, for example because the operation has no body. */
const isPossible = (
  code: Code,
  endpoint: HttpApiEndpoint.Top,
  idempotencyKey: Operation["idempotencyKey"]
): boolean => {
  switch (code) {
    case "INVALID_JSON":
      return endpoint.method !== "GET" && endpoint.method !== "DELETE"
    case "VALIDATION_ERROR":
    case "UNSUPPORTED_MEDIA_TYPE":
      return endpoint.payload.size > 0
    case "PAYLOAD_TOO_LARGE":
      return endpoint.method !== "GET"
    case "INVALID_QUERY":
      return endpoint.query !== undefined || endpoint.method === "GET"
    case "TOKEN_SCOPE_DENIED":
      return Context.getOrElse(endpoint.annotations, RequiredScopes, () => ["admin"] as const).length > 0
    case "NOT_FOUND":
      return endpoint.params !== undefined || isUnreached(endpoint)
    case "IDEMPOTENCY_KEY_REQUIRED":
      return idempotencyKey === "required"
    case "IDEMPOTENCY_IN_PROGRESS":
    case "IDEMPOTENCY_KEY_REUSED":
      return idempotencyKey !== "none"
    default:
      return true
  }
}

/** A token limited to products never has admin, and reaches nothing of an operation without an id in its path. */
const isUnreached = ({ annotations }: HttpApiEndpoint.Top): boolean =>
  Context.get(annotations, ProductReach) === "path" &&
  !Context.getOrElse(annotations, RequiredScopes, () => ["admin"] as const).includes("admin")

const codesOf = ({ ast }: { readonly ast: SchemaAST.AST }): ReadonlyArray<Code> => {
  const code = memberOf(memberOf(SchemaAST.toEncoded(ast), "error"), "code")
  const literals = code?._tag === "Union" ? code.types : [code]
  return literals.flatMap((type) => (type?._tag === "Literal" ? [type.literal as Code] : []))
}

const memberOf = (ast: SchemaAST.AST | undefined, name: string): SchemaAST.AST | undefined =>
  ast?._tag === "Objects" ? ast.propertySignatures.find((property) => property.name === name)?.type : undefined
