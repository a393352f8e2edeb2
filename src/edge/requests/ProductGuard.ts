/**
 * Admits a request of a token for some products. What must stay true: an operation reaches nothing unless it declares
 * what (`ProductReach`), and every id in a path or body must be one of a record of the token's products. An id of another
 * product is refused exactly like an unknown id. The guard runs before Idempotency-Key, so that no stored response
 * is repeated to a token that does not reach its record.
 */
import { Context, Effect } from "effect"
import { HttpRouter } from "effect/http"
import type { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { SqlClient } from "effect/sql"
import { ProductReach } from "../../access/Management.ts"
import { type OwnedTable, ownedBy } from "../../access/productLimits/OwnedRows.ts"
import { pathRecords, reachesProducts } from "../../access/productLimits/PathRecords.ts"
import { invalid } from "../../access/requests/BodyDecoder.ts"
import { readBody } from "../../access/requests/RequestBody.ts"
import { type Refusal, refuse, refuseUnknownId } from "../../contract/api/Failure.ts"
import { isStorable } from "../../contract/api/Text.ts"
import { columns } from "../../platform/postgres/driver/Parameters.ts"

type GuardRefusal = Refusal<"NOT_FOUND" | "TOKEN_SCOPE_DENIED" | "BAD_REQUEST" | "PAYLOAD_TOO_LARGE">

/** An id in a request, and the record that it names. */
interface Reference {
  readonly table: OwnedTable
  readonly id: string
  readonly place: Place
}

/** Where an id is: a path parameter, or a field within others. Only the place of a refused id is written as text. */
interface Place {
  readonly within: Place | undefined
  readonly key: string | number
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
  report_exports: "report export",
  bulk_jobs: "bulk job"
}

/** References that are looked up at once. A body may have 40,000, and the first foreign one ends the look-up. */
const lookupMax = 2_000

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
    const isFound = ({ id, table }: Reference) => found.get(table)?.has(id) === true
    for (let begin = 0; begin < references.length; begin += lookupMax) {
      const some = references.slice(begin, begin + lookupMax).filter((reference) => !isFound(reference))
      for (const [table, named] of Map.groupBy(some, ({ table }) => table)) {
        const ids = [...new Set(named.map(({ id }) => id).filter(isStorable))]
        found.set(table, (yield* ownIds(table, ids, products)).union(found.get(table) ?? new Set()))
      }
      const foreign = some.find((reference) => !isFound(reference))
      if (foreign !== undefined)
        return yield* refuseUnknownId(nouns[foreign.table], foreign.id, placeText(foreign.place))
    }
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
      named.map(([param, table]) => ({ table, id: params[param] ?? "", place: { within: undefined, key: param } })),
      products
    )
    if (endpoint.payload.size === 0) return
    // An invalid body is refused by `Decoding`.
    const { decoded } = yield* readBody(endpoint)
    if (decoded !== invalid) yield* check(referencesIn(decoded), products)
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
const referencesIn = (body: unknown): ReadonlyArray<Reference> => {
  const found: Array<Reference> = []
  addReferences(body, undefined, found)
  return found
}

const addReferences = (value: unknown, within: Place | undefined, found: Array<Reference>): void => {
  if (typeof value !== "object" || value === null) return
  if (Array.isArray(value)) {
    for (let key = 0; key < value.length; key++) {
      const item: unknown = value[key]
      if (typeof item === "object") addReferences(item, { within, key }, found)
    }
    return
  }
  const members = value as { readonly [name: string]: unknown }
  // Of an object with 150 names, `for in` takes more than twice as long.
  for (const key of Object.keys(members)) {
    const inner = members[key]
    if (typeof inner === "string") {
      const table = inner === "" ? undefined : tables.get(key)
      if (table !== undefined) found.push({ table, id: inner, place: { within, key } })
    } else if (typeof inner === "object" && key !== freeForm) addReferences(inner, { within, key }, found)
  }
}

const tables: ReadonlyMap<string, OwnedTable> = new Map(Object.entries(namingFields))

const placeText = ({ key, within }: Place): string => {
  const before = within === undefined ? "" : placeText(within)
  return typeof key === "number" ? `${before}[${key}]` : before === "" ? key : `${before}.${key}`
}
