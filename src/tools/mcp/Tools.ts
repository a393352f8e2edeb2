/** The operations as tools: names, input schemas and hints for the client that asks a person before it calls one. */
import type { JsonSchema } from "effect/JsonSchema"
import { argumentsOf, type Contract, type ContractOperation } from "./Contract.ts"
import { changesMany } from "./DryRuns.ts"

/** Which operations become tools. */
export interface Offered {
  /** The scopes of the token; `admin` has all. */
  readonly scopes: ReadonlyArray<string>
  /** Whether the token is for some products only. */
  readonly isLimited: boolean
  /** Groups of operations; all unless given. */
  readonly groups: ReadonlyArray<string> | undefined
  /** Only what changes nothing. */
  readonly readOnly: boolean
}

export const isOffered =
  ({ groups, isLimited, readOnly, scopes }: Offered) =>
  (operation: ContractOperation): boolean =>
    (groups?.includes(operation.group) ?? true) &&
    (!isLimited || operation.reachesProducts) &&
    (!readOnly || changesNothing(operation)) &&
    (scopes.includes("admin") || operation.scopes.every((scope) => scopes.includes(scope)))

/** A scope that ends with `:read` allows no change. */
const changesNothing = ({ method, scopes }: ContractOperation): boolean =>
  method === "GET" || (scopes.length > 0 && scopes.every((scope) => scope.endsWith(":read")))

const endangering = ["createApiKey", changesMany]

/** What a tool may do, for a client that asks before it calls one (the specification's tool annotations). */
export const hintsOf = (operation: ContractOperation) => {
  const readOnlyHint = changesNothing(operation)
  return {
    title: operation.summary,
    readOnlyHint,
    // Creating adds to what there is; all other changes replace, end or remove something. An API key is a new way in.
    destructiveHint: !readOnlyHint && (!operation.id.startsWith("create") || endangering.includes(operation.id)),
    idempotentHint: readOnlyHint || operation.method === "PUT" || operation.method === "DELETE",
    openWorldHint: false
  }
}

/** Parameters by name, and the body under `body`. */
export const inputSchemaOf = (operation: ContractOperation, schemas: Contract["schemas"]) => {
  const properties: Record<string, JsonSchema> = {}
  for (const { description, name, schema } of operation.parameters) {
    properties[name] = description === undefined ? schema : { ...schema, description }
  }
  if (operation.body !== undefined) properties.body = operation.body.schema
  const defs = usedBy(properties, schemas)
  return {
    type: "object" as const,
    properties,
    required: argumentsOf(operation).required,
    additionalProperties: false,
    ...(Object.keys(defs).length > 0 && { $defs: defs })
  }
}

/** The named schemas that a schema refers to, and those that these refer to. */
const usedBy = (schema: unknown, schemas: Contract["schemas"]): Record<string, JsonSchema> => {
  const used: Record<string, JsonSchema> = {}
  const add = (value: unknown): void => {
    for (const [, name = ""] of JSON.stringify(value).matchAll(/"#\/\$defs\/([^"]+)"/g)) {
      const named = schemas[name]
      if (name in used || named === undefined) continue
      used[name] = named
      add(named)
    }
  }
  add(schema)
  return used
}
