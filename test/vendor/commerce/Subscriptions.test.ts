import { assert, layer } from "@effect/vitest"
import { Clock, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { Subscriptions } from "../../../src/vendor/commerce/Subscriptions.ts"
import { Customers } from "../../../src/vendor/customers/Customers.ts"
import { Products } from "../../../src/vendor/products/Products.ts"
import { Foundations, makeProduct, recorded, refusalOf, walk } from "../../support/database/Services.ts"

const Subject = Layer.mergeAll(Subscriptions.layer, Customers.layer).pipe(
  Layer.provideMerge(Products.layer),
  Layer.provideMerge(Foundations)
)

const start = Date.UTC(2030, 0, 1)
const end = Date.UTC(2030, 1, 1)
const inputOf = (external_id: string) =>
  ({
    external_system: "stripe",
    external_id,
    status: "active",
    current_period_start: start,
    current_period_end: end
  }) as const

const makeSubscription = Effect.fnUntraced(function* (given: { readonly status?: "active" | "canceled" } = {}) {
  const { id: product_id } = yield* makeProduct
  return yield* (yield* Subscriptions).create(product_id, { ...inputOf("sub_1"), ...given })
})

const makeCustomer = (code: string) => Effect.flatMap(Customers, (customers) => customers.create({ name: code, code }))

layer(Subject)("Subscriptions", (it) => {
  it.effect("records a subscription as given", () =>
    Effect.gen(function* () {
      const subscriptions = yield* Subscriptions
      const { id: product_id } = yield* makeProduct
      const { id: customer_id } = yield* makeCustomer("payer")
      const now = yield* Clock.currentTimeMillis
      const input = { ...inputOf("sub_9"), customer_id, cancel_at_period_end: true, metadata: { plan: "pro" } }
      const { answer, events } = yield* recorded(subscriptions.create(product_id, input))
      assert.deepStrictEqual(answer, { ...input, id: answer.id, product_id, created_at: now, updated_at: now })
      assert.deepStrictEqual(yield* subscriptions.get(answer.id), answer)
      assert.deepStrictEqual(events, [
        {
          event_type: "subscription.created",
          resource_type: "subscription",
          metadata: { product_id, external_system: "stripe", external_id: "sub_9", status: "active" }
        }
      ])
      const plain = yield* subscriptions.create(product_id, inputOf("sub_10"))
      assert.deepStrictEqual([plain.cancel_at_period_end, plain.metadata], [false, {}])
      assert.notProperty(yield* subscriptions.get(plain.id), "customer_id")
    })
  )

  it.effect("accepts an external id once per product and system", () =>
    Effect.gen(function* () {
      const subscriptions = yield* Subscriptions
      const { id, product_id } = yield* makeSubscription()
      const duplicate = ["DUPLICATE_EXTERNAL_ID", "external_id"] as const
      assert.deepStrictEqual(yield* refusalOf(subscriptions.create(product_id, inputOf("sub_1"))), duplicate)
      yield* subscriptions.create(product_id, { ...inputOf("sub_1"), external_system: "paddle" })
      assert.deepStrictEqual(yield* refusalOf(subscriptions.update(id, { external_system: "paddle" })), duplicate)
      yield* makeSubscription()
    })
  )

  it.effect("answers NOT_FOUND for unknown ids, with the field", () =>
    Effect.gen(function* () {
      const subscriptions = yield* Subscriptions
      const { id, product_id } = yield* makeSubscription()
      const attempts = [
        [subscriptions.create("none", inputOf("x")), "id"],
        [subscriptions.create("none", { ...inputOf("x"), current_period_end: 0 }), "id"],
        [subscriptions.list("none", {}), "id"],
        [subscriptions.get("none"), "id"],
        [subscriptions.update("none", {}), "id"],
        [subscriptions.create(product_id, { ...inputOf("x"), customer_id: "none" }), "customer_id"],
        [subscriptions.update(id, { customer_id: "none" }), "customer_id"]
      ] as const
      for (const [attempt, detail] of attempts) {
        assert.deepStrictEqual(yield* refusalOf<never>(attempt), ["NOT_FOUND", detail])
      }
    })
  )

  it.effect("refuses a period that does not end after it starts, whichever end an update changes", () =>
    Effect.gen(function* () {
      const subscriptions = yield* Subscriptions
      const { id, product_id } = yield* makeSubscription()
      const fault = ["VALIDATION_ERROR", "current_period_end"] as const
      for (const current_period_end of [start, start - 1]) {
        const input = { ...inputOf("x"), current_period_end }
        assert.deepStrictEqual(yield* refusalOf(subscriptions.create(product_id, input)), fault)
        assert.deepStrictEqual(yield* refusalOf(subscriptions.update(id, { current_period_end })), fault)
      }
      assert.deepStrictEqual(yield* refusalOf(subscriptions.update(id, { current_period_start: end })), fault)
      const updated = yield* subscriptions.update(id, { current_period_start: end, current_period_end: end + 1 })
      assert.deepStrictEqual([updated.current_period_start, updated.current_period_end], [end, end + 1])
    })
  )

  it.effect("does not overwrite newer facts with older ones", () =>
    Effect.gen(function* () {
      const subscriptions = yield* Subscriptions
      const { id, product_id } = yield* makeSubscription()
      const seen = yield* subscriptions.update(id, { status: "past_due", observed_at: start + 2 })
      assert.deepStrictEqual([seen.status, seen.observed_at], ["past_due", start + 2])
      const older = yield* recorded(subscriptions.update(id, { status: "active", observed_at: start + 1 }))
      assert.deepStrictEqual([older.answer, older.events], [seen, []])
      assert.deepStrictEqual(yield* subscriptions.get(id), seen)
      const repeated = yield* recorded(subscriptions.update(id, { status: "past_due", observed_at: start + 2 }))
      assert.deepStrictEqual(repeated.events, [])
      // Without a time, a request is what its sender wants now; null forgets the time.
      const byHand = yield* subscriptions.update(id, { status: "paused" })
      assert.deepStrictEqual([byHand.status, byHand.observed_at], ["paused", start + 2])
      assert.notProperty(yield* subscriptions.update(id, { observed_at: null }), "observed_at")
      const given = yield* subscriptions.create(product_id, { ...inputOf("seen"), observed_at: start })
      assert.strictEqual((yield* subscriptions.get(given.id)).observed_at, start)
      const newer = { status: "active", observed_at: start + 1 } as const
      const last = { status: "past_due", observed_at: start + 2 } as const
      yield* Effect.all(
        [newer, last, newer].map((input) => subscriptions.update(given.id, input)),
        {
          concurrency: "unbounded"
        }
      )
      assert.strictEqual((yield* subscriptions.get(given.id)).status, "past_due")
    })
  )

  it.effect("accepts canceled_at only with the status canceled", () =>
    Effect.gen(function* () {
      const subscriptions = yield* Subscriptions
      const { id, product_id } = yield* makeSubscription()
      const canceled = yield* makeSubscription({ status: "canceled" })
      const fault = ["VALIDATION_ERROR", "canceled_at"] as const
      assert.deepStrictEqual(
        yield* refusalOf(subscriptions.create(product_id, { ...inputOf("x"), canceled_at: start })),
        fault
      )
      assert.deepStrictEqual(yield* refusalOf(subscriptions.update(id, { canceled_at: start })), fault)
      assert.deepStrictEqual(
        yield* refusalOf(subscriptions.update(canceled.id, { status: "active", canceled_at: start })),
        fault
      )
      const given = yield* subscriptions.create(product_id, { ...inputOf("y"), status: "canceled", canceled_at: start })
      assert.strictEqual((yield* subscriptions.get(given.id)).canceled_at, start)
    })
  )

  it.effect("stores when a subscription was canceled, and clears it when the status changes", () =>
    Effect.gen(function* () {
      const subscriptions = yield* Subscriptions
      yield* TestClock.adjust(7)
      const created = yield* makeSubscription({ status: "canceled" })
      assert.strictEqual(created.canceled_at, yield* Clock.currentTimeMillis)

      const { id } = yield* makeSubscription()
      yield* TestClock.adjust(7)
      const now = yield* Clock.currentTimeMillis
      const { answer, events } = yield* recorded(subscriptions.update(id, { status: "canceled" }))
      assert.strictEqual(answer.canceled_at, now)
      assert.deepStrictEqual(events[0]?.metadata, {
        changes: {
          status: { old: "active", new: "canceled" },
          canceled_at: { old: null, new: new Date(now).toISOString() }
        }
      })
      // Set to the same status again, the time does not change.
      yield* TestClock.adjust(7)
      assert.strictEqual((yield* subscriptions.update(id, { status: "canceled" })).canceled_at, now)
      assert.strictEqual((yield* subscriptions.update(id, { canceled_at: start })).canceled_at, start)
      assert.notProperty(yield* subscriptions.update(id, { status: "past_due" }), "canceled_at")
      assert.notProperty(yield* subscriptions.get(id), "canceled_at")
      const back = yield* subscriptions.update(id, { status: "canceled", canceled_at: start + 5 })
      assert.strictEqual(back.canceled_at, start + 5)
      assert.notProperty(yield* subscriptions.update(id, { canceled_at: null }), "canceled_at")
    })
  )

  it.effect("allows every change of status", () =>
    Effect.gen(function* () {
      const subscriptions = yield* Subscriptions
      const { id } = yield* makeSubscription()
      const statuses = ["trialing", "active", "past_due", "paused", "canceled"] as const
      for (const from of statuses) {
        for (const to of statuses) {
          yield* subscriptions.update(id, { status: from })
          assert.strictEqual((yield* subscriptions.update(id, { status: to })).status, to)
        }
      }
    })
  )

  it.effect("sets and clears the customer, and writes nothing when nothing changes", () =>
    Effect.gen(function* () {
      const subscriptions = yield* Subscriptions
      const customers = yield* Customers
      const { id: customer_id } = yield* makeCustomer("linked")
      const created = yield* makeSubscription()
      yield* TestClock.adjust(7)
      const linked = yield* recorded(subscriptions.update(created.id, { customer_id }))
      assert.strictEqual(linked.answer.customer_id, customer_id)
      assert.deepStrictEqual(linked.events, [
        {
          event_type: "subscription.updated",
          resource_type: "subscription",
          metadata: { changes: { customer_id: { old: null, new: customer_id } } }
        }
      ])
      assert.deepStrictEqual(yield* refusalOf(customers.delete(customer_id)), ["RESOURCE_IN_USE", "id"])
      const nothing = [{}, { customer_id }, { status: "active" as const, metadata: {}, canceled_at: null }]
      for (const input of nothing) {
        const { answer, events } = yield* recorded(subscriptions.update(created.id, input))
        assert.deepStrictEqual([answer, events], [linked.answer, []])
      }
      assert.notProperty(yield* subscriptions.update(created.id, { customer_id: null }), "customer_id")
      yield* customers.delete(customer_id)
    })
  )

  it.effect("lists a product's subscriptions, the newest first, filtered, each once while more are created", () =>
    Effect.gen(function* () {
      const subscriptions = yield* Subscriptions
      const products = yield* Products
      const { id: product_id } = yield* makeProduct
      let count = 0
      const make = Effect.andThen(
        TestClock.adjust(1),
        Effect.suspend(() => subscriptions.create(product_id, inputOf(`sub_${count++}`)))
      )
      const created = yield* Effect.replicateEffect(make, 5)
      const walked = yield* walk((page) => subscriptions.list(product_id, page), 2, make)
      assert.deepStrictEqual(walked, created.toReversed())
      const { id: customer_id } = yield* makeCustomer("filtered")
      const [first] = created
      const changed = yield* subscriptions.update(first?.id ?? "", {
        customer_id,
        status: "paused",
        external_system: "other"
      })
      const filters = [
        { customer_id },
        { status: "paused" },
        { external_system: "other" },
        { external_id: "sub_0" }
      ] as const
      for (const filter of filters) {
        assert.deepStrictEqual(yield* subscriptions.list(product_id, filter), { items: [changed] })
      }
      assert.deepStrictEqual(yield* subscriptions.list(product_id, { ...filters[0], status: "active" }), { items: [] })
      assert.deepStrictEqual(yield* subscriptions.list((yield* makeProduct).id, {}), { items: [] })
      assert.deepStrictEqual(yield* refusalOf(products.delete(product_id)), ["RESOURCE_IN_USE", "id"])
    })
  )
})
