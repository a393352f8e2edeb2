/** The program of docs/guides/stripe.md: what a customer has paid for is licensed, and what is not paid ends, whatever else fails. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { RandomSource } from "../../simulation/requests/RandomSource.ts"
import { layerSilent, TestServer } from "../../support/http/TestServer.ts"
import { daySeconds, sign } from "./StripeFake.ts"
import { Sales } from "./StripeProgram.ts"
import { Storm } from "./StripeStorms.ts"
import { deliver, stateOf } from "./StripeWeather.ts"

layer(Sales.layer.pipe(Layer.provideMerge(TestServer.layer), Layer.provide(layerSilent)), {
  excludeTestServices: true,
  timeout: 120_000
})("The Stripe guide's program, with a purchase", (it) => {
  const subscribed = Effect.fnUntraced(function* (name: string) {
    const { prices, stripe } = yield* Sales
    return new Storm(stripe, new RandomSource(0), prices, name).subscription
  })

  it.effect("adds up add-ons of one feature", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const { prices, stripe } = yield* Sales
      const subscription = yield* subscribed("Packs")
      const large = { id: "price_large", metadata: { ...prices.exports.metadata, licensing_quota: "250" } }
      const packs = [prices.exports, large].map((price, index) => ({ price, quantity: 1 + index }))
      const lines = [...subscription.lines, ...packs]
      const quota = Effect.gen(function* () {
        const [license] = (yield* stateOf("Packs")).licenses
        const { items } = yield* client.licenses.listFeatures({ params: { id: license!.id }, query: {} })
        return items.map(({ max_consumptions }) => max_consumptions)
      })
      yield* deliver(stripe.change(subscription, "created", { status: "active", lines }))
      assert.deepStrictEqual(yield* quota, [600])
      const all = [...lines, { price: prices.allExports, quantity: 1 }]
      yield* deliver(stripe.change(subscription, "updated", { lines: all }))
      assert.deepStrictEqual(yield* quota, [undefined])
    })
  )

  it.effect("licenses a subscription whose first event came after its period", () =>
    Effect.gen(function* () {
      const { stripe } = yield* Sales
      const subscription = yield* subscribed("Late")
      const { start } = subscription
      const ended = { status: "active", start: start - 30 * daySeconds, end: start }
      yield* deliver(stripe.change(subscription, "created", ended))
      assert.deepStrictEqual((yield* stateOf("Late")).licenses, [])
      yield* deliver(stripe.change(subscription, "updated", { start, end: start + 30 * daySeconds }))
      assert.strictEqual((yield* stateOf("Late")).licenses[0]?.status, "active")
    })
  )

  it.effect("suspends what is not paid, also if its price names no policy that exists", () =>
    Effect.gen(function* () {
      const { send, stripe } = yield* Sales
      const subscription = yield* subscribed("Mistyped")
      yield* deliver(stripe.change(subscription, "created", { status: "active" }))
      const price = { id: "price_mistyped", metadata: { licensing_policy: "pol_mistyped" } }
      const lines = [{ price, quantity: 1 }]
      const body = JSON.stringify(stripe.change(subscription, "updated", { status: "unpaid", lines }))
      assert.strictEqual(yield* send(body, { "stripe-signature": sign(body) }), 500)
      assert.strictEqual((yield* stateOf("Mistyped")).licenses[0]?.status, "suspended")
    })
  )

  const bought = Effect.fnUntraced(function* (name: string) {
    const { prices, stripe } = yield* Sales
    const lines = [{ price: prices.once, quantity: 1 }]
    const payment = { id: `pi_${name}`, customer: stripe.customer(name), lines, refunded: 0, dispute: undefined }
    yield* deliver(stripe.bought(payment))
    assert.strictEqual((yield* stateOf(name)).licenses[0]?.status, "active")
    return payment
  })

  it.effect("licenses a customer whose name and address are longer than the service's may be", () =>
    Effect.gen(function* () {
      const { prices, stripe } = yield* Sales
      const customer = {
        ...stripe.customer("Long"),
        name: "😀".repeat(128),
        email: `${"a".repeat(250)}@example.com`
      }
      const lines = [{ price: prices.once, quantity: 1 }]
      yield* deliver(stripe.bought({ id: "pi_Long", customer, lines, refunded: 0, dispute: undefined }))
      assert.strictEqual((yield* stateOf("Long")).licenses[0]?.status, "active")
    })
  )

  it.effect("ends what was refunded, also if its price has no policy any more", () =>
    Effect.gen(function* () {
      const { prices, stripe } = yield* Sales
      const lines = [{ price: { ...prices.once, metadata: {} }, quantity: 1 }]
      const payment = { ...(yield* bought("Retired")), lines }
      stripe.payments.set(payment.id, payment)
      const standing = Effect.map(stateOf("Retired"), ({ licenses, orders }) => [
        licenses[0]?.status,
        orders[0]?.status
      ])
      yield* deliver(stripe.refund(payment, 900))
      assert.deepStrictEqual(yield* standing, ["suspended", "refunded"])
      yield* deliver(stripe.refund(payment, 300))
      assert.deepStrictEqual(yield* standing, ["active", "paid"])
      // What was never sold here is not recorded.
      yield* deliver(stripe.bought({ ...payment, id: "pi_other", customer: stripe.customer("Other") }))
      assert.deepStrictEqual((yield* stateOf("Other")).customers, [])
    })
  )

  it.effect("counts the strictest of several disputes of a payment", () =>
    Effect.gen(function* () {
      const { stripe } = yield* Sales
      const payment = { ...(yield* bought("Twice")), earlierDispute: "lost" }
      stripe.payments.set(payment.id, payment)
      yield* deliver(stripe.dispute(payment, "won"))
      const { licenses, orders } = yield* stateOf("Twice")
      assert.deepStrictEqual([licenses[0]?.status, orders[0]?.metadata["dispute"]], ["revoked", "lost"])
    })
  )
})
