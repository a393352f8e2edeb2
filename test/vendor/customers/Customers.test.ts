import { assert, layer } from "@effect/vitest"
import { Clock, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { Customers } from "../../../src/vendor/customers/Customers.ts"
import { Policies } from "../../../src/vendor/policies/Policies.ts"
import { Products } from "../../../src/vendor/products/Products.ts"
import { Foundations, insertLicense, makePolicy, recorded, refusalOf, walk } from "../../support/database/Services.ts"

const Subject = Layer.mergeAll(Customers.layer, Policies.layer).pipe(
  Layer.provideMerge(Products.layer),
  Layer.provideMerge(Foundations)
)

layer(Subject)("Customers", (it) => {
  it.effect("creates a customer, with and without an e-mail address", () =>
    Effect.gen(function* () {
      const customers = yield* Customers
      const now = yield* Clock.currentTimeMillis
      const { answer, events } = yield* recorded(
        customers.create({ name: "Ada", code: "ada", email: "ada@example.com", metadata: { vip: true } })
      )
      assert.deepStrictEqual(answer, {
        id: answer.id,
        name: "Ada",
        code: "ada",
        email: "ada@example.com",
        metadata: { vip: true },
        created_at: now,
        updated_at: now
      })
      assert.deepStrictEqual(yield* customers.get(answer.id), answer)
      assert.deepStrictEqual(events, [
        { event_type: "customer.created", resource_type: "customer", metadata: { name: "Ada", code: "ada" } }
      ])
      const { id } = yield* customers.create({ name: "Bob", code: "bob" })
      assert.notProperty(yield* customers.get(id), "email")
    })
  )

  it.effect("refuses a code that another customer has, on create and update", () =>
    Effect.gen(function* () {
      const customers = yield* Customers
      yield* customers.create({ name: "One", code: "one" })
      const two = yield* customers.create({ name: "Two", code: "two" })
      const duplicate = ["DUPLICATE_CODE", "code"] as const
      assert.deepStrictEqual(yield* refusalOf(customers.create({ name: "x", code: "one" })), duplicate)
      assert.deepStrictEqual(yield* refusalOf(customers.update(two.id, { code: "one" })), duplicate)
      assert.deepStrictEqual(yield* customers.get(two.id), two)
    })
  )

  it.effect("updates the given fields, clears the e-mail address with null, and records the changes", () =>
    Effect.gen(function* () {
      const customers = yield* Customers
      const created = yield* customers.create({ name: "Eve", code: "eve", email: "eve@example.com" })
      yield* TestClock.adjust(5)
      const { answer, events } = yield* recorded(customers.update(created.id, { name: "Eva", email: null }))
      const { email: _, ...rest } = created
      assert.deepStrictEqual(answer, { ...rest, name: "Eva", updated_at: yield* Clock.currentTimeMillis })
      assert.deepStrictEqual(yield* customers.get(created.id), answer)
      assert.deepStrictEqual(events, [
        {
          event_type: "customer.updated",
          resource_type: "customer",
          metadata: { changes: { name: { old: "Eve", new: "Eva" }, email: { old: "eve@example.com", new: null } } }
        }
      ])
    })
  )

  it.effect("replaces metadata, and writes nothing when nothing changes", () =>
    Effect.gen(function* () {
      const customers = yield* Customers
      const created = yield* customers.create({ name: "Same", code: "same", metadata: { a: 1 } })
      yield* TestClock.adjust(5)
      for (const input of [{}, { name: "Same" }, { email: null }, { metadata: { a: 1 } }]) {
        const { answer, events } = yield* recorded(customers.update(created.id, input))
        assert.deepStrictEqual([answer, events], [created, []])
      }
      yield* customers.update(created.id, { metadata: { b: 2 } })
      assert.deepStrictEqual((yield* customers.get(created.id)).metadata, { b: 2 })
    })
  )

  it.effect("answers NOT_FOUND for an unknown id", () =>
    Effect.gen(function* () {
      const customers = yield* Customers
      for (const attempt of [customers.get("none"), customers.update("none", {}), customers.delete("none")]) {
        assert.deepStrictEqual(yield* refusalOf(attempt), ["NOT_FOUND", "id"])
      }
    })
  )

  it.effect("deletes a customer, but not while a license links to it", () =>
    Effect.gen(function* () {
      const customers = yield* Customers
      const { id } = yield* customers.create({ name: "Linked", code: "linked" })
      const { id: policy_id, product_id } = yield* makePolicy()
      yield* insertLicense({ product_id, policy_id, customer_id: id })
      assert.deepStrictEqual(yield* refusalOf(customers.delete(id)), ["RESOURCE_IN_USE", "id"])
      const free = yield* customers.create({ name: "Free", code: "free" })
      const { events } = yield* recorded(customers.delete(free.id))
      assert.deepStrictEqual(events, [
        { event_type: "customer.deleted", resource_type: "customer", metadata: { name: "Free", code: "free" } }
      ])
      assert.deepStrictEqual(yield* refusalOf(customers.get(free.id)), ["NOT_FOUND", "id"])
    })
  )

  it.effect("lists customers, the newest first, filtered, each once while more are created", () =>
    Effect.gen(function* () {
      const customers = yield* Customers
      let count = 0
      const make = Effect.andThen(
        TestClock.adjust(1),
        Effect.suspend(() =>
          customers.create({ name: "Walked", code: `walked-${count++}`, email: "walked@example.com" })
        )
      )
      const created = yield* Effect.replicateEffect(make, 5)
      const walked = yield* walk((page) => customers.list({ ...page, email: "walked@example.com" }), 2, make)
      assert.deepStrictEqual(walked, created.toReversed())
      assert.deepStrictEqual(yield* customers.list({ code: "walked-1" }), { items: created.slice(1, 2) })
      const all = yield* customers.list({ limit: 200 })
      assert.isAbove(all.items.length, 6)
    })
  )
})
