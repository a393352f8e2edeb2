import { assert, layer } from "@effect/vitest"
import { Clock, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { instant, json } from "../../../src/platform/postgres/driver/Parameters.ts"
import { Features } from "../../../src/vendor/features/Features.ts"
import { Policies } from "../../../src/vendor/policies/Policies.ts"
import { Products } from "../../../src/vendor/products/Products.ts"
import {
  catalogRevision,
  Foundations,
  insertLicense,
  makePolicy,
  makeProduct,
  recorded,
  refusalOf,
  walk
} from "../../support/database/Services.ts"

const Subject = Layer.mergeAll(Features.layer, Policies.layer).pipe(
  Layer.provideMerge(Products.layer),
  Layer.provideMerge(Foundations)
)

const makeFeature = Effect.fnUntraced(function* (code: string, productId?: string) {
  const product_id = productId ?? (yield* makeProduct).id
  return yield* (yield* Features).create(product_id, { name: "A feature", code })
})

/** A license of the feature's product that has the feature. */
const assign = Effect.fnUntraced(function* (feature: { readonly id: string; readonly product_id: string }) {
  const sql = yield* SqlClient.SqlClient
  const { id: policy_id, product_id } = yield* makePolicy(feature.product_id)
  const license_id = yield* insertLicense({ product_id, policy_id })
  const now = instant(yield* Clock.currentTimeMillis)
  const row = {
    license_id,
    feature_id: feature.id,
    enabled: true,
    metadata: json({}),
    created_at: now,
    updated_at: now
  }
  yield* sql`INSERT INTO license_features ${sql.insert(row)}`
  return sql`DELETE FROM license_features WHERE license_id = ${license_id}`
})

layer(Subject)("Features", (it) => {
  it.effect("creates a feature", () =>
    Effect.gen(function* () {
      const features = yield* Features
      const { id: product_id } = yield* makeProduct
      const now = yield* Clock.currentTimeMillis
      const { answer, events } = yield* recorded(
        features.create(product_id, { name: "Export", code: "export", metadata: { unit: "page" } })
      )
      const { id } = answer
      assert.deepStrictEqual(answer, {
        id,
        product_id,
        name: "Export",
        code: "export",
        metadata: { unit: "page" },
        created_at: now
      })
      assert.deepStrictEqual(yield* features.get(id), answer)
      assert.deepStrictEqual(events, [
        {
          event_type: "feature.created",
          resource_type: "feature",
          metadata: { product_id, name: "Export", code: "export" }
        }
      ])
    })
  )

  it.effect("refuses an unknown product, an unknown feature, and a code that the product already has", () =>
    Effect.gen(function* () {
      const features = yield* Features
      const first = yield* makeFeature("first")
      const second = yield* makeFeature("second", first.product_id)
      const input = { name: "x", code: "first" }
      for (const attempt of [
        features.create("none", input),
        features.list("none", {}),
        features.get("none"),
        features.update("none", {}),
        features.delete("none")
      ]) {
        assert.deepStrictEqual(yield* refusalOf(attempt), ["NOT_FOUND", "id"])
      }
      const duplicates = [features.create(first.product_id, input), features.update(second.id, { code: "first" })]
      for (const attempt of duplicates) assert.deepStrictEqual(yield* refusalOf(attempt), ["DUPLICATE_CODE", "code"])
      yield* makeFeature("first")
    })
  )

  it.effect("updates the given fields and records the changes", () =>
    Effect.gen(function* () {
      const features = yield* Features
      const created = yield* makeFeature("before")
      const { answer, events } = yield* recorded(features.update(created.id, { code: "after", metadata: { a: 1 } }))
      assert.deepStrictEqual(answer, { ...created, code: "after", metadata: { a: 1 } })
      assert.deepStrictEqual(yield* features.get(created.id), answer)
      assert.deepStrictEqual(events, [
        {
          event_type: "feature.updated",
          resource_type: "feature",
          metadata: { changes: { code: { old: "before", new: "after" }, metadata: { old: {}, new: { a: 1 } } } }
        }
      ])
    })
  )

  it.effect("gives the catalog a new revision with every change, and only then", () =>
    Effect.gen(function* () {
      const features = yield* Features
      const { id: product_id } = yield* makeProduct
      const revisions = [yield* catalogRevision(product_id)]
      const { id } = yield* makeFeature("counted", product_id)
      revisions.push(yield* catalogRevision(product_id))
      yield* features.update(id, { name: "Renamed" })
      const revision = yield* catalogRevision(product_id)
      const { events } = yield* recorded(
        Effect.andThen(features.update(id, {}), features.update(id, { name: "Renamed" }))
      )
      yield* refusalOf(features.create(product_id, { name: "x", code: "counted" }))
      assert.deepStrictEqual([yield* catalogRevision(product_id), events], [revision, []])
      yield* features.delete(id)
      revisions.push(revision, yield* catalogRevision(product_id))
      assert.strictEqual(new Set(revisions).size, 4)
    })
  )

  it.effect("deletes a feature, but not while a license has it", () =>
    Effect.gen(function* () {
      const features = yield* Features
      const feature = yield* makeFeature("assigned")
      const unassign = yield* assign(feature)
      const revision = yield* catalogRevision(feature.product_id)
      assert.deepStrictEqual(yield* refusalOf(features.delete(feature.id)), ["RESOURCE_IN_USE", "id"])
      assert.strictEqual(yield* catalogRevision(feature.product_id), revision)
      yield* unassign
      const { events } = yield* recorded(features.delete(feature.id))
      const { code, name, product_id } = feature
      assert.deepStrictEqual(events, [
        { event_type: "feature.deleted", resource_type: "feature", metadata: { product_id, name, code } }
      ])
      assert.deepStrictEqual(yield* refusalOf(features.get(feature.id)), ["NOT_FOUND", "id"])
    })
  )

  it.effect("allows concurrent changes of one catalog", () =>
    Effect.gen(function* () {
      const features = yield* Features
      const { id: product_id } = yield* makeProduct
      const { id } = yield* makeFeature("shared", product_id)
      const changes = Array.from({ length: 12 }, (_, index) =>
        index % 2 === 0 ? makeFeature(`made-${index}`, product_id) : features.update(id, { name: `Name ${index}` })
      )
      yield* Effect.all(changes, { concurrency: "unbounded" })
      assert.lengthOf((yield* features.list(product_id, {})).items, 7)
    })
  )

  it.effect("lists a product's features, the newest first, filtered, each once while more are created", () =>
    Effect.gen(function* () {
      const features = yield* Features
      const { id: product_id } = yield* makeProduct
      let count = 0
      const make = Effect.andThen(
        TestClock.adjust(1),
        Effect.suspend(() => makeFeature(`feature-${count++}`, product_id))
      )
      const created = yield* Effect.replicateEffect(make, 5)
      const walked = yield* walk((page) => features.list(product_id, page), 2, make)
      assert.deepStrictEqual(walked, created.toReversed())
      assert.deepStrictEqual(yield* features.list(product_id, { code: "feature-2" }), { items: created.slice(2, 3) })
      assert.deepStrictEqual(yield* features.list((yield* makeProduct).id, {}), { items: [] })
    })
  )
})
