/** What was sold: orders, subscriptions and versions of a product, with custom fields and metadata. */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { TestServer } from "../../../support/http/TestServer.ts"
import { type Person, withPerson } from "./Browser.ts"

const metadata = { crm: "4711", seats: 3, vip: true, tags: ["a", "b"] }

export const recordPurchase = Effect.fnUntraced(function* (of: {
  readonly product: string
  readonly customer: string
  readonly number?: string
}) {
  const { client } = yield* TestServer
  const params = { id: of.product }
  const now = Date.now()
  const subscription = yield* client.commerce.createSubscription({
    params,
    payload: {
      external_system: "stripe",
      external_id: "S-77",
      status: "active",
      current_period_start: now - 86_400_000,
      current_period_end: now + 29 * 86_400_000,
      customer_id: of.customer,
      metadata
    }
  })
  const order = yield* client.commerce.createOrder({
    params,
    payload: {
      external_system: "stripe",
      external_id: of.number ?? "A-1001",
      status: "paid",
      customer_id: of.customer,
      subscription_id: subscription.id,
      metadata
    }
  })
  const version = yield* client.versions.create({ params, payload: { version: "2.4.1", metadata } })
  const field = (resource_type: "license" | "customer", name: string) =>
    client["custom-fields"].create({
      params,
      payload: {
        resource_type,
        code: `${resource_type}-tier`,
        name,
        value_type: "enum",
        enum_options: ["gold", "silver"]
      }
    })
  const tier = yield* field("license", "Support tier")
  const region = yield* field("customer", "Region")
  return { subscription: subscription.id, order: order.id, version: version.id, tier, region }
})

let purchases = 0

/** A customer with an order, and a perpetual license that came with it, of a new product. */
export const prepareOrder = Effect.gen(function* () {
  const { client } = yield* TestServer
  const code = `buyer-${String(++purchases).padStart(3, "0")}`
  const number = `order-of-${code}`
  const email = `${code}@example.com`
  const name = `Name of ${code}`
  const product = yield* client.products.create({ payload: { name: `Editor of ${code}`, code } })
  const params = { id: product.id }
  const policy = yield* client.policies.create({
    params,
    payload: { name: "Pro", code: "pro", license_type: "perpetual" }
  })
  const customer = yield* client.customers.create({ payload: { name, code, email } })
  const order = yield* client.commerce.createOrder({
    params,
    payload: { external_system: "stripe", external_id: number, status: "paid", customer_id: customer.id }
  })
  const { license } = yield* client.licenses.create({
    payload: {
      product_id: product.id,
      policy_id: policy.id,
      order_id: order.id,
      customer_id: customer.id,
      customer_name: name,
      customer_email: email
    }
  })
  return { client, number, email, name, product, customer, order, license }
})

export type PreparedOrder = Effect.Success<typeof prepareOrder>

type Body = (person: Person, prepared: PreparedOrder) => Promise<void>

/** A person with an order, who opens a screen of the console first, and what must hold afterwards. */
export const withOrder =
  (body: Body, check: (prepared: PreparedOrder) => Effect.Effect<void, unknown> = () => Effect.void) =>
  ({ skip }: { readonly skip: (reason: string) => void }) =>
    Effect.gen(function* () {
      const prepared = yield* prepareOrder
      yield* withPerson(skip, (person) => body(person, prepared))
      yield* check(prepared)
    })

/** Expects these statuses of the order and its license. */
export const become =
  (...expected: ReadonlyArray<string>) =>
  ({ client, license, order }: PreparedOrder) =>
    Effect.gen(function* () {
      const { status: ofOrder } = yield* client.commerce.getOrder({ params: { id: order.id } })
      const { status: ofLicense } = yield* client.licenses.get({ params: { id: license.id } })
      assert.deepStrictEqual([ofOrder, ofLicense], expected)
    })
