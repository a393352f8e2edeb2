/** The order and the subscription of a license, changed by PATCH: the linkage rules of docs/API.md. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { eventsOf } from "../../support/database/Services.ts"
import { TestServer } from "../../support/http/TestServer.ts"

let catalogs = 0

/** A license, two subscriptions with an order each, and an order without a subscription, all of one product. */
const catalog = Effect.gen(function* () {
  const { client } = yield* TestServer
  const code = `links-${++catalogs}`
  const product = yield* client.products.create({ payload: { name: "Editor", code } })
  const params = { id: product.id }
  const policy = yield* client.policies.create({
    params,
    payload: { name: "P", code: "p", license_type: "perpetual" }
  })
  const subscriptionOf = (external_id: string) =>
    client.commerce.createSubscription({
      params,
      payload: {
        external_system: "shop",
        external_id,
        status: "active",
        current_period_start: 1_900_000_000_000,
        current_period_end: 1_910_000_000_000
      }
    })
  const orderOf = (external_id: string, link: { readonly subscription_id?: string }) =>
    client.commerce.createOrder({
      params,
      payload: { external_system: "shop", external_id, status: "paid", ...link }
    })
  const [first, second] = [yield* subscriptionOf("s1"), yield* subscriptionOf("s2")]
  const firstOrder = yield* orderOf("o1", { subscription_id: first.id })
  const secondOrder = yield* orderOf("o2", { subscription_id: second.id })
  const loose = yield* orderOf("o3", {})
  const { license } = yield* client.licenses.create({ payload: { product_id: product.id, policy_id: policy.id } })
  return { client, product, license, first, second, firstOrder, secondOrder, loose }
})

const message = (id: string) => ({ path: `/api/v1/licenses/${id}`, method: "PATCH" })

layer(TestServer.layer)("Links of a license", (it) => {
  it.effect("an order brings its subscription, and an empty string clears one link", () =>
    Effect.gen(function* () {
      const { client, first, firstOrder, license, second, secondOrder } = yield* catalog
      const params = { id: license.id }
      const patch = (payload: object) => client.licenses.update({ params, payload })
      const linked = yield* patch({ order_id: firstOrder.id })
      assert.deepInclude(linked, { order_id: firstOrder.id, subscription_id: first.id, entitlement_version: 1 })
      assert.deepInclude(yield* patch({ order_id: secondOrder.id }), { subscription_id: second.id })
      const { send } = yield* TestServer
      const cleared = yield* send({ ...message(license.id), body: { subscription_id: "" } })
      assert.strictEqual(cleared.status, 200)
      const stored = yield* client.licenses.get({ params })
      assert.strictEqual(stored.order_id, secondOrder.id)
      assert.notProperty(stored, "subscription_id")
      yield* send({ ...message(license.id), body: { order_id: "", subscription_id: first.id } })
      const left = yield* client.licenses.get({ params })
      assert.strictEqual(left.subscription_id, first.id)
      assert.notProperty(left, "order_id")
      const events = (yield* eventsOf(license.id)).filter(({ event_type }) => event_type === "license.updated")
      assert.deepStrictEqual((events[1]!.metadata as { changes: object }).changes, {
        order_id: { old: firstOrder.id, new: secondOrder.id },
        subscription_id: { old: first.id, new: second.id }
      })
    })
  )

  it.effect("links that do not match, and unknown ones, are refused and change nothing", () =>
    Effect.gen(function* () {
      const { client, first, firstOrder, license, loose, second } = yield* catalog
      const foreign = yield* catalog
      const params = { id: license.id }
      const linked = yield* client.licenses.update({ params, payload: { order_id: firstOrder.id } })
      const { send } = yield* TestServer
      const refusals = [
        [{ order_id: "ord_unknown" }, 404, "order_id"],
        [{ subscription_id: "sub_unknown" }, 404, "subscription_id"],
        [{ order_id: foreign.firstOrder.id }, 422, "order_id"],
        [{ subscription_id: foreign.first.id }, 422, "subscription_id"],
        [{ order_id: firstOrder.id, subscription_id: second.id }, 422, "subscription_id"],
        [{ subscription_id: second.id }, 422, "subscription_id"],
        [{ order_id: loose.id }, 422, "subscription_id"]
      ] as const
      for (const [body, status, detail] of refusals) {
        const refused = yield* send({ ...message(license.id), body })
        assert.strictEqual(refused.status, status, JSON.stringify(body))
        const { error } = refused.json as { readonly error: { readonly code: string; readonly detail: string } }
        assert.deepStrictEqual([error.code, error.detail], [status === 404 ? "NOT_FOUND" : "LINKAGE_MISMATCH", detail])
      }
      assert.deepStrictEqual(yield* client.licenses.get({ params }), linked)
      const moved = yield* send({ ...message(license.id), body: { order_id: loose.id, subscription_id: "" } })
      assert.strictEqual(moved.status, 200)
      assert.strictEqual((yield* send({ ...message(license.id), body: { subscription_id: first.id } })).status, 422)
    })
  )

  it.effect("a token for some products links what belongs to these products only", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      const own = yield* catalog
      const foreign = yield* catalog
      const { token } = yield* client["api-keys"].create({
        payload: { name: "one", scopes: ["license:write"], product_ids: [own.product.id] }
      })
      const patch = (order_id: string) =>
        send({ ...message(own.license.id), body: { order_id }, headers: { authorization: `Bearer ${token}` } })
      assert.strictEqual((yield* patch(own.firstOrder.id)).status, 200)
      assert.strictEqual((yield* patch(foreign.firstOrder.id)).status, 404)
      assert.strictEqual((yield* patch("")).status, 200)
    })
  )
})
