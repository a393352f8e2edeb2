import { assert, layer } from "@effect/vitest"
import { Clock, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { Products } from "../../../src/vendor/products/Products.ts"
import { Versions } from "../../../src/vendor/versions/Versions.ts"
import {
  catalogRevision,
  Foundations,
  makeProduct,
  recorded,
  refusalOf,
  walk
} from "../../support/database/Services.ts"

const Subject = Versions.layer.pipe(Layer.provideMerge(Products.layer), Layer.provideMerge(Foundations))

layer(Subject)("Versions", (it) => {
  it.effect("creates a version, released now unless another time is given", () =>
    Effect.gen(function* () {
      const versions = yield* Versions
      const { id: product_id } = yield* makeProduct
      const now = yield* Clock.currentTimeMillis
      const { answer, events } = yield* recorded(versions.create(product_id, { version: "2.0.0" }))
      assert.deepStrictEqual(answer, {
        id: answer.id,
        product_id,
        version: "2.0.0",
        released_at: now,
        metadata: {},
        created_at: now,
        updated_at: now
      })
      assert.deepStrictEqual(yield* versions.get(product_id, answer.id), answer)
      assert.deepStrictEqual(events, [
        {
          event_type: "product_version.created",
          resource_type: "product_version",
          metadata: { product_id, version: "2.0.0", released_at: new Date(now).toISOString() }
        }
      ])
      const earlier = yield* versions.create(product_id, {
        version: "1.0.0",
        released_at: -86_400_000,
        metadata: { a: 1 }
      })
      const read = yield* versions.get(product_id, earlier.id)
      assert.deepStrictEqual([read.released_at, read.metadata], [-86_400_000, { a: 1 }])
    })
  )

  it.effect("refuses a version that the product already has, and accepts it for another product", () =>
    Effect.gen(function* () {
      const versions = yield* Versions
      const { id: product_id } = yield* makeProduct
      yield* versions.create(product_id, { version: "1.0" })
      const revision = yield* catalogRevision(product_id)
      assert.deepStrictEqual(yield* refusalOf(versions.create(product_id, { version: "1.0" })), [
        "DUPLICATE_VERSION",
        "version"
      ])
      assert.strictEqual(yield* catalogRevision(product_id), revision)
      yield* versions.create(product_id, { version: "1.0.0" })
      yield* versions.create((yield* makeProduct).id, { version: "1.0" })
    })
  )

  it.effect("finds a version under its own product only", () =>
    Effect.gen(function* () {
      const versions = yield* Versions
      const { id: product_id } = yield* makeProduct
      const { id: other } = yield* makeProduct
      const { id } = yield* versions.create(product_id, { version: "1" })
      for (const attempt of [
        versions.get(other, id),
        versions.delete(other, id),
        versions.get(product_id, "none"),
        versions.delete(product_id, "none")
      ]) {
        assert.deepStrictEqual(yield* refusalOf(attempt), ["NOT_FOUND", "version_id"])
      }
      for (const attempt of [
        versions.get("none", id),
        versions.delete("none", id),
        versions.list("none", {}),
        versions.create("none", { version: "1" })
      ]) {
        assert.deepStrictEqual(yield* refusalOf(attempt), ["NOT_FOUND", "id"])
      }
      assert.strictEqual((yield* versions.get(product_id, id)).id, id)
    })
  )

  it.effect("deletes a version, and gives the catalog a new revision with every change and only then", () =>
    Effect.gen(function* () {
      const versions = yield* Versions
      const products = yield* Products
      const { id: product_id } = yield* makeProduct
      const revisions = [yield* catalogRevision(product_id)]
      const { id } = yield* versions.create(product_id, { version: "1" })
      revisions.push(yield* catalogRevision(product_id))
      assert.deepStrictEqual(yield* refusalOf(products.delete(product_id)), ["RESOURCE_IN_USE", "id"])
      const { events } = yield* recorded(versions.delete(product_id, id))
      assert.deepStrictEqual(events, [
        {
          event_type: "product_version.deleted",
          resource_type: "product_version",
          metadata: { product_id, version: "1" }
        }
      ])
      const revision = yield* catalogRevision(product_id)
      assert.strictEqual(new Set([...revisions, revision]).size, 3)
      yield* refusalOf(versions.delete(product_id, id))
      assert.strictEqual(yield* catalogRevision(product_id), revision)
      yield* products.delete(product_id)
    })
  )

  it.effect("lists a product's versions, the most recently created first, each once while more are created", () =>
    Effect.gen(function* () {
      const versions = yield* Versions
      const { id: product_id } = yield* makeProduct
      let count = 0
      const make = Effect.andThen(
        TestClock.adjust(1),
        Effect.suspend(() => versions.create(product_id, { version: `1.${count++}` }))
      )
      const created = yield* Effect.replicateEffect(make, 5)
      const walked = yield* walk((page) => versions.list(product_id, page), 2, make)
      assert.deepStrictEqual(walked, created.toReversed())
      assert.deepStrictEqual(yield* versions.list(product_id, { version: "1.3" }), { items: created.slice(3, 4) })
    })
  )
})
