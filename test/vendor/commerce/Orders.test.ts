import { assert, layer } from "@effect/vitest"
import { Clock, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { Orders } from "../../../src/vendor/commerce/Orders.ts"
import { Subscriptions } from "../../../src/vendor/commerce/Subscriptions.ts"
import { Customers } from "../../../src/vendor/customers/Customers.ts"
import { Products } from "../../../src/vendor/products/Products.ts"
import { Foundations, makeProduct, recorded, refusalOf, walk } from "../../support/database/Services.ts"

const Subject = Layer.mergeAll(Orders.layer, Subscriptions.layer, Customers.layer).pipe(
  Layer.provideMerge(Products.layer),
  Layer.provideMerge(Foundations)
)

const start = Date.UTC(2030, 0, 1)
const end = Date.UTC(2030, 1, 1)
const inputOf = (external_id: string) => ({ external_system: "shop", external_id, status: "paid" }) as const

const makeOrder = Effect.gen(function* () {
  const { id: product_id } = yield* makeProduct
  return yield* (yield* Orders).create(product_id, inputOf("ord_1"))
})

const makeSubscription = Effect.fnUntraced(function* (productId?: string) {
  const product_id = productId ?? (yield* makeProduct).id
  const period = { current_period_start: start, current_period_end: end }
  const input = { external_system: "shop", external_id: "sub_1", status: "active", ...period } as const
  return yield* (yield* Subscriptions).create(product_id, input)
})

const makeCustomer = (code: string) => Effect.flatMap(Customers, (customers) => customers.create({ name: code, code }))

layer(Subject)("Orders", (it) => {
  it.effect("records an order as given", () =>
    Effect.gen(function* () {
      const orders = yield* Orders
      const { id: subscription_id, product_id } = yield* makeSubscription()
      const { id: customer_id } = yield* makeCustomer("buyer")
      const now = yield* Clock.currentTimeMillis
      const input = {
        ...inputOf("ord_9"),
        customer_id,
        subscription_id,
        period_start: start,
        period_end: end,
        metadata: { total: 12.5 }
      }
      const { answer, events } = yield* recorded(orders.create(product_id, input))
      assert.deepStrictEqual(answer, { ...input, id: answer.id, product_id, created_at: now, updated_at: now })
      assert.deepStrictEqual(yield* orders.get(answer.id), answer)
      assert.deepStrictEqual(events, [
        {
          event_type: "order.created",
          resource_type: "order",
          metadata: { product_id, external_system: "shop", external_id: "ord_9", status: "paid" }
        }
      ])
      const { id, created_at, updated_at, ...stored } = yield* orders.create(product_id, inputOf("ord_10"))
      assert.deepStrictEqual(stored, { ...inputOf("ord_10"), product_id, metadata: {} })
    })
  )

  it.effect("accepts an external id once per product and system", () =>
    Effect.gen(function* () {
      const orders = yield* Orders
      const { id, product_id } = yield* makeOrder
      const duplicate = ["DUPLICATE_EXTERNAL_ID", "external_id"] as const
      assert.deepStrictEqual(yield* refusalOf(orders.create(product_id, inputOf("ord_1"))), duplicate)
      yield* orders.create(product_id, inputOf("ord_2"))
      assert.deepStrictEqual(yield* refusalOf(orders.update(id, { external_id: "ord_2" })), duplicate)
      yield* orders.create(product_id, { ...inputOf("ord_1"), external_system: "other" })
      yield* makeOrder
    })
  )

  it.effect("answers NOT_FOUND for unknown ids, with the field", () =>
    Effect.gen(function* () {
      const orders = yield* Orders
      const { id, product_id } = yield* makeOrder
      const attempts = [
        [orders.create("none", inputOf("x")), "id"],
        [orders.list("none", {}), "id"],
        [orders.get("none"), "id"],
        [orders.update("none", {}), "id"],
        [orders.create(product_id, { ...inputOf("x"), customer_id: "none" }), "customer_id"],
        [orders.update(id, { customer_id: "none" }), "customer_id"],
        [orders.create(product_id, { ...inputOf("x"), subscription_id: "none" }), "subscription_id"],
        [orders.update(id, { subscription_id: "none" }), "subscription_id"]
      ] as const
      for (const [attempt, detail] of attempts) {
        assert.deepStrictEqual(yield* refusalOf<never>(attempt), ["NOT_FOUND", detail])
      }
    })
  )

  it.effect("links only to subscriptions of its own product", () =>
    Effect.gen(function* () {
      const orders = yield* Orders
      const { id, product_id } = yield* makeOrder
      const own = yield* makeSubscription(product_id)
      const otherProductsSubscription = yield* makeSubscription()
      const mismatch = ["LINKAGE_MISMATCH", "subscription_id"] as const
      assert.deepStrictEqual(
        yield* refusalOf(orders.create(product_id, { ...inputOf("x"), subscription_id: otherProductsSubscription.id })),
        mismatch
      )
      assert.deepStrictEqual(
        yield* refusalOf(orders.update(id, { subscription_id: otherProductsSubscription.id })),
        mismatch
      )
      assert.strictEqual((yield* orders.update(id, { subscription_id: own.id })).subscription_id, own.id)
      assert.notProperty(yield* orders.update(id, { subscription_id: null }), "subscription_id")
    })
  )

  it.effect("requires both ends of a period or none, on create and update", () =>
    Effect.gen(function* () {
      const orders = yield* Orders
      const { id, product_id } = yield* makeOrder
      const halfPeriods = [
        [{ period_start: start }, "period_end"],
        [{ period_end: end }, "period_start"]
      ] as const
      const clearing = [
        [{ period_start: null }, "period_end"],
        [{ period_end: null }, "period_start"],
        [{ period_start: null, period_end: end }, "period_start"],
        [{ period_start: start, period_end: null }, "period_end"]
      ] as const
      const refusedUpdates = Effect.forEach([...halfPeriods, ...clearing], ([half, missing]) =>
        Effect.map(refusalOf(orders.update(id, half)), (refusal) =>
          assert.deepStrictEqual(refusal, ["VALIDATION_ERROR", missing])
        )
      )
      for (const [half, missing] of halfPeriods) {
        const refusal = yield* refusalOf(orders.create(product_id, { ...inputOf("x"), ...half }))
        assert.deepStrictEqual(refusal, ["VALIDATION_ERROR", missing])
      }
      yield* refusedUpdates
      const { answer, events } = yield* recorded(orders.update(id, { period_start: start, period_end: end }))
      assert.deepStrictEqual([answer.period_start, answer.period_end], [start, end])
      assert.deepStrictEqual(events[0]?.metadata, {
        changes: {
          period_start: { old: null, new: "2030-01-01T00:00:00.000Z" },
          period_end: { old: null, new: "2030-02-01T00:00:00.000Z" }
        }
      })
      yield* refusedUpdates
      const cleared = yield* orders.update(id, { period_start: null, period_end: null })
      assert.notProperty(cleared, "period_start")
      assert.notProperty(yield* orders.get(id), "period_end")
    })
  )

  it.effect("allows every change of status", () =>
    Effect.gen(function* () {
      const orders = yield* Orders
      const { id } = yield* makeOrder
      const statuses = ["pending", "paid", "fulfilled", "canceled", "refunded"] as const
      for (const from of statuses) {
        for (const to of statuses) {
          yield* orders.update(id, { status: from })
          assert.strictEqual((yield* orders.update(id, { status: to })).status, to)
        }
      }
    })
  )

  it.effect("sets and clears the customer, and writes nothing when nothing changes", () =>
    Effect.gen(function* () {
      const orders = yield* Orders
      const customers = yield* Customers
      const { id: customer_id } = yield* makeCustomer("linked")
      const { id } = yield* makeOrder
      yield* TestClock.adjust(7)
      const linked = yield* recorded(orders.update(id, { customer_id }))
      assert.deepStrictEqual(linked.events, [
        {
          event_type: "order.updated",
          resource_type: "order",
          metadata: { changes: { customer_id: { old: null, new: customer_id } } }
        }
      ])
      assert.deepStrictEqual(yield* refusalOf(customers.delete(customer_id)), ["RESOURCE_IN_USE", "id"])
      for (const input of [{}, { customer_id }, { subscription_id: null, status: "paid" as const, metadata: {} }]) {
        const { answer, events } = yield* recorded(orders.update(id, input))
        assert.deepStrictEqual([answer, events], [linked.answer, []])
      }
      assert.notProperty(yield* orders.update(id, { customer_id: null }), "customer_id")
      yield* customers.delete(customer_id)
    })
  )

  it.effect("lists a product's orders, the newest first, filtered, each once while more are created", () =>
    Effect.gen(function* () {
      const orders = yield* Orders
      const products = yield* Products
      const { id: product_id } = yield* makeProduct
      let count = 0
      const make = Effect.andThen(
        TestClock.adjust(1),
        Effect.suspend(() => orders.create(product_id, inputOf(`ord_${count++}`)))
      )
      const created = yield* Effect.replicateEffect(make, 5)
      const walked = yield* walk((page) => orders.list(product_id, page), 2, make)
      assert.deepStrictEqual(walked, created.toReversed())
      const { id: customer_id } = yield* makeCustomer("filtered")
      const { id: subscription_id } = yield* makeSubscription(product_id)
      const links = { customer_id, subscription_id }
      const changed = yield* orders.update(created[0]?.id ?? "", {
        ...links,
        status: "refunded",
        external_system: "other"
      })
      const filters = [
        { customer_id },
        { subscription_id },
        { status: "refunded" },
        { external_system: "other" },
        { external_id: "ord_0" }
      ] as const
      for (const filter of filters) {
        assert.deepStrictEqual(yield* orders.list(product_id, filter), { items: [changed] })
      }
      assert.deepStrictEqual(yield* orders.list(product_id, { customer_id, status: "paid" }), { items: [] })
      assert.deepStrictEqual(yield* orders.list((yield* makeProduct).id, {}), { items: [] })
      assert.deepStrictEqual(yield* refusalOf(products.delete(product_id)), ["RESOURCE_IN_USE", "id"])
    })
  )
})
