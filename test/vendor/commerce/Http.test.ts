import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestServer } from "../../support/http/TestServer.ts"

const order = { external_system: "shop", external_id: "o1", status: "paid" }
const period = { current_period_start: "2030-01-01T00:00:00Z", current_period_end: "2030-02-01T00:00:00Z" }
const subscription = { external_system: "shop", external_id: "s1", status: "active", ...period }

const makeProduct = Effect.fnUntraced(function* (code: string) {
  const { client } = yield* TestServer
  return (yield* client.products.create({ payload: { name: "P", code } })).id
})

interface Record {
  readonly id: string
  readonly customer_id?: string
  readonly subscription_id?: string
  readonly canceled_at?: string
}

layer(TestServer.layer)("Orders and subscriptions over HTTP", (it) => {
  it.effect("are created, linked, unlinked with an empty text, and listed", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      const id = yield* makeProduct("linked")
      const { id: customer_id } = yield* client.customers.create({ payload: { name: "C", code: "c" } })
      const response = yield* send({
        method: "POST",
        path: `/api/v1/products/${id}/subscriptions`,
        body: { ...subscription, customer_id }
      })
      assert.strictEqual(response.status, 201)
      const { data: created } = response.json as { data: Record }
      const body = { ...order, customer_id, subscription_id: created.id }
      const ordered = yield* send({ method: "POST", path: `/api/v1/products/${id}/orders`, body })
      const { data } = ordered.json as { data: Record }
      assert.deepStrictEqual([ordered.status, data.customer_id, data.subscription_id], [201, customer_id, created.id])

      const unlink = { customer_id: "", subscription_id: "" }
      const unlinked = yield* send({ method: "PATCH", path: `/api/v1/orders/${data.id}`, body: unlink })
      assert.strictEqual(unlinked.status, 200)
      assert.doesNotHaveAnyKeys((unlinked.json as { data: object }).data, ["customer_id", "subscription_id"])
      const cleared = yield* send({
        method: "PATCH",
        path: `/api/v1/subscriptions/${created.id}`,
        body: { customer_id: "" }
      })
      assert.notProperty((cleared.json as { data: object }).data, "customer_id")

      const orders = yield* client.commerce.listOrders({ params: { id }, query: { status: "paid" } })
      assert.deepStrictEqual(
        orders.items.map((item) => item.id),
        [data.id]
      )
      const listed = yield* client.commerce.listSubscriptions({ params: { id }, query: { external_id: "s1" } })
      assert.deepStrictEqual(
        listed.items.map((item) => item.id),
        [created.id]
      )
      assert.strictEqual((yield* send({ method: "DELETE", path: `/api/v1/orders/${data.id}` })).status, 405)
    })
  )

  it.effect("show canceled_at while canceled", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      const id = yield* makeProduct("canceled")
      const response = yield* send({ method: "POST", path: `/api/v1/products/${id}/subscriptions`, body: subscription })
      const path = `/api/v1/subscriptions/${(response.json as { data: Record }).data.id}`
      const patch = (body: unknown) =>
        Effect.map(send({ method: "PATCH", path, body }), ({ json }) => (json as { data: Record }).data)
      assert.match((yield* patch({ status: "canceled" })).canceled_at ?? "", /^\d{4}-.*Z$/)
      assert.notProperty(yield* patch({ status: "active" }), "canceled_at")
    })
  )

  it.effect("are refused with the code and field that explain why", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      const id = yield* makeProduct("refused")
      const other = yield* makeProduct("other")
      const create = (product: string, external_id: string) =>
        client.commerce.createSubscription({
          params: { id: product },
          payload: { ...subscription, status: "active", external_id, current_period_start: 0, current_period_end: 1 }
        })
      yield* create(id, "s1")
      const foreign = yield* create(other, "s2")
      yield* client.commerce.createOrder({ params: { id }, payload: { ...order, status: "paid" } })
      const { current_period_start: at } = period
      const cases = [
        ["subscriptions", subscription, 409, "DUPLICATE_EXTERNAL_ID", "external_id"],
        ["subscriptions", { ...subscription, external_id: "x", customer_id: "none" }, 404, "NOT_FOUND", "customer_id"],
        ["subscriptions", { ...subscription, current_period_end: at }, 422, "VALIDATION_ERROR", "current_period_end"],
        ["subscriptions", { ...subscription, canceled_at: at }, 422, "VALIDATION_ERROR", "canceled_at"],
        ["subscriptions", { ...subscription, customer_id: "" }, 422, "VALIDATION_ERROR", "customer_id"],
        ["subscriptions", { ...subscription, customer_id: null }, 400, "INVALID_JSON", "customer_id"],
        ["subscriptions", { ...subscription, status: "dead" }, 422, "VALIDATION_ERROR", "status"],
        ["orders", order, 409, "DUPLICATE_EXTERNAL_ID", "external_id"],
        ["orders", { ...order, external_id: "x", subscription_id: "none" }, 404, "NOT_FOUND", "subscription_id"],
        [
          "orders",
          { ...order, external_id: "x", subscription_id: foreign.id },
          422,
          "LINKAGE_MISMATCH",
          "subscription_id"
        ],
        ["orders", { ...order, external_id: "x", period_start: at }, 422, "VALIDATION_ERROR", "period_end"],
        ["orders", { ...order, external_id: "x", period_end: at }, 422, "VALIDATION_ERROR", "period_start"]
      ] as const
      for (const [kind, body, status, code, detail] of cases) {
        const { error, ...answer } = yield* send({ method: "POST", path: `/api/v1/products/${id}/${kind}`, body })
        assert.deepStrictEqual([answer.status, error.code, error.detail], [status, code, detail])
      }
      for (const path of ["/api/v1/orders/none", "/api/v1/subscriptions/none"]) {
        const { error, status } = yield* send({ method: "PATCH", path, body: { external_id: "" } })
        assert.deepStrictEqual([status, error.code, error.detail], [404, "NOT_FOUND", "id"])
      }
    })
  )
})
