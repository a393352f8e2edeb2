import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { CurrentProducts } from "../../access/CurrentActor.ts"
import { checkUnchanged } from "../../access/preconditions/RecordTag.ts"
import { type Refusal, refuse, refuseUnknownId } from "../../contract/api/Failure.ts"
import { Identifiers } from "../../contract/api/Identifier.ts"
import type { ListRequest, Page } from "../../contract/api/Paging.ts"
import { EventLog } from "../../ledger/events/EventLog.ts"
import { columns as arrays, instant, int8, json } from "../../platform/postgres/driver/Parameters.ts"
import { readPage } from "../../platform/postgres/queries/Pages.ts"
import { nextRevision } from "../../platform/postgres/queries/Revision.ts"
import {
  constraints,
  decodeRows,
  equals,
  patched,
  refuseIfReferenced,
  transaction
} from "../../platform/postgres/queries/Sql.ts"
import { editOf, eventsOf, recordsIn } from "../Records.ts"
import { Product, type ProductCreate, ProductUpdate, productSorts } from "./Product.ts"

const decodeProducts = decodeRows(Product)

export const productNotFound = (id: string) => refuseUnknownId("product", id)
const duplicateCode = (code: string) =>
  constraints({
    products_code_key: () =>
      refuse("DUPLICATE_CODE", `Another product has the code ${code}: choose a different one.`, "code")
  })

const ownProducts = Effect.map(CurrentProducts, (ids) => (ids === undefined ? undefined : { ids }))

interface ProductFilter extends ListRequest {
  readonly code?: string
}

export class Products extends Context.Service<
  Products,
  {
    list(filter: ProductFilter): Effect.Effect<Page<Product>>
    /** The products with these ids, in any order. */
    many(ids: ReadonlyArray<string>): Effect.Effect<ReadonlyArray<Product>>
    get(id: string): Effect.Effect<Product, Refusal<"NOT_FOUND">>
    create(input: typeof ProductCreate.Type): Effect.Effect<Product, Refusal<"DUPLICATE_CODE">>
    update(
      id: string,
      input: typeof ProductUpdate.Type
    ): Effect.Effect<Product, Refusal<"NOT_FOUND" | "DUPLICATE_CODE" | "CONFLICT">>
    delete(id: string): Effect.Effect<void, Refusal<"NOT_FOUND" | "RESOURCE_IN_USE">>
    /** Changes `catalog_revision` in the running transaction, so that licenses reload the catalog. Locks the product. */
    catalogChanged(id: string): Effect.Effect<void, Refusal<"NOT_FOUND">>
  }
>()("licensing/vendor/products/Products") {
  static readonly layer = Layer.effect(
    Products,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const ids = yield* Identifiers
      const events = yield* EventLog
      const columns = sql.literal("id, name, code, metadata, created_at, updated_at")
      const inTransaction = transaction(sql)
      const append = eventsOf(events, "product")
      const edit = editOf(events, "product", ProductUpdate)

      const list = Effect.fn("Products.list")(function* (filter: ProductFilter) {
        const { code } = filter
        return yield* readPage(sql, filter, {
          columns,
          table: "products",
          where: equals(sql, { code }),
          part: yield* ownProducts,
          sorts: productSorts,
          decode: decodeProducts
        })
      }, Effect.orDie)

      const many = Effect.fn("Products.many")(function* (ids: ReadonlyArray<string>) {
        return yield* decodeProducts(sql`SELECT ${columns} FROM products WHERE id = ANY(${arrays.text(ids)})`)
      }, Effect.orDie)

      const records = recordsIn(sql, { columns, table: "products", decode: decodeProducts, notFound: productNotFound })
      const get = Effect.fn("Products.get")(records.get)

      const create = Effect.fn("Products.create")(function* (input: typeof ProductCreate.Type) {
        const now = yield* Clock.currentTimeMillis
        const id = yield* ids.make("product")
        const product: Product = { id, metadata: {}, ...input, created_at: now, updated_at: now }
        yield* sql`
          INSERT INTO products (id, name, code, metadata, created_at, updated_at)
          VALUES (${id}, ${product.name}, ${product.code}, ${json(product.metadata)}, ${instant(now)}, ${instant(now)})`.pipe(
          duplicateCode(product.code)
        )
        yield* append("product.created", id, { name: product.name, code: product.code })
        return product
      }, inTransaction)

      const update = Effect.fn("Products.update")(function* (id: string, input: typeof ProductUpdate.Type) {
        const before = yield* records.locked(id)
        yield* checkUnchanged(ProductUpdate, before)
        const now = yield* Clock.currentTimeMillis
        const product: Product = { ...patched(before, input), updated_at: now }
        return yield* edit(before, product, function* (changes) {
          // Signed responses contain the code, so a new code makes nodes load the licenses again.
          yield* sql`
            UPDATE products SET name = ${product.name}, code = ${product.code}, metadata = ${json(product.metadata)},
              updated_at = ${instant(now)} ${changes["code"] === undefined ? sql`` : sql`, catalog_revision = ${int8(yield* nextRevision)}`}
            WHERE id = ${id}`.pipe(duplicateCode(product.code))
        })
      }, inTransaction)

      const remove = Effect.fn("Products.delete")(function* (id: string) {
        const product = yield* records.locked(id)
        yield* sql`DELETE FROM products WHERE id = ${id}`.pipe(
          refuseIfReferenced(() =>
            refuse(
              "RESOURCE_IN_USE",
              "The product has policies, features, versions, custom fields, orders, subscriptions or licenses: remove those first, or keep the product.",
              "id"
            )
          )
        )
        yield* append("product.deleted", id, { name: product.name, code: product.code })
      }, inTransaction)

      const catalogChanged = Effect.fn("Products.catalogChanged")(function* (id: string) {
        const rows = yield* Effect.orDie(
          sql`UPDATE products SET catalog_revision = ${int8(yield* nextRevision)} WHERE id = ${id} RETURNING id`
        )
        if (rows.length === 0) return yield* productNotFound(id)
      })

      return Products.of({ list, many, get, create, update, delete: remove, catalogChanged })
    })
  )
}
