/**
 * The program of docs/guides/stripe.md with a running service and a small Stripe: whatever happens at Stripe, and in whatever order
 * and however often its events arrive, the service has in the end what Stripe has.
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { RandomSource } from "../../simulation/requests/RandomSource.ts"
import { TestServer } from "../../support/http/TestServer.ts"
import { type StripeEvent, sign } from "./StripeFake.ts"
import { Sales, serviceSecret } from "./StripeProgram.ts"
import { Storm } from "./StripeStorms.ts"

/** What the service has of a customer. */
const stateOf = Effect.fnUntraced(function* (name: string) {
  const { client } = yield* TestServer
  const { productId } = yield* Sales
  const { items: customers } = yield* client.customers.list({ query: { code: `cus_${name.toLowerCase()}` } })
  assert.isAtMost(customers.length, 1)
  const customer_id = customers[0]?.id ?? "none"
  const params = { id: productId }
  const { items: subscriptions } = yield* client.commerce.listSubscriptions({ params, query: { customer_id } })
  const { items: orders } = yield* client.commerce.listOrders({ params, query: { external_id: `pi_once${name}` } })
  const { items: licenses } = yield* client.licenses.list({ query: { customer_id } })
  const subscribed = licenses.filter(({ subscription_id }) => subscription_id !== undefined)
  const bought = licenses.filter(({ order_id }) => order_id !== undefined && order_id === orders[0]?.id)
  return { customers, subscriptions, orders, licenses, subscribed, bought }
})

const deliver = Effect.fnUntraced(function* (event: StripeEvent) {
  const { logged, send } = yield* Sales
  const body = JSON.stringify(event)
  assert.strictEqual(yield* send(body, { "stripe-signature": sign(body) }), 204, logged().slice(-3_000))
})

/** Plays a storm, and compares what the service has with what Stripe has. */
const weather = Effect.fnUntraced(function* (seed: number) {
  const { client } = yield* TestServer
  const { exports, keys, prices, stripe, teamId } = yield* Sales
  const name = `Storm${seed}`
  const storm = new Storm(stripe, new RandomSource(seed), prices, name)
  for (const event of storm.deliveries()) yield* deliver(event)
  const { bought, licenses, orders, subscribed, subscriptions } = yield* stateOf(name)
  const { expected, expectedPurchase } = storm
  const about = `seed ${seed}`
  assert.deepStrictEqual([subscriptions.length, licenses.length], [1, subscribed.length + bought.length], about)
  assert.deepInclude(subscriptions[0] as object, expected.subscription, about)
  const [license] = subscribed
  assert.isAtMost(subscribed.length, 1, about)
  // A license that was never paid does not exist.
  if (expected.standing === "active") assert.isDefined(license, about)
  if (license !== undefined) {
    assert.strictEqual(license.status, expected.standing, about)
    if (license.status !== "revoked") {
      const { features, ...fields } = expected.license
      for (const [field, value] of Object.entries(fields))
        assert.strictEqual(license[field as keyof typeof license], value, `${about}: ${field}`)
      const { items } = yield* client.licenses.listFeatures({ params: { id: license.id }, query: {} })
      const sold = items.filter(({ metadata }) => metadata["stripe"] === true)
      assert.deepStrictEqual(
        Object.fromEntries(sold.map(({ feature_id, max_consumptions }) => [feature_id, max_consumptions])),
        features,
        about
      )
      assert.isTrue(license.policy_id !== teamId || items.some(({ feature_id }) => feature_id === exports), about)
    }
  }
  const [owned] = bought
  assert.isAtMost(bought.length, 1, about)
  if (expectedPurchase.standing === "active") assert.isDefined(owned, about)
  if (owned !== undefined) assert.strictEqual(owned.status, expectedPurchase.standing, about)
  if (owned !== undefined && owned.status !== "revoked")
    assert.strictEqual(owned.max_activations, expectedPurchase.max_activations, about)
  const { metadata, status } = orders[0]!
  const recorded: object = { status, refunded: metadata["amount_refunded"], dispute: metadata["dispute"] }
  assert.deepStrictEqual(recorded, expectedPurchase.order, about)
  const delivered = licenses.filter(({ metadata }) => metadata["delivered"] === true)
  assert.lengthOf(keys.get(`${name}@example.com`) ?? [], delivered.length, about)
})

/** Seeds of one test. */
const block = 10
const storms = 200

