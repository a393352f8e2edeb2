/** Licenses issued over HTTP: plain ones, and metered ones with steps of usage. */

import { Effect } from "effect"
import * as fc from "fast-check"
import { isRefusal } from "../../../src/contract/api/Failure.ts"
import type { LicenseCreate } from "../../../src/licensing/model/License.ts"
import type { PolicyCreate } from "../../../src/vendor/policies/Policy.ts"
import { TestServer } from "./TestServer.ts"

let issued = 0

/** Issues a license with a new product and policy: by default a subscription that ends in 30 days. */
export const issue = Effect.fnUntraced(function* (
  policy: Partial<typeof PolicyCreate.Type> = {},
  given: Omit<Partial<typeof LicenseCreate.Type>, "product_id" | "policy_id"> = {}
) {
  const { client, connect, send } = yield* TestServer
  // Of one length, so that answers about two licenses have the same length, too.
  const code = `issued-${String(++issued).padStart(5, "0")}`
  const product = yield* client.products.create({ payload: { name: "P", code } })
  const { id: policy_id } = yield* client.policies.create({
    params: { id: product.id },
    payload: { name: "P", code, license_type: "subscription", ...policy }
  })
  const meta = (yield* send({ path: "/health" })).json as { readonly meta: { readonly timestamp: string } }
  const now = Date.parse(meta.meta.timestamp)
  const { license, license_key } = yield* client.licenses.create({
    payload: { product_id: product.id, policy_id, expires_at: now + 30 * 86_400_000, ...given }
  })
  const path = `/api/v1/licenses/${license.id}`
  return {
    id: license.id,
    product_id: product.id,
    expires_at: license.expires_at ?? 0,
    license_key,
    path,
    /** Sends a management request about the license. */
    post: (action: string, body?: unknown, headers: { readonly [name: string]: string } = {}) =>
      send({ method: "POST", path: `${path}/${action}`, headers, ...(body === undefined ? undefined : { body }) }),
    /** A runtime client with the license's key. */
    runtime: (yield* connect({ licenseKey: license_key })).runtime
  }
})

/** The code of a refused request of the typed client. */
export const codeOf = <R>(request: Effect.Effect<unknown, unknown, R>) =>
  Effect.map(Effect.flip(request), (error) => (isRefusal(error) ? error.code : error))

let keys = 0

/** A new Idempotency-Key with each call. */
export const freshKey = () => ({ "idempotency-key": `key-${++keys}` })

let metered = 0

/** Issues a license with the features `exports` and `renders`, an active device, a customer and a subscription. */
export const makeMetered = Effect.gen(function* () {
  const { client, connect } = yield* TestServer
  const name = `metered-${++metered}`
  const product = yield* client.products.create({ payload: { name: "P", code: name } })
  const policy = yield* client.policies.create({
    params: { id: product.id },
    payload: { name: "P", code: "p", license_type: "perpetual" }
  })
  const customer = yield* client.customers.create({ payload: { name: "Čustomer", code: name } })
  // Other tests may have moved the service's clock.
  const now = product.created_at
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

export type MeteredLicense = Effect.Success<typeof makeMetered>

export const usageStep = fc.record({
  feature_code: fc.constantFrom("exports", "renders"),
  amount: fc.integer({ min: 1, max: 600 }),
  action: fc.constantFrom("consume", "consume", "consume", "add_credits", "total_consumptions", "reset", "limit"),
  seconds: fc.integer({ min: 1, max: 7_200 })
})

/** Performs a step; the service may refuse it. */
export const performUsageStep = (
  { consume, license }: MeteredLicense,
  { action, amount, feature_code }: UsageStep,
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

type UsageStep = typeof usageStep extends fc.Arbitrary<infer A> ? A : never
