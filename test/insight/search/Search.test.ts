/** The search over all records, over HTTP. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { SearchResults } from "../../../src/insight/search/SearchResults.ts"
import { assertRefused } from "../../support/http/Http.ts"
import { makeLicense, makeProduct, tokenFor } from "../../support/http/ProductTokens.ts"
import { TestServer } from "../../support/http/TestServer.ts"

const search = Effect.fnUntraced(function* (q: string) {
  const { client } = yield* TestServer
  return yield* client.search.search({ query: { q } })
})

/** The kinds that a search finds records of, with their ids. */
const idsIn = (results: SearchResults) =>
  Object.fromEntries(
    Object.entries(results).flatMap(([kind, records]) =>
      records.length === 0 ? [] : [[kind, records.map(({ id }: { readonly id: string }) => id)]]
    )
  )

const shop = Effect.gen(function* () {
  const { client, send } = yield* TestServer
  const product = yield* client.products.create({ payload: { name: "P", code: "p" } })
  const params = { id: product.id }
  const policy = yield* client.policies.create({
    params,
    payload: { name: "P", code: "p", license_type: "perpetual", max_activations: 0 }
  })
  const customer = yield* client.customers.create({
    payload: { name: "Ada Lovelace", code: "ada-1", email: "Ada@Example.com" }
  })
  const subscription = yield* client.commerce.createSubscription({
    params,
    payload: {
      external_system: "stripe",
      external_id: "sub_123",
      status: "active",
      current_period_start: 0,
      current_period_end: 1_000
    }
  })
  const order = yield* client.commerce.createOrder({
    params,
    payload: { external_system: "stripe", external_id: "INV-77", status: "paid" }
  })
  const make = (more: object) =>
    client.licenses.create({ payload: { product_id: product.id, policy_id: policy.id, ...more } })
  const linked = yield* make({ customer_id: customer.id, customer_name: "Somebody else" })
  const ordered = yield* make({ order_id: order.id })
  const subscribed = yield* make({ subscription_id: subscription.id, customer_name: "Grace Hopper" })
  yield* send({
    method: "POST",
    path: "/api/v1/license/activate",
    headers: { authorization: `License ${subscribed.license_key}` },
    body: { fingerprint: "machine\\7", hostname: "Workstation" }
  })
  const { items } = yield* client.devices.list({ params: { id: subscribed.license.id }, query: {} })
  return { customer, device: items[0]!.id, linked, order, ordered, subscribed, subscription }
})

layer(TestServer.layer)("A search", (it) => {
  it.effect("finds licenses by whatever a customer knows of them, with the records that led to them", () =>
    Effect.gen(function* () {
      const { customer, device, linked, order, ordered, subscribed, subscription } = yield* shop
      const found = (q: string) => Effect.map(search(q), idsIn)
      const [a, b, c] = [linked.license.id, ordered.license.id, subscribed.license.id]
      for (const { license, license_key } of [linked, ordered]) {
        for (const key of [license_key, ` ${license_key.toLowerCase()} `, license_key.replaceAll("-", "")])
          assert.deepStrictEqual(yield* found(key), { licenses: [license.id] })
        assert.deepStrictEqual(yield* found(license.license_key_last4.toLowerCase()), { licenses: [license.id] })
      }
      const ofCustomer = { licenses: [a], customers: [customer.id] }
      for (const q of ["lovel", "ADA@example", "ada-1"]) assert.deepStrictEqual(yield* found(q), ofCustomer, q)
      assert.deepStrictEqual(yield* found("somebody"), { licenses: [a] })
      assert.deepStrictEqual(yield* found("hopper"), { licenses: [c] })
      for (const q of ["machine\\7", "workstation"]) {
        assert.deepStrictEqual(yield* found(q), { licenses: [c], devices: [device] }, q)
      }
      assert.deepStrictEqual(yield* found("INV-77"), { licenses: [b], orders: [order.id] })
      assert.deepStrictEqual(yield* found("sub_123"), { licenses: [c], subscriptions: [subscription.id] })
      for (const q of ["nobody at all", "machine", "%", "'", "inv-77"]) assert.deepStrictEqual(yield* found(q), {}, q)
    })
  )

  it.effect("finds licenses, customers and bulk jobs by their ids, within the products of the token", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const [own, other] = [yield* makeProduct, yield* makeProduct]
      const license = yield* makeLicense(own)
      const customer = yield* client.customers.create({ payload: { name: "Byron", code: "byron" } })
      const job = yield* client.bulkJobs.create({
        payload: { action: "suspend", license_ids: [license.id], dry_run: true }
      })
      const found = (q: string) => Effect.map(search(q), idsIn)
      assert.deepStrictEqual(yield* found(license.id), { licenses: [license.id] })
      assert.deepStrictEqual(yield* found(` ${customer.id}`), { customers: [customer.id] })
      assert.deepStrictEqual(yield* found(job.id), { bulk_jobs: [job.id] })
      const { ask } = yield* tokenFor(other)
      for (const { id } of [license, customer, job]) {
        const { json } = yield* ask("GET", `/search?q=${id}`)
        assert.deepStrictEqual(idsIn((json as { readonly data: SearchResults }).data), {}, id)
      }
    })
  )

  it.effect("returns at most twenty records, and kinds with many share the places that others do not need", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const [{ id: product_id } = { id: "" }] = (yield* client.products.list({ query: { code: "p" } })).items
      const [{ id: policy_id } = { id: "" }] = (yield* client.policies.list({ params: { id: product_id }, query: {} }))
        .items
      for (let index = 0; index < 22; index++) {
        yield* client.customers.create({ payload: { name: `Twin ${index}`, code: `twin-${index}` } })
      }
      const counts = Effect.map(search("twin"), ({ customers, licenses }) => [customers.length, licenses.length])
      assert.deepStrictEqual(yield* counts, [20, 0])
      const named = client.licenses.create({ payload: { product_id, policy_id, customer_name: "Twin" } })
      yield* Effect.replicateEffect(named, 3)
      assert.deepStrictEqual(yield* counts, [17, 3])
      yield* Effect.replicateEffect(named, 20)
      assert.deepStrictEqual(yield* counts, [10, 10])
    })
  )

  it.effect("needs a text of at most 512 characters, and nothing else", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      const ask = (query: string) => send({ path: `/api/v1/search${query}` })
      for (const query of ["", "?q=", "?q=%20%09", `?q=${"x".repeat(513)}`, "?q=a%00"]) {
        assertRefused(yield* ask(query), 400, "INVALID_QUERY", "q")
      }
      assertRefused(yield* ask("?q=a&limit=5"), 400, "INVALID_QUERY", "limit")
    })
  )
})
