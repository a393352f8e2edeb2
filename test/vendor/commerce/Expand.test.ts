/** Orders and subscriptions with their customers. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { ManagementScope } from "../../../src/access/Scope.ts"
import { assertAnswered, assertRefused } from "../../support/http/Http.ts"
import { code, makeLicense, makeProduct, tokenFor } from "../../support/http/ProductTokens.ts"
import { TestServer } from "../../support/http/TestServer.ts"

interface Listed {
  readonly data: ReadonlyArray<{
    readonly external_id: string
    readonly expanded?: { readonly customer?: { readonly id: string; readonly email?: string } }
  }>
}

/** A product with a purchase of each customer, and one without a customer. */
const sell = Effect.fnUntraced(function* (customers: ReadonlyArray<string>) {
  const { advance, client } = yield* TestServer
  const product = yield* makeProduct
  const params = { id: product.id }
  const period = { current_period_start: 0, current_period_end: 1 }
  for (const [index, customer] of [...customers, undefined].entries()) {
    yield* advance(1)
    const external = { external_system: "shop", external_id: String(index) }
    const link = customer === undefined ? {} : { customer_id: customer }
    yield* client.commerce.createOrder({ params, payload: { ...external, ...link, status: "paid" } })
    yield* client.commerce.createSubscription({
      params,
      payload: { ...external, ...link, ...period, status: "active" }
    })
  }
  return product
})

const makeCustomer = Effect.gen(function* () {
  const { client } = yield* TestServer
  const name = code()
  return yield* client.customers.create({ payload: { name, code: name, email: `${name}@example.com` } })
})

const kinds = ["orders", "subscriptions"] as const

const shownBy = (json: unknown) =>
  (json as Listed).data.map(({ expanded, external_id }) => [external_id, expanded?.customer?.email])

layer(TestServer.layer)("The lists of orders and subscriptions", (it) => {
  it.effect("show the customer of each row if they are asked to", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      const [ada, ben] = [yield* makeCustomer, yield* makeCustomer]
      const { id } = yield* sell([ada.id, ben.id, ada.id])
      for (const kind of kinds) {
        const path = `/api/v1/products/${id}/${kind}`
        assert.deepStrictEqual(shownBy((yield* send({ path: `${path}?expand=customer` })).json), [
          ["3", undefined],
          ["2", ada.email],
          ["1", ben.email],
          ["0", ada.email]
        ])
        const plain = (yield* send({ path })).json as Listed
        assert.isTrue(plain.data.every((row) => !("expanded" in row)))
        assertRefused(yield* send({ path: `${path}?expand=product` }), 400, "INVALID_QUERY", "expand")
      }
      const { items } = yield* client.commerce.listOrders({ params: { id }, query: { expand: ["customer"], limit: 2 } })
      assert.deepStrictEqual(items[1]!.expanded?.customer, ada)
    })
  )

  it.effect("show no customer to a token that may not read customers", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      const { email, id } = yield* makeCustomer
      const product = yield* sell([id])
      const tokenWith = (
        scopes: ReadonlyArray<ManagementScope>,
        limit: { readonly product_ids?: Array<string> } = {}
      ) =>
        Effect.map(client["api-keys"].create({ payload: { name: "few", scopes, ...limit } }), ({ token }) => ({
          authorization: `Bearer ${token}`
        }))
      const [seller, clerk] = [yield* tokenWith(["product:read"]), yield* tokenWith(["product:read", "license:read"])]
      const limited = yield* tokenWith(["product:read"], { product_ids: [product.id] })
      for (const kind of kinds) {
        const path = `/api/v1/products/${product.id}/${kind}`
        const refused = yield* send({ path: `${path}?expand=customer`, headers: seller })
        assertRefused(refused, 403, "TOKEN_SCOPE_DENIED", "license:read")
        assert.include(refused.headers["www-authenticate"], 'scope="license:read"')
        // Before other faults of the query, and before the product is looked for.
        for (const headers of [seller, limited])
          for (const wrong of [`${path}?expand=customer&limit=0`, `/api/v1/products/none/${kind}?expand=customer`])
            assertRefused(yield* send({ path: wrong, headers }), 403, "TOKEN_SCOPE_DENIED", "license:read")
        assertAnswered(yield* send({ path, headers: seller }), 200)
        const shown = yield* send({ path: `${path}?expand=customer`, headers: clerk })
        assert.deepStrictEqual(shownBy(shown.json), [
          ["1", undefined],
          ["0", email]
        ])
      }
    })
  )

  it.effect("show a token for some products only the customers that it reaches", () =>
    Effect.gen(function* () {
      const [own, foreign] = [yield* makeCustomer, yield* makeCustomer]
      const product = yield* sell([own.id, foreign.id])
      yield* makeLicense(product, { customer_id: own.id })
      yield* makeLicense(yield* makeProduct, { customer_id: foreign.id })
      const { ask } = yield* tokenFor(product)
      assertRefused(yield* ask("GET", `/customers/${foreign.id}`), 404, "NOT_FOUND")
      for (const kind of kinds) {
        const shown = yield* ask("GET", `/products/${product.id}/${kind}?expand=customer`)
        assert.deepStrictEqual(shownBy(shown.json), [
          ["2", undefined],
          ["1", undefined],
          ["0", own.email]
        ])
      }
    })
  )
})