layer(Sales.layer.pipe(Layer.provideMerge(TestServer.layer)), { excludeTestServices: true, timeout: 900_000 })(
  "The Stripe guide's program",
  (it) => {
    for (let first = 1; first <= storms; first += block) {
      it.effect(`has in the end what Stripe has, after storms ${first} to ${first + block - 1}`, () =>
        Effect.gen(function* () {
          for (let seed = first; seed < first + block; seed++) yield* weather(seed)
        })
      )
    }

    it.effect("sends a key that works", () =>
      Effect.gen(function* () {
        const { keys, prices, stripe } = yield* Sales
        const customer = stripe.customer("Key")
        const lines = [{ price: prices.once, quantity: 2 }]
        const payment = { id: "pi_onceKey", customer, lines, refunded: 0, dispute: undefined }
        yield* deliver(stripe.bought(payment))
        const [key = ""] = keys.get(customer.email) ?? []
        const activate = Effect.flatMap(TestServer, ({ send }) =>
          send({
            method: "POST",
            path: "/api/v1/license/activate",
            headers: { authorization: `License ${key}` },
            body: { fingerprint: "a laptop" }
          })
        )
        assert.strictEqual((yield* activate).status, 200)
        yield* deliver(stripe.dispute(payment, "lost"))
        const { json, status } = yield* activate
        assert.deepStrictEqual([status, (json as Refused).error.code], [403, "LICENSE_REVOKED"])
      })
    )

    it.effect("reports the usage of a closed period once to Stripe's meter", () =>
      Effect.gen(function* () {
        const { client } = yield* TestServer
        const { prices, send, stripe } = yield* Sales
        const customer = stripe.customer("Meter")
        const lines = [{ price: prices.once, quantity: 1 }]
        yield* deliver(stripe.bought({ id: "pi_onceMeter", customer, lines, refunded: 0, dispute: undefined }))
        const [license] = (yield* stateOf("Meter")).licenses
        const closed = (id: string, feature_code: string, consumed: number) =>
          JSON.stringify({
            ...{ id, type: "usage.period_closed", sequence: 7, created_at: "2030-02-01T00:00:00.000Z" },
            data: {
              ...{ actor_type: "system", actor_id: "system", resource_type: "license", resource_id: license?.id },
              metadata: {
                ...{ feature_code, period_start: "2030-01-01T00:00:00.000Z", period_end: "2030-02-01T00:00:00.000Z" },
                ...{ consumed, overage: 2, rolled_over: 0 }
              }
            }
          })
        const report = (body: string, delivery = "del_1", signed = delivery) => {
          const signature = sign(`${signed}.${body}`, undefined, serviceSecret)
          return send(body, { "x-service-delivery-id": delivery, "x-service-signature": signature }, "usage")
        }
        for (const delivery of ["del_1", "del_1", "del_2"])
          assert.strictEqual(yield* report(closed("evt_used", "exports", 12), delivery), 204)
        yield* report(closed("evt_other", "reports", 5))
        yield* report(closed("evt_unused", "exports", 0))
        assert.strictEqual(yield* report(closed("evt_forged", "exports", 5), "del_3", "del_4"), 400)
        assert.deepStrictEqual(Array.from(stripe.meterEvents.values()), [
          {
            event_name: "exported_pages",
            identifier: "evt_used",
            "payload[stripe_customer_id]": "cus_Meter",
            "payload[value]": "12",
            timestamp: String(Date.UTC(2030, 1, 1) / 1_000 - 1)
          }
        ])
        yield* client.licenses.suspend({ params: { id: license?.id ?? "" } })
      })
    )

    it.effect("refuses forged and old requests, and ignores what it does not sell", () =>
      Effect.gen(function* () {
        const { prices, send, stripe } = yield* Sales
        const storm = new Storm(stripe, new RandomSource(0), prices, "Forged")
        const [event] = storm.deliveries()
        const body = JSON.stringify(event)
        const now = Math.floor(Date.now() / 1_000)
        for (const signature of [
          "",
          "t=1",
          `t=${now},v1=00`,
          sign(body, now, "whsec_other"),
          sign(body, now - 301),
          sign(`${body} `),
          sign(body).replace("v1=", "v0="),
          sign(body).replace(/t=\d+/, `t=${now + 7}`)
        ]) {
          assert.strictEqual(yield* send(body, { "stripe-signature": signature }), 400, signature)
        }
        const other = { ...prices, pro: { id: "price_other", metadata: {} } }
        const [unsold] = new Storm(stripe, new RandomSource(0), other, "Other").deliveries()
        yield* deliver(unsold!)
        for (const name of ["Forged", "Other"]) assert.deepStrictEqual((yield* stateOf(name)).customers, [])
        // Both secrets sign while Stripe rotates them.
        const paid = JSON.stringify(stripe.other("invoice.paid", { id: "in_1", object: "invoice" }))
        const both = `${sign(paid, now, "whsec_old")},${sign(paid, now).split(",")[1]}`
        assert.strictEqual(yield* send(paid, { "stripe-signature": both }), 204)
      })
    )
  }
)

interface Refused {
  readonly error: { readonly code: string }
}
