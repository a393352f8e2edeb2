/** Plays the storms of the Stripe guide's test, and reads what the service has afterwards. */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import type { LicenseFeature } from "../../../src/licensing/model/LicenseFeature.ts"
import { RandomSource } from "../../simulation/requests/RandomSource.ts"
import { TestServer } from "../../support/http/TestServer.ts"
import { type StripeEvent, sign } from "./StripeFake.ts"
import { Sales } from "./StripeProgram.ts"
import { Storm, teamQuota } from "./StripeStorms.ts"

/** Plays a storm, and compares what the service has with what Stripe has. */
export const weather = Effect.fnUntraced(function* (seed: number) {
  const { client } = yield* TestServer
  const { keys, prices, stripe, teamId } = yield* Sales
  const name = `Storm${seed}`
  const storm = new Storm(stripe, new RandomSource(seed), prices, name)
  for (const event of storm.deliveries()) yield* deliver(event)
  const { bought, licenses, orders, subscribed, subscriptions } = yield* stateOf(name)
  const { expected, expectedPurchase } = storm
  const about = `seed ${seed}`
  assert.lengthOf(licenses, subscribed.length + bought.length, about)
  // A subscription that was never licensed is not recorded.
  assert.isAtMost(subscriptions.length, 1, about)
  if (expected.isLicensed) assert.lengthOf(subscriptions, 1, about)
  for (const subscription of subscriptions as ReadonlyArray<object>)
    assert.deepInclude(subscription, expected.subscription, about)
  const [license] = subscribed
  assert.isAtMost(subscribed.length, 1, about)
  // A license that was never paid does not exist.
  if (expected.standing === "active") assert.isDefined(license, about)
  if (license !== undefined) {
    assert.strictEqual(license.status, expected.standing, about)
    if (license.status !== "revoked" && expected.isLicensed) {
      const { features, ...fields } = expected.license
      for (const [field, value] of Object.entries(fields))
        assert.strictEqual(license[field as keyof typeof license], value, `${about}: ${field}`)
      const { items } = yield* client.licenses.listFeatures({ params: { id: license.id }, query: {} })
      // A feature that was an add-on is as the policy has it, or disabled.
      const usable = items.filter(({ enabled }) => enabled)
      const sold = usable.filter(({ metadata }) => metadata["stripe"] === true)
      const quotas = Object.fromEntries(sold.map((feature) => [feature.feature_id, quotaOf(feature)]))
      assert.deepStrictEqual(quotas, features, about)
      const ofPolicy = usable.filter((feature) => !sold.includes(feature))
      assert.lengthOf(ofPolicy, license.policy_id === teamId ? 2 - sold.length : 0, about)
      for (const feature of ofPolicy) assert.deepStrictEqual(quotaOf(feature), teamQuota, about)
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

/** What the service has of a customer. */
export const stateOf = Effect.fnUntraced(function* (name: string) {
  const { client } = yield* TestServer
  const { productId } = yield* Sales
  const { items: customers } = yield* client.customers.list({ query: { code: `cus_${name.toLowerCase()}` } })
  assert.isAtMost(customers.length, 1)
  const customer_id = customers[0]?.id ?? "none"
  const params = { id: productId }
  const { items: subscriptions } = yield* client.commerce.listSubscriptions({ params, query: { customer_id } })
  const { items: orders } = yield* client.commerce.listOrders({ params, query: { customer_id } })
  const { items: licenses } = yield* client.licenses.list({ query: { customer_id } })
  const subscribed = licenses.filter(({ subscription_id }) => subscription_id !== undefined)
  const bought = licenses.filter(({ order_id }) => order_id !== undefined && order_id === orders[0]?.id)
  return { customers, subscriptions, orders, licenses, subscribed, bought }
})

export const deliver = Effect.fnUntraced(function* (event: StripeEvent) {
  const { logged, send } = yield* Sales
  const body = JSON.stringify(event)
  assert.strictEqual(yield* send(body, { "stripe-signature": sign(body) }), 204, logged().slice(-3_000))
})

const quotaOf = (feature: LicenseFeature): object => {
  const names = ["max_consumptions", "reset_period", "reset_anchor", "rollover_max", "overage_max"] as const
  return Object.fromEntries(names.flatMap((name) => (feature[name] === undefined ? [] : [[name, feature[name]]])))
}
