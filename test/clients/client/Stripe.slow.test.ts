/**
 * The program of docs/guides/stripe.md with a running service and a small Stripe: whatever happens at Stripe, and in whatever order
 * and however often its events arrive, the service has in the end what Stripe has.
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import type { Event } from "../../../src/ledger/events/Event.ts"
import { bodyOf } from "../../../src/ledger/webhooks/Message.ts"
import { RandomSource } from "../../simulation/requests/RandomSource.ts"
import { layerSilent, TestServer } from "../../support/http/TestServer.ts"
import { daySeconds, type Line, type Price, sign } from "./StripeFake.ts"
import { Sales, serviceSecret } from "./StripeProgram.ts"
import { Storm, teamQuota } from "./StripeStorms.ts"
import { deliver, stateOf, weather } from "./StripeWeather.ts"

/** Sends runtime requests of a laptop with a license key. */
const laptopWith = (key: string) =>
  Effect.map(
    TestServer,
    ({ send }) =>
      (operation: string, body: object = {}) =>
        send({
          method: "POST",
          path: `/api/v1/license/${operation}`,
          headers: { authorization: `License ${key}` },
          body: { fingerprint: "a laptop", ...body }
        })
  )

/** Uses features of a license in its subscription's period, ends the period, and returns the events that tell its usage. */
const periodOf = Effect.fnUntraced(function* (
  params: { readonly id: string },
  key: string,
  used: { readonly [feature_code: string]: number }
) {
  const { client } = yield* TestServer
  const { productId } = yield* Sales
  const runtime = yield* laptopWith(key)
  const end = Math.floor(Date.now() / 1_000) * 1_000
  const period = (current_period_start: number, current_period_end: number) => ({
    current_period_start,
    current_period_end
  })
  const subscription = yield* client.commerce.createSubscription({
    params: { id: productId },
    payload: {
      external_system: "other",
      external_id: "sub_meter",
      status: "active",
      ...period(end - 86_400_000, end + 86_400_000)
    }
  })
  yield* client.licenses.update({ params, payload: { order_id: "", subscription_id: subscription.id } })
  const { items: features } = yield* client.features.list({ params: { id: productId }, query: {} })
  yield* runtime("activate")
  for (const [feature_code, amount] of Object.entries(used)) {
    const { id: feature_id = "" } = features.find(({ code }) => code === feature_code) ?? {}
    const payload = { feature_id, enabled: true, max_consumptions: 100, reset_period: "subscription" as const }
    yield* client.licenses.assignFeature({ params, payload })
    assert.strictEqual((yield* runtime("consume", { feature_code, amount, event_id: feature_code })).status, 200)
  }
  yield* client.commerce.updateSubscription({
    params: { id: subscription.id },
    payload: period(end, end + 86_400_000)
  })
  // The first use after a period's end closes it.
  for (const feature_code of Object.keys(used))
    assert.strictEqual(
      (yield* runtime("consume", { feature_code, amount: 1, event_id: `${feature_code} 2` })).status,
      200
    )
  const { items: events } = yield* client.events.list({
    query: { resource_id: params.id, event_type: "usage.period_closed" }
  })
  return { end, events }
})

/** A few of the first 200 storms: they have every event, status, line, refund, dispute and outcome of them all. */
const chosen = [13, 14, 19, 29, 50, 58, 64, 69, 74, 119, 120, 124, 139, 177, 179, 188]
/** `STRIPE_STORMS=200` plays the first 200. */
const storms = Number(process.env["STRIPE_STORMS"] ?? 0)
const seeds = storms === 0 ? chosen : Array.from({ length: storms }, (_, index) => index + 1)

