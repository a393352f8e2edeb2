import { assert, layer } from "@effect/vitest"
import { Clock, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { Customers } from "../../../src/vendor/customers/Customers.ts"
import { CustomFields } from "../../../src/vendor/customFields/CustomFields.ts"
import { CustomFieldValues } from "../../../src/vendor/customFields/CustomFieldValues.ts"
import { Products } from "../../../src/vendor/products/Products.ts"
import { Foundations, makeProduct, recorded, refusalOf, walk } from "../../support/database/Services.ts"

const Subject = Layer.mergeAll(CustomFields.layer, CustomFieldValues.layer, Customers.layer).pipe(
  Layer.provideMerge(Products.layer),
  Layer.provideMerge(Foundations)
)

const text = { resource_type: "customer", code: "note", name: "Note", value_type: "string" } as const
const choice = { ...text, code: "tier", name: "Tier", value_type: "enum", enum_options: ["gold", "silver"] } as const

const makeField = Effect.fnUntraced(function* (given: Partial<typeof text> = {}) {
  const { id: product_id } = yield* makeProduct
  return yield* (yield* CustomFields).create(product_id, { ...text, ...given })
})

const makeChoice = Effect.gen(function* () {
  const { id: product_id } = yield* makeProduct
  return yield* (yield* CustomFields).create(product_id, choice)
})

layer(Subject)("CustomFields", (it) => {
  it.effect("defines a field", () =>
    Effect.gen(function* () {
      const fields = yield* CustomFields
      const { id: product_id } = yield* makeProduct
      const now = yield* Clock.currentTimeMillis
      const { answer, events } = yield* recorded(
        fields.create(product_id, { ...choice, is_required: true, metadata: { a: 1 } })
      )
      assert.deepStrictEqual(answer, {
        ...choice,
        id: answer.id,
        product_id,
        is_required: true,
        enum_options: ["gold", "silver"],
        metadata: { a: 1 },
        created_at: now,
        updated_at: now
      })
      assert.deepStrictEqual(yield* fields.get(product_id, answer.id), answer)
      assert.deepStrictEqual(events, [
        {
          event_type: "custom_field.created",
          resource_type: "custom_field",
          metadata: { product_id, resource_type: "customer", code: "tier", value_type: "enum" }
        }
      ])
      const plain = yield* fields.create(product_id, text)
      assert.deepStrictEqual([plain.is_required, plain.enum_options, plain.metadata], [false, [], {}])
    })
  )

  it.effect("accepts a code once per product and kind of resource", () =>
    Effect.gen(function* () {
      const fields = yield* CustomFields
      const { id: product_id } = yield* makeProduct
      yield* fields.create(product_id, text)
      const duplicate = ["DUPLICATE_CODE", "code"] as const
      assert.deepStrictEqual(yield* refusalOf(fields.create(product_id, { ...text, value_type: "integer" })), duplicate)
      yield* fields.create(product_id, { ...text, resource_type: "license" })
      yield* makeField()
      const other = yield* fields.create(product_id, { ...text, code: "other" })
      assert.deepStrictEqual(yield* refusalOf(fields.update(product_id, other.id, { code: "note" })), duplicate)
    })
  )

  it.effect("finds a field under its own product only", () =>
    Effect.gen(function* () {
      const fields = yield* CustomFields
      const { id, product_id } = yield* makeField()
      const { id: other } = yield* makeProduct
      for (const [productId, fieldId, detail] of [
        [other, id, "field_id"],
        [product_id, "none", "field_id"],
        ["none", id, "id"]
      ] as const) {
        for (const attempt of [
          fields.get(productId, fieldId),
          fields.update(productId, fieldId, { name: "x" }),
          fields.delete(productId, fieldId)
        ]) {
          assert.deepStrictEqual(yield* refusalOf<never>(attempt), ["NOT_FOUND", detail])
        }
      }
      for (const input of [text, { ...text, enum_options: ["without the type"] }])
        assert.deepStrictEqual(yield* refusalOf(fields.create("none", input)), ["NOT_FOUND", "id"])
      assert.deepStrictEqual(yield* refusalOf(fields.list("none", {})), ["NOT_FOUND", "id"])
    })
  )

  it.effect("allows options for enum fields only", () =>
    Effect.gen(function* () {
      const fields = yield* CustomFields
      const { id: product_id } = yield* makeProduct
      const fault = ["VALIDATION_ERROR", "enum_options"] as const
      const { enum_options: _, ...withoutOptions } = choice
      assert.deepStrictEqual(yield* refusalOf(fields.create(product_id, withoutOptions)), fault)
      assert.deepStrictEqual(yield* refusalOf(fields.create(product_id, { ...choice, enum_options: [] })), fault)
      for (const value_type of ["string", "integer", "boolean", "datetime"] as const) {
        assert.deepStrictEqual(yield* refusalOf(fields.create(product_id, { ...choice, value_type })), fault)
      }
      const enumField = yield* fields.create(product_id, choice)
      const textField = yield* fields.create(product_id, text)
      assert.deepStrictEqual(yield* refusalOf(fields.update(product_id, enumField.id, { enum_options: [] })), fault)
      assert.deepStrictEqual(yield* refusalOf(fields.update(product_id, textField.id, { enum_options: ["a"] })), fault)
      assert.deepStrictEqual(yield* fields.update(product_id, textField.id, { enum_options: [] }), textField)
    })
  )

  it.effect("updates the given fields, records the changes, and writes nothing when nothing changes", () =>
    Effect.gen(function* () {
      const fields = yield* CustomFields
      const created = yield* makeChoice
      yield* TestClock.adjust(5)
      for (const input of [{}, { name: "Tier", enum_options: ["gold", "silver"], is_required: false }]) {
        const { answer, events } = yield* recorded(fields.update(created.product_id, created.id, input))
        assert.deepStrictEqual([answer, events], [created, []])
      }
      const { answer, events } = yield* recorded(
        fields.update(created.product_id, created.id, {
          code: "level",
          is_required: true,
          enum_options: ["gold", "bronze"]
        })
      )
      assert.deepStrictEqual(yield* fields.get(created.product_id, created.id), answer)
      assert.strictEqual(answer.updated_at, created.updated_at + 5)
      assert.deepStrictEqual(events, [
        {
          event_type: "custom_field.updated",
          resource_type: "custom_field",
          metadata: {
            changes: {
              code: { old: "tier", new: "level" },
              is_required: { old: false, new: true },
              enum_options: { old: ["gold", "silver"], new: ["gold", "bronze"] }
            }
          }
        }
      ])
    })
  )

  it.effect("refuses to delete options and definitions that values use", () =>
    Effect.gen(function* () {
      const fields = yield* CustomFields
      const values = yield* CustomFieldValues
      const { id: customer_id } = yield* (yield* Customers).create({ name: "User", code: "user" })
      const { id, product_id } = yield* makeChoice
      yield* values.setOfCustomer(customer_id, id, { enum_value: "gold" })
      const removal = fields.update(product_id, id, { enum_options: ["silver"] })
      assert.deepStrictEqual(yield* refusalOf(removal), ["RESOURCE_IN_USE", "enum_options"])
      assert.deepStrictEqual(yield* refusalOf(fields.delete(product_id, id)), ["RESOURCE_IN_USE", "field_id"])
      yield* fields.update(product_id, id, { enum_options: ["bronze", "gold"] })
      yield* values.setOfCustomer(customer_id, id, { enum_value: "bronze" })
      yield* fields.update(product_id, id, { enum_options: ["bronze"] })
      yield* values.setOfCustomer(customer_id, id, { clear: true })
      const { events } = yield* recorded(fields.delete(product_id, id))
      assert.deepStrictEqual(events, [
        {
          event_type: "custom_field.deleted",
          resource_type: "custom_field",
          metadata: { product_id, resource_type: "customer", code: "tier" }
        }
      ])
      assert.deepStrictEqual(yield* refusalOf(fields.get(product_id, id)), ["NOT_FOUND", "field_id"])
    })
  )

  it.effect("does not delete an option while a value that uses it is being set", () =>
    Effect.gen(function* () {
      const fields = yield* CustomFields
      const values = yield* CustomFieldValues
      const { id: customer_id } = yield* (yield* Customers).create({ name: "Racer", code: "racer" })
      for (let index = 0; index < 10; index++) {
        const { id, product_id } = yield* makeChoice
        const set = Effect.result(values.setOfCustomer(customer_id, id, { enum_value: "gold" }))
        const drop = Effect.result(fields.update(product_id, id, { enum_options: ["silver"] }))
        const [first, second] = yield* Effect.all(index % 2 === 0 ? [set, drop] : [drop, set], {
          concurrency: "unbounded"
        })
        assert.deepStrictEqual([first._tag, second._tag].toSorted(), ["Failure", "Success"])
      }
    })
  )

  it.effect("lists a product's fields, the newest first, filtered, each once while more are created", () =>
    Effect.gen(function* () {
      const fields = yield* CustomFields
      const products = yield* Products
      const { id: product_id } = yield* makeProduct
      let count = 0
      const make = Effect.andThen(
        TestClock.adjust(1),
        Effect.suspend(() => fields.create(product_id, { ...text, code: `field-${count++}` }))
      )
      const created = yield* Effect.replicateEffect(make, 5)
      const walked = yield* walk((page) => fields.list(product_id, page), 2, make)
      assert.deepStrictEqual(walked, created.toReversed())
      const other = yield* fields.create(product_id, { ...text, resource_type: "license", value_type: "integer" })
      for (const filter of [{ code: "note" }, { resource_type: "license" }, { value_type: "integer" }] as const) {
        assert.deepStrictEqual(yield* fields.list(product_id, filter), { items: [other] })
      }
      assert.deepStrictEqual(yield* fields.list((yield* makeProduct).id, {}), { items: [] })
      assert.deepStrictEqual(yield* refusalOf(products.delete(product_id)), ["RESOURCE_IN_USE", "id"])
    })
  )
})
