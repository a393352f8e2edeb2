/**
 * The version catalog of products. Every change first raises the product's `catalog_revision`, which locks the product's row:
 * licenses see the change at their next use, and changes of one catalog run one after another.
 */
import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { type Refusal, refuse, refuseUnknownId } from "../../contract/api/Failure.ts"
import { Identifiers } from "../../contract/api/Identifier.ts"
import type { Page } from "../../contract/api/Paging.ts"
import { formatTimestamp } from "../../contract/api/Timestamp.ts"
import { EventLog } from "../../ledger/events/EventLog.ts"
import { instant, json } from "../../platform/postgres/driver/Parameters.ts"
import { constraints, decodeRows, transaction } from "../../platform/postgres/queries/Sql.ts"
import { Products } from "../products/Products.ts"
import { eventsOf, type FilteredBy, listOfProduct } from "../Records.ts"
import { ProductVersion, type ProductVersionCreate, versionFilters, versionSorts } from "./ProductVersion.ts"

const decodeVersions = decodeRows(ProductVersion)

const notFound = (id: string) => refuseUnknownId("version of the product", id, "version_id")

type VersionFilter = FilteredBy<typeof versionFilters>

export class Versions extends Context.Service<
  Versions,
  {
    list(productId: string, filter: VersionFilter): Effect.Effect<Page<ProductVersion>, Refusal<"NOT_FOUND">>
    get(productId: string, id: string): Effect.Effect<ProductVersion, Refusal<"NOT_FOUND">>
    create(
      productId: string,
      input: typeof ProductVersionCreate.Type
    ): Effect.Effect<ProductVersion, Refusal<"NOT_FOUND" | "DUPLICATE_VERSION">>
    delete(productId: string, id: string): Effect.Effect<void, Refusal<"NOT_FOUND">>
  }
>()("licensing/vendor/versions/Versions") {
  static readonly layer = Layer.effect(
    Versions,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const ids = yield* Identifiers
      const events = yield* EventLog
      const products = yield* Products
      const columns = sql.literal("id, product_id, version, released_at, metadata, created_at, updated_at")
      const inTransaction = transaction(sql)
      const append = eventsOf(events, "product_version")

      const list = Effect.fn("Versions.list")(
        listOfProduct(
          sql,
          products.get,
          { columns, table: "product_versions", sorts: versionSorts, decode: decodeVersions },
          versionFilters
        )
      )

      const get = Effect.fn("Versions.get")(
        function* (productId: string, id: string) {
          const [version] = yield* decodeVersions(sql`
          SELECT ${columns} FROM product_versions WHERE id = ${id} AND product_id = ${productId}`)
          if (version !== undefined) return version
          yield* products.get(productId)
          return yield* notFound(id)
        },
        Effect.catchTag("SqlError", Effect.die)
      )

      const create = Effect.fn("Versions.create")(function* (
        productId: string,
        input: typeof ProductVersionCreate.Type
      ) {
        yield* products.catalogChanged(productId)
        const now = yield* Clock.currentTimeMillis
        const id = yield* ids.make("version")
        const version: ProductVersion = {
          id,
          product_id: productId,
          released_at: now,
          metadata: {},
          ...input,
          created_at: now,
          updated_at: now
        }
        yield* sql`
          INSERT INTO product_versions (id, product_id, version, released_at, metadata, created_at, updated_at)
          VALUES (${id}, ${productId}, ${version.version}, ${instant(version.released_at)}, ${json(version.metadata)},
            ${instant(now)}, ${instant(now)})`.pipe(
          constraints({
            product_versions_version_key: () =>
              refuse(
                "DUPLICATE_VERSION",
                `The product has the version ${version.version} already: choose a different one.`,
                "version"
              )
          })
        )
        yield* append("product_version.created", id, {
          product_id: productId,
          version: version.version,
          released_at: formatTimestamp(version.released_at)
        })
        return version
      }, inTransaction)

      const remove = Effect.fn("Versions.delete")(function* (productId: string, id: string) {
        yield* products.catalogChanged(productId)
        const [version] = yield* decodeVersions(sql`
          DELETE FROM product_versions WHERE id = ${id} AND product_id = ${productId} RETURNING ${columns}`)
        if (version === undefined) return yield* notFound(id)
        yield* append("product_version.deleted", id, { product_id: productId, version: version.version })
      }, inTransaction)

      return Versions.of({ list, get, create, delete: remove })
    })
  )
}
