/** The feed of a token for one product: its records and their customers, also what names a deleted record's product. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { Refusals } from "../../../src/insight/activities/Refusals.ts"
import { layerActivities } from "../../support/http/Activities.ts"
import { TestServer } from "../../support/http/TestServer.ts"

const token = Effect.fnUntraced(function* (product: string) {
  const { client, connect } = yield* TestServer
  const created = yield* client["api-keys"].create({
    payload: { name: "Own", scopes: ["report:read"], product_ids: [product] }
  })
  return yield* connect({ token: created.token })
})

const makeProduct = Effect.fnUntraced(function* (code: string) {
  const { client, connect } = yield* TestServer
  const { id: product_id } = yield* client.products.create({ payload: { name: code, code } })
  const params = { id: product_id }
  const policy = yield* client.policies.create({
    params,
    payload: { name: "P", code: "p", license_type: "perpetual" }
  })
  const feature = yield* client.features.create({ params, payload: { name: "F", code: "f" } })
  yield* client.features.delete({ params: { id: feature.id } })
  const customer = yield* client.customers.create({ payload: { name: "C", code } })
  const { license_key } = yield* client.licenses.create({
    payload: { product_id, policy_id: policy.id, customer_id: customer.id }
  })
  const { runtime } = yield* connect({ licenseKey: license_key })
  yield* runtime.activate({ payload: { fingerprint: "m" } })
  yield* Effect.flip(runtime.validate({ payload: { fingerprint: "unknown" } }))
  return { product_id, customer_id: customer.id }
})

layer(layerActivities(), { timeout: 120_000 })("The activities of a token for one product", (it) => {
  it.effect("are those of the product, of its customers and of its deleted records", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const [own] = [yield* makeProduct("own"), yield* makeProduct("other")]
      yield* (yield* Refusals).pass
      const all = yield* client.activities.list({ query: { limit: 200 } })
      const expected = all.items.filter(
        ({ customer_id, product_id }) => product_id === own.product_id || customer_id === own.customer_id
      )
      const limited = yield* token(own.product_id)
      const { items, next } = yield* limited.activities.list({ query: { limit: 200 } })
      assert.deepStrictEqual(items, expected)
      assert.isUndefined(next)
      assert.includeMembers(
        items.map(({ action }) => action),
        ["feature.create", "feature.delete", "customer.create", "license.activate", "license.validate"]
      )
    })
  )
})
