/**
 * Product features. Every change raises the product's `catalog_revision` in the same transaction: licenses compare it to detect
 * the change. The product's row is locked before the feature's, as for versions, so that two changes cannot deadlock.
 */
import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { checkUnchanged } from "../../access/preconditions/RecordTag.ts"
import { type Refusal, refuse, refuseUnknownId } from "../../contract/api/Failure.ts"
import { Identifiers } from "../../contract/api/Identifier.ts"
import type { Page } from "../../contract/api/Paging.ts"
import { EventLog } from "../../ledger/events/EventLog.ts"
import { instant, json } from "../../platform/postgres/driver/Parameters.ts"
import {
  constraints,
  decodeRows,
  patched,
  refuseIfReferenced,
  transaction
} from "../../platform/postgres/queries/Sql.ts"
import { Products } from "../products/Products.ts"
import { editOf, eventsOf, type FilteredBy, listOfProduct, recordsIn } from "../Records.ts"
import { Feature, type FeatureCreate, FeatureUpdate, featureFilters, featureSorts } from "./Feature.ts"

const decodeFeatures = decodeRows(Feature)

const notFound = (id: string) => refuseUnknownId("feature", id)
const duplicateCode = (code: string) =>
  constraints({
    features_code_key: () =>
      refuse("DUPLICATE_CODE", `Another feature of the product has the code ${code}: choose a different one.`, "code")
  })

type FeatureFilter = FilteredBy<typeof featureFilters>

export class Features extends Context.Service<
  Features,
  {
    list(productId: string, filter: FeatureFilter): Effect.Effect<Page<Feature>, Refusal<"NOT_FOUND">>
    get(id: string): Effect.Effect<Feature, Refusal<"NOT_FOUND">>
    create(
      productId: string,
      input: typeof FeatureCreate.Type
    ): Effect.Effect<Feature, Refusal<"NOT_FOUND" | "DUPLICATE_CODE">>
    update(
      id: string,
      input: typeof FeatureUpdate.Type
    ): Effect.Effect<Feature, Refusal<"NOT_FOUND" | "DUPLICATE_CODE" | "CONFLICT">>
    delete(id: string): Effect.Effect<void, Refusal<"NOT_FOUND" | "RESOURCE_IN_USE">>
  }
>()("licensing/vendor/features/Features") {
  static readonly layer = Layer.effect(
    Features,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const ids = yield* Identifiers
      const events = yield* EventLog
      const products = yield* Products
      const columns = sql.literal("id, product_id, code, name, metadata, created_at")
      const inTransaction = transaction(sql)
      const append = eventsOf(events, "feature")
      const edit = editOf(events, "feature", FeatureUpdate)

      const source = { columns, table: "features", sorts: featureSorts, decode: decodeFeatures, notFound }
      const records = recordsIn(sql, source)
      const list = Effect.fn("Features.list")(listOfProduct(sql, products.get, source, featureFilters))

      const get = Effect.fn("Features.get")(records.get)

      const locked = Effect.fnUntraced(function* (id: string) {
        yield* sql`
          SELECT id FROM products WHERE id = (SELECT product_id FROM features WHERE id = ${id}) FOR NO KEY UPDATE`
        return yield* records.locked(id)
      })

      const create = Effect.fn("Features.create")(function* (productId: string, input: typeof FeatureCreate.Type) {
        yield* products.catalogChanged(productId)
        const now = yield* Clock.currentTimeMillis
        const id = yield* ids.make("feature")
        const feature: Feature = { id, product_id: productId, metadata: {}, ...input, created_at: now }
        yield* sql`
          INSERT INTO features (id, product_id, code, name, metadata, created_at)
          VALUES (${id}, ${productId}, ${feature.code}, ${feature.name}, ${json(feature.metadata)}, ${instant(now)})`.pipe(
          duplicateCode(feature.code)
        )
        yield* append("feature.created", id, { product_id: productId, name: feature.name, code: feature.code })
        return feature
      }, inTransaction)

      const update = Effect.fn("Features.update")(function* (id: string, input: typeof FeatureUpdate.Type) {
        const before = yield* locked(id)
        yield* checkUnchanged(FeatureUpdate, before)
        const feature = patched<Feature>(before, input)
        return yield* edit(before, feature, function* () {
          yield* products.catalogChanged(feature.product_id)
          yield* sql`
            UPDATE features SET name = ${feature.name}, code = ${feature.code}, metadata = ${json(feature.metadata)}
            WHERE id = ${id}`.pipe(duplicateCode(feature.code))
        })
      }, inTransaction)

      const remove = Effect.fn("Features.delete")(function* (id: string) {
        const feature = yield* locked(id)
        yield* products.catalogChanged(feature.product_id)
        yield* sql`DELETE FROM features WHERE id = ${id}`.pipe(
          refuseIfReferenced(() =>
            refuse(
              "RESOURCE_IN_USE",
              "The feature is assigned to licenses or comes with a policy: remove it from them first.",
              "id"
            )
          )
        )
        yield* append("feature.deleted", id, { product_id: feature.product_id, name: feature.name, code: feature.code })
      }, inTransaction)

      return Features.of({ list, get, create, update, delete: remove })
    })
  )
}
