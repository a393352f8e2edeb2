/** The operations under their operationIds: their names, requests, results and refusals, derived from the contract. */
import { Context } from "effect"
import {
  type HttpApi,
  type HttpApiClient,
  type HttpApiEndpoint,
  type HttpApiGroup,
  type HttpApiMiddleware,
  OpenApi
} from "effect/http-api"
import { Api } from "../../Api.ts"
import type { Signature } from "../../contract/api/Envelope.ts"
import type { OperationNames } from "./OperationNames.ts"

export type OperationId = keyof OperationNames

/** The group of each operation, and its name in the group. */
export const operations = Object.values<HttpApiGroup.Constraint>(Api.groups).flatMap((group) =>
  Object.values(group.endpoints as Readonly<Record<string, HttpApiEndpoint.Top>>).map(
    ({ annotations, identifier }) => ({
      id: Context.getUnsafe(annotations, OpenApi.Identifier) as OperationId,
      group: group.identifier,
      endpoint: identifier
    })
  )
)

type Groups = typeof Api extends HttpApi.HttpApi<infer _Id, infer Groups> ? Groups : never

/** The contract's declaration of an operation. */
type Endpoint<Id extends OperationId> = Declared<
  HttpApiGroup.WithIdentifier<Groups, OperationNames[Id][0]>,
  OperationNames[Id][1]
>
type Declared<Group, Name extends string> = Group extends { readonly endpoints: infer Endpoints }
  ? Name extends keyof Endpoints
    ? Endpoints[Name]
    : never
  : never

type Part<Name extends string, Schema extends { readonly Type: unknown }> = [Schema["Type"]] extends [never]
  ? unknown
  : // biome-ignore lint/complexity/noBannedTypes: asks whether an object without fields is enough.
    {} extends Schema["Type"]
    ? { readonly [Key in Name]?: Schema["Type"] }
    : { readonly [Key in Name]: Schema["Type"] }

/** A request: `params`, `query` and `payload`, where the operation has them. The client makes the headers. */
export type Request<Id extends OperationId> = RequestOf<Endpoint<Id>>
type RequestOf<E> = E extends HttpApiEndpoint.ConstraintRequest
  ? Part<"params", E["~Params"]> & Part<"query", E["~Query"]> & Part<"payload", E["~Payload"]>
  : never

/** What an operation gives: of a signed response also the bytes that are signed. */
export type Success<Id extends OperationId> = SuccessOf<Endpoint<Id>>
type SuccessOf<E> = E extends HttpApiEndpoint.ConstraintRequest
  ? WithBytes<HttpApiClient.SuccessType<E["~Success"]>>
  : never

type WithBytes<A> = A extends { readonly data: unknown; readonly signature: Signature }
  ? A & {
      /** The bytes of `data` as received: the signature covers exactly these. */
      readonly bytes: Uint8Array
    }
  : A

/** The refusals that the contract declares for an operation. */
export type Refusals<Id extends OperationId> = RefusalsOf<Endpoint<Id>>
type RefusalsOf<E> = E extends HttpApiEndpoint.ConstraintRequest
  ? E["~Error"]["Type"] | HttpApiMiddleware.Error<E["~Middleware"]>
  : never
