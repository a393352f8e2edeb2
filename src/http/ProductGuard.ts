/**
 * Admits a request of a token for some products. What must stay true: an operation reaches nothing unless it declares
 * what (`ProductReach`), and every id in a path or body must be one of a record of the token's products. An id of another
 * product is refused exactly like an unknown id. The guard runs before Idempotency-Key, so that no stored response
 * is repeated to a token that does not reach its record.
 */
import { Context, Effect, Result } from "effect"
import { HttpRouter, HttpServerRequest } from "effect/http"
import type { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { SqlClient } from "effect/sql"
import { type Refusal, refuse, refuseUnknownId } from "../api/Failure.ts"
import { bodyFault, parseBody } from "../api/JsonText.ts"
import { isStorable } from "../api/Text.ts"
import { ProductReach } from "../auth/Management.ts"
import { type OwnedTable, ownedBy } from "../auth/productLimits/OwnedRows.ts"
import { pathRecords, reachesProducts } from "../auth/productLimits/PathRecords.ts"
import { columns } from "../postgres/Parameters.ts"
import { bytesOf } from "./Intake.ts"

type GuardRefusal = Refusal<"NOT_FOUND" | "TOKEN_SCOPE_DENIED" | "BAD_REQUEST" | "PAYLOAD_TOO_LARGE">

/** An id in a request, and the record that it names. */
interface Reference {
  readonly table: OwnedTable
  readonly id: string
  /** Where the id is: a path parameter, or a field's path. */
  readonly place: string
}

/** Nouns of refusals, the same as those of unknown ids. */
const nouns: { readonly [Table in OwnedTable]: string } = {
  products: "product",
  policies: "policy",
  features: "feature",
  product_versions: "version",
  custom_field_definitions: "custom field",
  orders: "order",
  subscriptions: "subscription",
  licenses: "license",
  customers: "customer",
  devices: "device",
  report_exports: "report export"
}

/** The members of bodies that name a record. A test compares them with the members of all bodies. */
export const namingFields: { readonly [field: string]: OwnedTable } = {
  product_id: "products",
  policy_id: "policies",
  feature_id: "features",
  customer_id: "customers",
  order_id: "orders",
  subscription_id: "subscriptions",
  license_id: "licenses"
}

/** The member that contains the caller's own data. */
const freeForm = "metadata"

export const makeProductGuard = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  /** The ids of some records of a table that belong to the products. */
  const ownIds = Effect.fnUntraced(function* (
    table: OwnedTable,
    ids: ReadonlyArray<string>,
    products: ReadonlyArray<string>
  ) {
    const rows = yield* sql<{ readonly id: string }>`
      SELECT named.id FROM ${sql(table)} AS named
      WHERE named.id = ANY(${columns.text(ids)}::text[]) AND ${ownedBy(sql, table, "named", products)}`
    return new Set(rows.map(({ id }) => id))
  }, Effect.orDie)

  const check = Effect.fnUntraced(function* (
    references: ReadonlyArray<Reference>,
    products: ReadonlyArray<string>
  ): Effect.fn.Return<void, Refusal<"NOT_FOUND">> {
    const found = new Map<OwnedTable, ReadonlySet<string>>()
    for (const [table, named] of Map.groupBy(references, ({ table }) => table)) {
      const ids = [...new Set(named.map(({ id }) => id).filter(isStorable))]
      found.set(table, yield* ownIds(table, ids, products))
    }
    const foreign = references.find(({ id, table }) => found.get(table)?.has(id) !== true)
    if (foreign !== undefined) return yield* refuseUnknownId(nouns[foreign.table], foreign.id, foreign.place)
  })

  return Effect.fnUntraced(function* (
    endpoint: HttpApiEndpoint.Top,
    group: HttpApiGroup.Top,
    products: ReadonlyArray<string>
  ): Effect.fn.Return<void, GuardRefusal, HttpRouter.Provided> {
    if (Context.get(endpoint.annotations, ProductReach) === "forbidden") return yield* forbidden
    if (!reachesProducts(endpoint, group)) return yield* unreached
    const { params } = yield* HttpRouter.RouteContext
    const { named } = pathRecords(endpoint, group)
    yield* check(
      named.map(([param, table]) => ({ table, id: params[param] ?? "", place: param })),
      products
    )
    if (endpoint.payload.size === 0) return
    const bytes = yield* bytesOf(yield* HttpServerRequest.HttpServerRequest)
    // Such a body must not be parsed. It is refused where it is decoded, like a body that is no JSON.
    if (bodyFault(bytes) !== undefined) return
    const body = parseBody(bytes.toString())
    if (Result.isSuccess(body)) yield* check(referencesIn(body.success, ""), products)
  })
})

const forbidden = refuse(
  "TOKEN_SCOPE_DENIED",
  "The API token is for some products only, and this operation is not: use a token without product_ids.",
  "product_ids"
)

const unreached = refuse(
  "NOT_FOUND",
  "The API token is for some products only, and there is nothing here for them: use a token without product_ids."
)

/** All ids in a body that name records, at any depth. An empty text clears a link. */
const referencesIn = (value: unknown, place: string): ReadonlyArray<Reference> => {
  if (typeof value !== "object" || value === null) return []
  if (Array.isArray(value)) return value.flatMap((item, index) => referencesIn(item, `${place}[${index}]`))
  return Object.entries(value).flatMap(([field, inner]): ReadonlyArray<Reference> => {
    const at = place === "" ? field : `${place}.${field}`
    const table = Object.hasOwn(namingFields, field) ? namingFields[field] : undefined
    if (table !== undefined && typeof inner === "string") return inner === "" ? [] : [{ table, id: inner, place: at }]
    return field === freeForm ? [] : referencesIn(inner, at)
  })
}
