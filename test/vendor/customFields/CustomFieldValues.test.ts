import { assert, layer } from "@effect/vitest"
import { Clock, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { Customers } from "../../../src/vendor/customers/Customers.ts"
import type { CustomFieldValueType } from "../../../src/vendor/customFields/CustomField.ts"
import { CustomFields } from "../../../src/vendor/customFields/CustomFields.ts"
import { CustomFieldValues } from "../../../src/vendor/customFields/CustomFieldValues.ts"
import { Policies } from "../../../src/vendor/policies/Policies.ts"
import { Products } from "../../../src/vendor/products/Products.ts"
import {
  Foundations,
  insertLicense,
  makePolicy,
  makeProduct,
  recorded,
  refusalOf,
  walk
} from "../../support/database/Services.ts"

const Subject = Layer.mergeAll(CustomFields.layer, CustomFieldValues.layer, Customers.layer, Policies.layer).pipe(
  Layer.provideMerge(Products.layer),
  Layer.provideMerge(Foundations)
)

interface FieldInput {
  readonly resource_type?: "license" | "customer"
  readonly value_type?: CustomFieldValueType
  readonly is_required?: boolean
  readonly code?: string
}

const makeField = Effect.fnUntraced(function* (productId: string, given: FieldInput = {}) {
  const { resource_type = "license", value_type = "string", is_required = false } = given
  const code = given.code ?? `${value_type}-field`
  const options = value_type === "enum" ? { enum_options: ["gold", "silver"] } : {}
  const input = { resource_type, value_type, is_required, code, name: "A field", ...options }
  return yield* (yield* CustomFields).create(productId, input)
})

const makeLicense = Effect.fnUntraced(function* (status = "active") {
  const { id: policy_id, product_id } = yield* makePolicy()
  const id = yield* insertLicense({ product_id, policy_id, status })
  return { id, product_id }
})

const makeCustomer = Effect.gen(function* () {
  const { id } = yield* makeProduct
  return yield* (yield* Customers).create({ name: "A customer", code: id.toLowerCase() })
})

/** A value of each type, its form in events, and a different value. */
const samples = [
  { value_type: "string", input: { string_value: "" }, presented: "", other: { string_value: "text" } },
  { value_type: "integer", input: { integer_value: 0 }, presented: 0, other: { integer_value: -(2 ** 53 - 1) } },
  { value_type: "boolean", input: { boolean_value: false }, presented: false, other: { boolean_value: true } },
  {
    value_type: "datetime",
    input: { datetime_value: 5 },
    presented: "1970-01-01T00:00:00.005Z",
    other: { datetime_value: 0 }
  },
  { value_type: "enum", input: { enum_value: "gold" }, presented: "gold", other: { enum_value: "silver" } }
] as const

layer(Subject)("CustomFieldValues", (it) => {
  it.effect("sets, changes and clears a value of each type, and records it", () =>
    Effect.gen(function* () {
      const values = yield* CustomFieldValues
      const license = yield* makeLicense()
      for (const { input, other, presented, value_type } of samples) {
        const {
          id: definition_id,
          code,
          created_at: _,
          ...field
        } = yield* makeField(license.product_id, { value_type })
        const set = (body: Parameters<typeof values.setOfLicense>[2]) =>
          recorded(values.setOfLicense(license.id, definition_id, body))
        const event = { resource_type: "license" }
        yield* TestClock.adjust(5)
        const first = yield* set(input)
        const now = yield* Clock.currentTimeMillis
        const { id: __, ...answer } = {
          ...field,
          id: "",
          code,
          definition_id,
          resource_id: license.id,
          ...input,
          updated_at: now
        }
        assert.deepStrictEqual(first.answer, answer)
        assert.deepStrictEqual(first.events, [
          {
            ...event,
            event_type: "custom_field_value.set",
            metadata: { definition_id, code, value: { old: null, new: presented } }
          }
        ])
        const listed = (yield* values.list("license", license.id, {})).items[0]
        assert.deepStrictEqual(listed, answer)

        yield* TestClock.adjust(5)
        assert.deepStrictEqual(yield* set(input), { answer: first.answer, events: [] })
        const changed = yield* set(other)
        assert.deepStrictEqual(changed.answer, { ...answer, ...other, updated_at: now + 5 })
        assert.lengthOf(changed.events, 1)
        yield* set(input)

        const cleared = yield* set({ clear: true })
        assert.isUndefined(cleared.answer)
        assert.deepStrictEqual(cleared.events, [
          {
            ...event,
            event_type: "custom_field_value.cleared",
            metadata: { definition_id, code, value: { old: presented, new: null } }
          }
        ])
        assert.deepStrictEqual(yield* set({ clear: true }), { answer: undefined, events: [] })
      }
    })
  )

  it.effect("requires exactly one typed value or clear", () =>
    Effect.gen(function* () {
      const values = yield* CustomFieldValues
      const license = yield* makeLicense()
      const { id } = yield* makeField(license.product_id)
      const bodies = [
        {},
        { clear: false },
        { string_value: "a", clear: true },
        { string_value: "a", integer_value: 1 },
        { integer_value: 1, boolean_value: true, clear: true }
      ]
      for (const body of bodies) {
        const [code] = yield* refusalOf(values.setOfLicense(license.id, id, body))
        assert.strictEqual(code, "VALIDATION_ERROR", JSON.stringify(body))
      }
      const unchanged = yield* values.setOfLicense(license.id, id, { string_value: "a", clear: false })
      assert.strictEqual(unchanged?.string_value, "a")
    })
  )

  it.effect("accepts only a value of the field's own type, and only an option of an enum", () =>
    Effect.gen(function* () {
      const values = yield* CustomFieldValues
      const license = yield* makeLicense()
      for (const field of samples) {
        const { id } = yield* makeField(license.product_id, { value_type: field.value_type })
        for (const { input, value_type } of samples) {
          if (value_type === field.value_type) continue
          assert.deepStrictEqual(yield* refusalOf(values.setOfLicense(license.id, id, input)), [
            "CUSTOM_FIELD_TYPE_MISMATCH",
            `${value_type}_value`
          ])
        }
      }
      const { id } = yield* makeField(license.product_id, { value_type: "enum", code: "choice" })
      assert.deepStrictEqual(yield* refusalOf(values.setOfLicense(license.id, id, { enum_value: "Gold" })), [
        "VALIDATION_ERROR",
        "enum_value"
      ])
    })
  )

  it.effect("does not clear a required value that is set", () =>
    Effect.gen(function* () {
      const values = yield* CustomFieldValues
      const license = yield* makeLicense()
      const { id } = yield* makeField(license.product_id, { is_required: true })
      const clear = values.setOfLicense(license.id, id, { clear: true })
      assert.deepStrictEqual(yield* recorded(clear), { answer: undefined, events: [] })
      yield* values.setOfLicense(license.id, id, { string_value: "a" })
      assert.deepStrictEqual(yield* refusalOf(clear), ["CUSTOM_FIELD_REQUIRED", "clear"])
      assert.strictEqual((yield* values.setOfLicense(license.id, id, { string_value: "b" }))?.string_value, "b")
    })
  )

  it.effect("accepts for a license the fields of its own product and kind, for a customer those of any product", () =>
    Effect.gen(function* () {
      const values = yield* CustomFieldValues
      const license = yield* makeLicense()
      const customer = yield* makeCustomer
      const body = { string_value: "a" }
      const { id: otherProductId } = yield* makeProduct
      const otherProductsField = yield* makeField(otherProductId)
      const customerField = yield* makeField(license.product_id, { resource_type: "customer" })
      for (const { id } of [otherProductsField, customerField, { id: "none" }]) {
        assert.deepStrictEqual(yield* refusalOf(values.setOfLicense(license.id, id, body)), ["NOT_FOUND", "field_id"])
      }
      for (const { id } of [otherProductsField, { id: "none" }]) {
        assert.deepStrictEqual(yield* refusalOf(values.setOfCustomer(customer.id, id, body)), ["NOT_FOUND", "field_id"])
      }
      const otherProductsCustomerField = yield* makeField(otherProductId, { resource_type: "customer" })
      for (const { id, product_id } of [customerField, otherProductsCustomerField]) {
        const { answer, events } = yield* recorded(values.setOfCustomer(customer.id, id, body))
        assert.deepStrictEqual([answer?.product_id, answer?.resource_id], [product_id, customer.id])
        assert.deepStrictEqual(
          events.map(({ event_type, resource_type }) => [event_type, resource_type]),
          [["custom_field_value.set", "customer"]]
        )
      }
      const listed = yield* values.list("customer", customer.id, {})
      assert.deepStrictEqual(
        listed.items.map(({ definition_id }) => definition_id).toSorted(),
        [customerField.id, otherProductsCustomerField.id].toSorted()
      )
    })
  )

  it.effect("answers NOT_FOUND for a license or customer that does not exist", () =>
    Effect.gen(function* () {
      const values = yield* CustomFieldValues
      const license = yield* makeLicense()
      const { id } = yield* makeField(license.product_id)
      for (const attempt of [
        values.setOfLicense("none", id, { string_value: "a" }),
        values.setOfCustomer("none", id, { string_value: "a" }),
        values.list("license", "none", {}),
        values.list("customer", license.id, {})
      ]) {
        assert.deepStrictEqual(yield* refusalOf<never>(attempt), ["NOT_FOUND", "id"])
      }
      assert.deepStrictEqual(yield* values.list("license", license.id, {}), { items: [] })
    })
  )

  it.effect("does not change a revoked license", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const values = yield* CustomFieldValues
      const license = yield* makeLicense("suspended")
      const { id } = yield* makeField(license.product_id)
      yield* values.setOfLicense(license.id, id, { string_value: "a" })
      yield* sql`UPDATE licenses SET status = 'revoked' WHERE id = ${license.id}`
      const conflict = ["LICENSE_STATE_CONFLICT", "revoked"] as const
      for (const body of [{ string_value: "a" }, { string_value: "b" }, { clear: true }]) {
        assert.deepStrictEqual(yield* refusalOf(values.setOfLicense(license.id, id, body)), conflict)
      }
      assert.deepStrictEqual(yield* refusalOf(values.setOfLicense(license.id, id, { integer_value: 1 })), [
        "CUSTOM_FIELD_TYPE_MISMATCH",
        "integer_value"
      ])
      assert.strictEqual((yield* values.list("license", license.id, {})).items[0]?.string_value, "a")
    })
  )

  it.effect("records concurrent changes of a value one after another, each with the previous value", () =>
    Effect.gen(function* () {
      const values = yield* CustomFieldValues
      const license = yield* makeLicense()
      const { id } = yield* makeField(license.product_id, { value_type: "integer" })
      const numbers = Array.from({ length: 8 }, (_, index) => index)
      const { events } = yield* recorded(
        Effect.forEach(numbers, (integer_value) => values.setOfLicense(license.id, id, { integer_value }), {
          concurrency: "unbounded"
        })
      )
      const steps = events.map(({ metadata }) => metadata.value as { old: number | null; new: number })
      assert.lengthOf(steps, numbers.length)
      steps.forEach((step, index) => {
        assert.strictEqual(step.old, index === 0 ? null : steps[index - 1]?.new)
      })
    })
  )

  it.effect("lists the values, the newest first, each once while more are set", () =>
    Effect.gen(function* () {
      const values = yield* CustomFieldValues
      const license = yield* makeLicense()
      let count = 0
      const make = Effect.gen(function* () {
        const { id } = yield* makeField(license.product_id, { code: `field-${count++}` })
        yield* TestClock.adjust(1)
        return yield* values.setOfLicense(license.id, id, { string_value: "a" })
      })
      const created = yield* Effect.replicateEffect(make, 5)
      yield* makeField(license.product_id, { code: "never-set" })
      const walked = yield* walk((page) => values.list("license", license.id, page), 2, make)
      assert.deepStrictEqual(walked, created.toReversed())
    })
  )

  it.effect("are deleted with their customer", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const values = yield* CustomFieldValues
      const customer = yield* makeCustomer
      const { id, product_id } = yield* makeField((yield* makeProduct).id, { resource_type: "customer" })
      yield* values.setOfCustomer(customer.id, id, { string_value: "a" })
      yield* (yield* Customers).delete(customer.id)
      assert.lengthOf(yield* sql`SELECT 1 FROM custom_field_values WHERE definition_id = ${id}`, 0)
      yield* (yield* CustomFields).delete(product_id, id)
    })
  )
})
