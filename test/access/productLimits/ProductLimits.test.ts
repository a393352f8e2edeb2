/** API keys for some products: how they are made and changed, and what happens as products, customers and licenses come and go. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { assertAnswered, assertRefused } from "../../support/http/Http.ts"
import { code, idsIn, makeKey, makeLicense, makeProduct, tokenFor } from "../../support/http/ProductTokens.ts"
import { startServer, TestServer } from "../../support/http/TestServer.ts"
import { poll } from "../../support/rules/Poll.ts"

const keys = "/api/v1/api-keys"

const makeCustomer = Effect.gen(function* () {
  const { client } = yield* TestServer
  return (yield* client.customers.create({ payload: { name: "Customer", code: code(), email: "a@example.com" } })).id
})

layer(TestServer.layer, { timeout: "1 minute" })("API keys for some products", (it) => {
  it.effect("show their products in every response, in /me and in their events", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      const [a, b] = [yield* makeProduct, yield* makeProduct]
      const { api_key, token } = yield* makeKey([a.id, b.id], ["license:read"])
      const path = `${keys}/${api_key.id}`
      const me = send({ path: "/api/v1/me", headers: { authorization: `Bearer ${token}` } })
      assert.deepInclude(assertAnswered(yield* me, 200), { product_ids: [a.id, b.id], scopes: ["license:read"] })
      assert.deepInclude(assertAnswered(yield* send({ path }), 200), {
        product_ids: [a.id, b.id],
        scopes: ["license:read"]
      })
      const narrowed = yield* send({ method: "PATCH", path, body: { product_ids: [b.id] } })
      assert.deepInclude(assertAnswered(narrowed, 200), { product_ids: [b.id] })
      assert.deepInclude(assertAnswered(yield* me, 200), { product_ids: [b.id] })
      const cleared = yield* send({ method: "PATCH", path, body: { product_ids: null } })
      assert.notProperty(assertAnswered(cleared, 200), "product_ids")
      assert.notProperty(assertAnswered(yield* me, 200), "product_ids")
      const { items } = yield* client.events.list({ query: { resource_id: api_key.id } })
      assert.deepStrictEqual(
        items.map(
          ({ metadata }) => metadata["product_ids"] ?? (metadata["changes"] as { product_ids: unknown }).product_ids
        ),
        [{ old: [b.id], new: null }, { old: [a.id, b.id], new: [b.id] }, [a.id, b.id]]
      )
    })
  )

  it.effect("have bodies refused that must not be parsed, before their ids are looked up", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      const { headers } = yield* tokenFor(yield* makeProduct)
      for (const body of ['{"h":[],"\\\\":0}', `{"a":${"[".repeat(5_000)}${"]".repeat(5_000)}}`]) {
        const request = { method: "POST", path: "/api/v1/licenses", body: Buffer.from(body) } as const
        const answer = yield* send({ ...request, headers: { ...headers, "content-type": "application/json" } })
        assertRefused(answer, 400, "INVALID_JSON")
      }
    })
  )

  it.effect("are refused the first foreign id of a valid body, behind thousands of their own", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const [own, foreign] = [yield* makeProduct, yield* makeProduct]
      const { ask } = yield* tokenFor(own)
      const { id: feature_id } = yield* client.features.create({
        params: { id: own.id },
        payload: { name: "Feature", code: "feature" }
      })
      const ownLicense = { product_id: own.id, policy_id: own.policy }
      const licenses: Array<object> = Array.from({ length: 1_000 }, () => ({
        ...ownLicense,
        features: [{ feature_id }],
        metadata: { product_id: foreign.id }
      }))
      const issue = () => ask("POST", "/licenses/batch", { licenses })
      licenses[950] = { ...ownLicense, features: [{ feature_id }, { feature_id: "feat_x" }] }
      licenses[960] = { product_id: foreign.id, policy_id: foreign.policy }
      assertRefused(yield* issue(), 404, "NOT_FOUND", "licenses[950].features[1].feature_id")
      licenses[950] = ownLicense
      assertRefused(yield* issue(), 404, "NOT_FOUND", "licenses[960].product_id")
      licenses[970] = { product_id: own.id }
      // The ids of an invalid body are not looked up.
      assertRefused(yield* issue(), 422, "VALIDATION_ERROR", "licenses[970].policy_id")
      licenses.fill(ownLicense, 950)
      // All are the token's own, so that they are decided: an expiry is missing.
      assertRefused(yield* issue(), 422, "VALIDATION_ERROR", "licenses[0].expires_at")
    })
  )

  it.effect("are refused with admin, without or with too many products, with one twice, and with an unknown one", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      const { id } = yield* makeProduct
      const create = (body: object) => send({ method: "POST", path: keys, body: { name: "wrong", ...body } })
      for (const scopes of [{}, { scopes: ["admin"] }, { scopes: ["license:read", "admin"] }])
        assertRefused(yield* create({ ...scopes, product_ids: [id] }), 422, "VALIDATION_ERROR", "product_ids")
      const limited = { scopes: ["license:read"] }
      for (const product_ids of [[], [id, id], Array.from({ length: 101 }, (_, index) => `prod_${index}`)])
        assertRefused(yield* create({ ...limited, product_ids }), 422, "VALIDATION_ERROR", "product_ids")
      assertRefused(yield* create({ ...limited, product_ids: [id, "prod_none"] }), 404, "NOT_FOUND", "product_ids[1]")
      assertRefused(yield* create({ ...limited, product_ids: null }), 400, "INVALID_JSON", "product_ids")
      const { api_key } = yield* makeKey([id], ["license:read"])
      const patch = (body: object) => send({ method: "PATCH", path: `${keys}/${api_key.id}`, body })
      assertRefused(yield* patch({ scopes: ["admin"] }), 422, "VALIDATION_ERROR", "product_ids")
      assertRefused(yield* patch({ product_ids: ["prod_none"] }), 404, "NOT_FOUND", "product_ids[0]")
      assertAnswered(yield* patch({ scopes: ["admin"], product_ids: null }), 200)
      assertRefused(yield* patch({ product_ids: [id] }), 422, "VALIDATION_ERROR", "product_ids")
    })
  )

  it.effect("have no scope for a node of the previous version, which does not know the limit", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { api_key } = yield* makeKey([(yield* makeProduct).id], ["license:read"])
      assert.deepStrictEqual(yield* sql`SELECT scopes FROM api_keys WHERE id = ${api_key.id}`, [{ scopes: [] }])
    })
  )

  it.effect("see nothing once their last product is deleted", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const product = yield* client.products.create({ payload: { name: "Gone", code: code() } })
      const { api_key, ask } = yield* tokenFor(product)
      assert.deepStrictEqual(idsIn((yield* ask("GET", "/products")).json), [product.id])
      yield* client.products.delete({ params: { id: product.id } })
      for (const path of ["/products", "/customers", "/licenses", "/devices"])
        assert.deepStrictEqual(idsIn((yield* ask("GET", path)).json), [], path)
      assertRefused(yield* ask("GET", `/products/${product.id}`), 404, "NOT_FOUND", "id")
      assert.deepStrictEqual((yield* client["api-keys"].get({ params: { id: api_key.id } })).product_ids, [product.id])
    })
  )

  it.effect("are limited on every node, and another node learns a change of the limit", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const { send } = yield* startServer()
      const [a, b] = [yield* makeProduct, yield* makeProduct]
      const { api_key, headers } = yield* tokenFor(a)
      const there = (id: string) => send({ path: `/api/v1/products/${id}`, headers })
      assertAnswered(yield* there(a.id), 200)
      assertRefused(yield* there(b.id), 404, "NOT_FOUND")
      yield* client["api-keys"].update({ params: { id: api_key.id }, payload: { product_ids: [b.id] } })
      yield* poll(there(b.id), ({ status }) => status === 200)
      assertRefused(yield* there(a.id), 404, "NOT_FOUND")
    })
  )
})

layer(TestServer.layer, { timeout: "1 minute" })("A customer of two products", (it) => {
  it.effect("is seen and changed by a token for one, with the licenses of that product", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const [a, b] = [yield* makeProduct, yield* makeProduct]
      const [shared, foreign] = [yield* makeCustomer, yield* makeCustomer]
      const { id: own } = yield* makeLicense(a, { customer_id: shared })
      yield* makeLicense(b, { customer_id: shared })
      yield* makeLicense(b, { customer_id: foreign })
      const { ask } = yield* tokenFor(a)
      assert.deepStrictEqual(idsIn((yield* ask("GET", "/customers?include_total=true")).json), [shared])
      assert.deepStrictEqual(idsIn((yield* ask("GET", `/licenses?customer_id=${shared}`)).json), [own])
      assertAnswered(yield* ask("PATCH", `/customers/${shared}`, { name: "Renamed" }), 200)
      assertRefused(yield* ask("PATCH", `/customers/${foreign}`, { name: "Renamed" }), 404, "NOT_FOUND", "id")
      assertRefused(yield* ask("DELETE", `/customers/${shared}`), 409, "RESOURCE_IN_USE")
      const summary = yield* ask("GET", `/reports/customer-summary?customer_id=${shared}`)
      assert.deepInclude(assertAnswered(summary, 200), { licenses: { total: 1, by_status: { active: 1 } } })
      // Its name and address are found; the licenses are those of the product.
      const found = (yield* ask("GET", "/search?q=a@example.com")).json as {
        data: Record<string, ReadonlyArray<{ id: string }>>
      }
      assert.deepStrictEqual(
        found.data["customers"]!.map(({ id }) => id),
        [shared]
      )
      assert.deepStrictEqual(
        found.data["licenses"]!.map(({ id }) => id),
        [own]
      )
      // With its last license of the product the customer is gone for the token.
      yield* client.licenses.transfer({ params: { id: own }, payload: { customer_id: foreign } })
      assertRefused(yield* ask("GET", `/customers/${shared}`), 404, "NOT_FOUND", "id")
      assertAnswered(yield* ask("GET", `/customers/${foreign}`), 200)
    })
  )

  it.effect("keeps the email that the keys of another product's licenses are mailed to", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const [a, b] = [yield* makeProduct, yield* makeProduct]
      const customer = yield* makeCustomer
      yield* makeLicense(a, { customer_id: customer })
      const { id: other } = yield* makeLicense(b, { customer_id: customer })
      const [limited, both] = [yield* tokenFor(a), yield* tokenFor(a, b)]
      const patchWith = ({ ask }: typeof limited, body: object) => ask("PATCH", `/customers/${customer}`, body)
      for (const email of ["thief@example.com", null]) {
        const answer = yield* patchWith(limited, { name: "Renamed", email })
        assertRefused(answer, 403, "TOKEN_SCOPE_DENIED", "product_ids")
      }
      assert.deepInclude(yield* client.customers.get({ params: { id: customer } }), {
        name: "Customer",
        email: "a@example.com"
      })
      assertAnswered(yield* patchWith(limited, { name: "Renamed", email: "a@example.com" }), 200)
      assertAnswered(yield* patchWith(both, { email: "b@example.com" }), 200)
      yield* client.licenses.update({ params: { id: other }, payload: { customer_email: "own@example.com" } })
      assert.deepInclude(assertAnswered(yield* patchWith(limited, { email: "c@example.com" }), 200), {
        email: "c@example.com"
      })
    })
  )

  it.effect("shows the custom field values of one product only", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const [a, b] = [yield* makeProduct, yield* makeProduct]
      const customer = yield* makeCustomer
      yield* makeLicense(a, { customer_id: customer })
      const fields = yield* Effect.forEach([a, b], ({ id }) =>
        client["custom-fields"].create({
          params: { id },
          payload: { resource_type: "customer", code: "field", name: "Field", value_type: "string" }
        })
      )
      for (const { id } of fields)
        yield* client["custom-fields"].setCustomerValue({
          params: { id: customer, field_id: id },
          payload: { string_value: "value" }
        })
      const { ask } = yield* tokenFor(a)
      const { json } = yield* ask("GET", `/customers/${customer}/custom-fields`)
      assert.deepStrictEqual(
        (json as { data: ReadonlyArray<{ definition_id: string }> }).data.map(({ definition_id }) => definition_id),
        [fields[0]!.id]
      )
      const events = (yield* ask("GET", `/events?resource_id=${customer}&event_type=custom_field_value.set`)).text
      assert.include(events, fields[0]!.id)
      assert.notInclude(events, fields[1]!.id)
    })
  )
})

layer(TestServer.layer, { timeout: "1 minute" })("A stored response", (it) => {
  it.effect("is not repeated to a token that does not reach its license", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      const [a, b] = [yield* makeProduct, yield* makeProduct]
      const { id } = yield* makeLicense(b)
      const headers = { "idempotency-key": "renewal" }
      const path = `/licenses/${id}/renew`
      const body = { extend_by_days: 1 }
      assertAnswered(yield* send({ method: "POST", path: `/api/v1${path}`, headers, body }), 200)
      const { api_key, ask } = yield* tokenFor(a, b)
      const repeated = yield* ask("POST", path, body, headers)
      assert.deepStrictEqual([repeated.status, repeated.headers["idempotency-replayed"]], [200, "true"])
      const issue = { product_id: b.id, policy_id: b.policy, expires_at: "2100-01-01T00:00:00Z" }
      assertAnswered(yield* ask("POST", "/licenses", issue, { "idempotency-key": "issued" }), 201)
      yield* client["api-keys"].update({ params: { id: api_key.id }, payload: { product_ids: [a.id] } })
      assertRefused(yield* ask("POST", path, body, headers), 404, "NOT_FOUND", "id")
      assertRefused(
        yield* ask("POST", "/licenses", issue, { "idempotency-key": "issued" }),
        404,
        "NOT_FOUND",
        "product_id"
      )
    })
  )

  it.effect("of a bulk job or an export is not repeated once the token is for other products", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const [a, b] = [yield* makeProduct, yield* makeProduct]
      yield* makeLicense(b)
      const { api_key, ask } = yield* tokenFor(a, b)
      const limitTo = (...product_ids: ReadonlyArray<string>) =>
        client["api-keys"].update({ params: { id: api_key.id }, payload: { product_ids } })
      const requests = [
        ["/bulk-jobs", { action: "suspend", filter: {}, confirm_all: true, dry_run: true }],
        ["/reports/exports", { report_kind: "usage-summary" }]
      ] as const
      const sendAll = Effect.forEach(requests, ([path, body]) => ask("POST", path, body, { "idempotency-key": "once" }))
      const first = yield* sendAll
      assert.deepStrictEqual(
        first.map(({ status }) => status),
        [202, 201]
      )
      yield* limitTo(b.id, a.id)
      assert.deepStrictEqual(
        (yield* sendAll).map(({ text }) => text),
        first.map(({ text }) => text)
      )
      yield* limitTo(a.id)
      for (const answer of yield* sendAll) assertRefused(answer, 422, "IDEMPOTENCY_KEY_REUSED", "Idempotency-Key")
      const { items } = yield* client.bulkJobs.list({ query: {} })
      assert.lengthOf(items, 1)
    })
  )
})
