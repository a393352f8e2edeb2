import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { Features } from "../../../src/vendor/features/Features.ts"
import { Policies } from "../../../src/vendor/policies/Policies.ts"
import { PolicyFeatures } from "../../../src/vendor/policies/PolicyFeatures.ts"
import { Products } from "../../../src/vendor/products/Products.ts"
import { Foundations, makePolicy, makeProduct, recorded, refusalOf, walk } from "../../support/database/Services.ts"

const Subject = Layer.mergeAll(PolicyFeatures.layer, Policies.layer, Features.layer).pipe(
  Layer.provideMerge(Products.layer),
  Layer.provideMerge(Foundations)
)

let made = 0

const makeFeature = Effect.fnUntraced(function* (productId: string) {
  const features = yield* Features
  return yield* features.create(productId, { name: "F", code: `feature-${++made}` })
})

/** A policy and a feature of its product. */
const makePair = Effect.gen(function* () {
  const policy = yield* makePolicy()
  return { policy, feature: yield* makeFeature(policy.product_id) }
})

const revisionOf = Effect.fnUntraced(function* (id: string) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ revision: number }>`SELECT revision FROM policies WHERE id = ${id}`
  return row!.revision
})

layer(Subject)("The features of a policy", (it) => {
  it.effect("are set, replaced whole, listed and removed, each with an event and a new revision of the policy", () =>
    Effect.gen(function* () {
      const features = yield* PolicyFeatures
      const { feature, policy } = yield* makePair
      const revisions = [yield* revisionOf(policy.id)]
      const first = yield* recorded(
        features.set(policy.id, feature.id, { max_consumptions: 5, expires_after_days: 30, metadata: { a: 1 } })
      )
      revisions.push(yield* revisionOf(policy.id))
      const shown = { enabled: true, max_consumptions: 5, expires_after_days: 30, metadata: { a: 1 } }
      const named = { policy_id: policy.id, feature_id: feature.id, feature_code: feature.code, feature_name: "F" }
      assert.deepInclude(first.answer, { ...named, ...shown })
      assert.deepStrictEqual((yield* features.list(policy.id, {})).items, [first.answer])
      const replaced = yield* recorded(features.set(policy.id, feature.id, { enabled: false }))
      revisions.push(yield* revisionOf(policy.id))
      assert.doesNotHaveAnyKeys(replaced.answer, ["max_consumptions", "expires_after_days"])
      assert.strictEqual(replaced.answer.created_at, first.answer.created_at)
      const removed = yield* recorded(features.delete(policy.id, feature.id))
      revisions.push(yield* revisionOf(policy.id))
      assert.strictEqual(new Set(revisions).size, 4)
      const plain = { enabled: false, metadata: {} }
      assert.deepStrictEqual(
        [first, replaced, removed].flatMap(({ events }) =>
          events.map(({ event_type, metadata }) => [event_type, metadata["changes"]])
        ),
        [
          [null, shown],
          [shown, plain],
          [plain, null]
        ].map(([old, next]) => ["policy.updated", { [`features.${feature.code}`]: { old, new: next } }])
      )
      assert.deepStrictEqual((yield* features.list(policy.id, {})).items, [])
      assert.deepStrictEqual(yield* refusalOf(features.delete(policy.id, feature.id)), ["NOT_FOUND", "feature_id"])
    })
  )

  it.effect("record nothing if nothing changes", () =>
    Effect.gen(function* () {
      const features = yield* PolicyFeatures
      const { feature, policy } = yield* makePair
      const { answer } = yield* recorded(features.set(policy.id, feature.id, { max_consumptions: 5 }))
      const revision = yield* revisionOf(policy.id)
      const again = yield* recorded(
        features.set(policy.id, feature.id, { enabled: true, max_consumptions: 5, metadata: {} })
      )
      assert.deepStrictEqual([again.answer, again.events], [answer, []])
      assert.strictEqual(yield* revisionOf(policy.id), revision)
    })
  )

  it.effect("are refused for unknown records and a feature of another product", () =>
    Effect.gen(function* () {
      const features = yield* PolicyFeatures
      const { feature, policy } = yield* makePair
      const foreign = yield* makeFeature((yield* makeProduct).id)
      assert.deepStrictEqual(yield* refusalOf(features.list("pol_none", {})), ["NOT_FOUND", "id"])
      assert.deepStrictEqual(yield* refusalOf(features.set("pol_none", feature.id, {})), ["NOT_FOUND", "id"])
      assert.deepStrictEqual(yield* refusalOf(features.delete("pol_none", feature.id)), ["NOT_FOUND", "id"])
      assert.deepStrictEqual(yield* refusalOf(features.set(policy.id, "feat_none", {})), ["NOT_FOUND", "feature_id"])
      assert.deepStrictEqual(yield* refusalOf(features.set(policy.id, foreign.id, {})), [
        "LINKAGE_MISMATCH",
        "feature_id"
      ])
    })
  )

  it.effect("keep a feature from being deleted, and go with their policy", () =>
    Effect.gen(function* () {
      const { feature, policy } = yield* makePair
      yield* (yield* PolicyFeatures).set(policy.id, feature.id, {})
      const features = yield* Features
      assert.deepStrictEqual(yield* refusalOf(features.delete(feature.id)), ["RESOURCE_IN_USE", "id"])
      yield* (yield* Policies).delete(policy.id)
      yield* features.delete(feature.id)
    })
  )

  it.effect("are at most 200, in pages", () =>
    Effect.gen(function* () {
      const features = yield* PolicyFeatures
      const policy = yield* makePolicy()
      for (let index = 0; index < 200; index++)
        yield* features.set(policy.id, (yield* makeFeature(policy.product_id)).id, {})
      const one = yield* makeFeature(policy.product_id)
      assert.deepStrictEqual(yield* refusalOf(features.set(policy.id, one.id, {})), ["VALIDATION_ERROR", "feature_id"])
      const all = yield* walk((page) => features.list(policy.id, page), 90, Effect.void)
      assert.strictEqual(new Set(all.map(({ feature_id }) => feature_id)).size, 200)
    })
  )
})