layer(Sales.layer.pipe(Layer.provideMerge(TestServer.layer), Layer.provide(layerSilent)), {
  excludeTestServices: true,
  timeout: 900_000
})("The Stripe guide's program", (it) => {
  it.effect("has in the end what Stripe has, after each storm", () => Effect.forEach(seeds, weather))

  it.effect("ends a license by the refund of its current period, not of an earlier and longer one", () =>
    Effect.gen(function* () {
      const { prices, stripe } = yield* Sales
      const standing = Effect.map(stateOf("Refunded"), ({ licenses }) => licenses[0]?.status)
      const { subscription } = new Storm(stripe, new RandomSource(0), prices, "Refunded")
      const day = (number: number) => subscription.start + number * daySeconds
      const pay = (id: string, ...periods: ReadonlyArray<{ readonly start: number; readonly end: number }>) => {
        const payment = { id: `pi_${id}`, customer: subscription.customer, subscription, periods }
        const paid = { ...payment, refunded: 0, dispute: undefined }
        stripe.payments.set(paid.id, paid)
        return paid
      }
      const year = pay("year", { start: day(0), end: day(365) })
      const current = { start: day(5), end: day(35) }
      const ofUsage = pay("usage", { start: day(0), end: day(5) }, current)
      const withCredit = pay("credit", { start: day(5), end: day(365) }, current)
      yield* deliver(stripe.change(subscription, "created", { status: "active", ...current }))
      yield* deliver(stripe.refund(year, 900))
      assert.strictEqual(yield* standing, "active")
      for (const payment of [ofUsage, withCredit]) {
        yield* deliver(stripe.refund(payment, 900))
        assert.strictEqual(yield* standing, "suspended")
        yield* deliver(stripe.refund(payment, 300))
        assert.strictEqual(yield* standing, "active")
      }
    })
  )

  it.effect("licenses a checkout that costs nothing", () =>
    Effect.gen(function* () {
      const { keys, prices, stripe } = yield* Sales
      const lines = [{ price: prices.once, quantity: 3 }]
      const customer = stripe.customer("Free")
      const free = stripe.free(customer, lines)
      for (const event of [free, free, stripe.free(stripe.customer("Unpaid"), lines, "unpaid")]) yield* deliver(event)
      const { licenses, orders } = yield* stateOf("Free")
      assert.lengthOf(licenses, 1)
      assert.deepInclude(licenses[0] as object, { status: "active", max_activations: 3, order_id: orders[0]?.id })
      assert.lengthOf(keys.get(customer.email) ?? [], 1)
      assert.deepStrictEqual((yield* stateOf("Unpaid")).customers, [])
    })
  )

  it.effect("keeps the name of a customer that Stripe has deleted", () =>
    Effect.gen(function* () {
      const { prices, stripe } = yield* Sales
      const { subscription } = new Storm(stripe, new RandomSource(0), prices, "Deleted")
      yield* deliver(stripe.change(subscription, "created", { status: "active" }))
      subscription.customer.isDeleted = true
      yield* deliver(stripe.change(subscription, "deleted", { status: "canceled" }))
      const { customers, licenses } = yield* stateOf("Deleted")
      assert.deepInclude(customers[0] as object, { name: "Buyer Deleted", email: "Deleted@example.com" })
      assert.strictEqual(licenses[0]?.status, "suspended")
    })
  )

  it.effect("sends a key that works", () =>
    Effect.gen(function* () {
      const { keys, prices, stripe } = yield* Sales
      const customer = stripe.customer("Key")
      const lines = [{ price: prices.once, quantity: 2 }]
      const payment = { id: "pi_onceKey", customer, lines, refunded: 0, dispute: undefined }
      yield* deliver(stripe.bought(payment))
      const activate = (yield* laptopWith(keys.get(customer.email)?.[0] ?? ""))("activate")
      assert.strictEqual((yield* activate).status, 200)
      yield* deliver(stripe.dispute(payment, "lost"))
      const { json, status } = yield* activate
      assert.deepStrictEqual([status, (json as Refused).error.code], [403, "LICENSE_REVOKED"])
    })
  )

  it.effect("reports the usage of a closed period once to Stripe's meter", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const { keys, prices, send, stripe } = yield* Sales
      const customer = stripe.customer("Meter")
      const lines = [{ price: prices.once, quantity: 1 }]
      yield* deliver(stripe.bought({ id: "pi_onceMeter", customer, lines, refunded: 0, dispute: undefined }))
      const [license] = (yield* stateOf("Meter")).licenses
      const params = { id: license?.id ?? "" }
      const { end, events } = yield* periodOf(params, keys.get(customer.email)?.[0] ?? "", {
        exports: 12,
        reports: 5
      })
      const [used, other] = ["exports", "reports"].map((code) =>
        events.find(({ metadata }) => metadata["feature_code"] === code)
      )
      const report = (event: Event, delivery = "del_1", signed = delivery) => {
        const body = String(bodyOf({ ...event, resource_id: params.id }))
        const signature = sign(`${signed}.${body}`, undefined, serviceSecret)
        return send(body, { "x-service-delivery-id": delivery, "x-service-signature": signature }, "usage")
      }
      const unused = { ...used!, sequence: 1, metadata: { ...used!.metadata, consumed: 0 } }
      for (const delivery of ["del_1", "del_1", "del_2"]) assert.strictEqual(yield* report(used!, delivery), 204)
      assert.strictEqual(yield* report(other!), 204)
      assert.strictEqual(yield* report(unused), 204)
      assert.strictEqual(yield* report({ ...used!, sequence: 2 }, "del_3", "del_4"), 400)
      assert.deepStrictEqual(Array.from(stripe.meterEvents.values()), [
        {
          event_name: "exported_pages",
          identifier: `evt_${used!.sequence}`,
          "payload[stripe_customer_id]": "cus_Meter",
          "payload[value]": "12",
          timestamp: String(end / 1_000 - 1)
        }
      ])
      yield* client.licenses.suspend({ params })
    })
  )

  it.effect("keeps the count and the credits of a feature whose add-on or policy is left", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const { keys, prices, stripe } = yield* Sales
      const { subscription } = new Storm(stripe, new RandomSource(0), prices, "Downgrade")
      const line = (price: Price) => ({ price, quantity: 1 })
      const [pro, team, exports] = [prices.pro, prices.team, prices.exports].map(line) as [Line, Line, Line]
      const feature_id = prices.exports.metadata["licensing_feature"]!
      yield* deliver(stripe.change(subscription, "created", { status: "active", lines: [team, exports] }))
      const params = { id: (yield* stateOf("Downgrade")).licenses[0]!.id }
      const runtime = yield* laptopWith(keys.get(subscription.customer.email)?.[0] ?? "")
      yield* runtime("activate")
      const use = { feature_code: "exports", amount: 90, event_id: "job" }
      assert.strictEqual((yield* runtime("consume", use)).status, 200)
      yield* client.licenses.resetUsage({ params, payload: { feature_id, add_credits: 5 } })
      const used = { total_consumptions: 90, extra_credits: 5 }
      for (const [lines, expected] of [
        [[team], { enabled: true, ...teamQuota }],
        [[pro], { enabled: false, ...teamQuota }],
        [[pro, exports], { enabled: true, max_consumptions: 100 }],
        [[pro], { enabled: false, max_consumptions: 100 }],
        [[team], { enabled: true, ...teamQuota }]
      ] as const) {
        yield* deliver(stripe.change(subscription, "updated", { lines }))
        const { items } = yield* client.licenses.listFeatures({ params, query: {} })
        const feature = items.find((one) => one.feature_id === feature_id)
        assert.deepInclude(feature as object, { ...expected, ...used })
      }
    })
  )

  it.effect("reports the usage of a subscription's last period once", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const { keys, prices, productId, stripe } = yield* Sales
      const feature_id = prices.exports.metadata["licensing_feature"]!
      const fields = { name: "Metered", code: "metered", license_type: "subscription", grace_period_days: 1 } as const
      const policy = yield* client.policies.create({ params: { id: productId }, payload: fields })
      const quota = { max_consumptions: 100, reset_period: "subscription" } as const
      yield* client.policies.setFeature({ params: { id: policy.id, feature_id }, payload: quota })
      const pro = { id: "price_metered", metadata: { licensing_policy: policy.id } }
      const { subscription } = new Storm(stripe, new RandomSource(0), { ...prices, pro }, "Leaving")
      yield* deliver(stripe.change(subscription, "created", { status: "active" }))
      const runtime = yield* laptopWith(keys.get(subscription.customer.email)?.[0] ?? "")
      yield* runtime("activate")
      const use = { feature_code: "exports", amount: 12, event_id: "job" }
      assert.strictEqual((yield* runtime("consume", use)).status, 200)
      const before = stripe.meterRequests
      for (const verb of ["deleted", "updated"])
        yield* deliver(stripe.change(subscription, verb, { status: "canceled" }))
      const { subscriptions } = yield* stateOf("Leaving")
      const identifier = `${subscriptions[0]!.id} ${feature_id}`
      assert.deepStrictEqual(stripe.meterEvents.get(identifier), {
        ...{ event_name: "exported_pages", identifier, timestamp: String(subscription.start + 1) },
        ...{ "payload[stripe_customer_id]": "cus_Leaving", "payload[value]": "12" }
      })
      assert.strictEqual(stripe.meterRequests - before, 1)
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
      const setup = { id: "cs_test_setup", mode: "setup", payment_intent: null, subscription: null }
      yield* deliver(stripe.other("checkout.session.completed", setup))
      // Both secrets sign while Stripe rotates them.
      const paid = JSON.stringify(stripe.other("invoice.paid", { id: "in_1", object: "invoice" }))
      const both = `${sign(paid, now, "whsec_old")},${sign(paid, now).split(",")[1]}`
      assert.strictEqual(yield* send(paid, { "stripe-signature": both }), 204)
    })
  )
})

interface Refused {
  readonly error: { readonly code: string }
}
