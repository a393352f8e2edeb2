/** A metered license on a running service, and what happens to its counters over time. */
import { Effect } from "effect"
import * as fc from "fast-check"
import { TestServer } from "./TestServer.ts"

let made = 0

/** A license with the features `exports` and `renders`, an active device, and what it is linked to. */
export const makeMetered = Effect.gen(function* () {
  const { client, connect } = yield* TestServer
  const name = `metered-${++made}`
  const product = yield* client.products.create({ payload: { name: "P", code: name } })
  const policy = yield* client.policies.create({
    params: { id: product.id },
    payload: { name: "P", code: "p", license_type: "perpetual" }
  })
  const customer = yield* client.customers.create({ payload: { name: "Čustomer", code: name } })
  const now = Date.now()
  const subscription = yield* client.commerce.createSubscription({
    params: { id: product.id },
    payload: {
      external_system: "billing",
      external_id: name,
      status: "active",
      current_period_start: now - 86_400_000,
      current_period_end: now + 30 * 86_400_000,
      customer_id: customer.id
    }
  })
  const { license, license_key } = yield* client.licenses.create({
    payload: {
      product_id: product.id,
      policy_id: policy.id,
      customer_id: customer.id,
      subscription_id: subscription.id
    }
  })
  const application = yield* connect({ licenseKey: license_key })
  for (const code of ["exports", "renders"]) {
    const feature = yield* client.features.create({ params: { id: product.id }, payload: { name: code, code } })
    yield* client.licenses.assignFeature({
      params: { id: license.id },
      payload: { feature_id: feature.id, max_consumptions: 1_000 }
    })
  }
  yield* application.runtime.activate({ payload: { fingerprint: "a machine" } })
  const consume = (feature_code: string, amount: number, event_id: string) =>
    application.runtime.consume({ payload: { fingerprint: "a machine", feature_code, amount, event_id } })
  return { product, policy, customer, subscription, license, license_key, consume }
})

export type Metered = Effect.Success<typeof makeMetered>

export const step = fc.record({
  feature_code: fc.constantFrom("exports", "renders"),
  amount: fc.integer({ min: 1, max: 600 }),
  action: fc.constantFrom("consume", "consume", "consume", "add_credits", "total_consumptions", "reset", "limit"),
  seconds: fc.integer({ min: 1, max: 7_200 })
})

/** Does a step, or has it refused. */
export const play = (
  { consume, license }: Metered,
  { action, amount, feature_code }: Step,
  index: number
): Effect.Effect<unknown, never, TestServer> =>
  Effect.flatMap(TestServer, ({ client }) => {
    const reset = (change: object) =>
      client.licenses.resetUsage({ params: { id: license.id }, payload: { feature_code, ...change } as never })
    switch (action) {
      case "consume":
        return Effect.ignore(consume(feature_code, amount, `event-${index}`))
      case "reset":
        return Effect.ignore(reset({ reset_consumed: true }))
      case "limit":
        return Effect.ignore(reset({ max_consumptions: amount * 3, add_credits: amount }))
      default:
        return Effect.ignore(reset({ [action]: amount }))
    }
  })

type Step = typeof step extends fc.Arbitrary<infer A> ? A : never
