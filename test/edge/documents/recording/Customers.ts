/** Customers, their orders and subscriptions, and custom fields. */
import { Effect } from "effect"
import { Recorder } from "./Recorder.ts"

/** Makes a customer with a subscription and an order. */
export const customers = Effect.fnUntraced(function* ({ product }: { readonly product: string }) {
  const { record, send } = yield* Recorder
  const customer = yield* record("createCustomer", {
    body: { name: "Ada Lovelace", code: "ada", email: "ada@example.com" }
  })
  const params = { id: customer.id }
  yield* record("getCustomer", { params })
  yield* record("updateCustomer", { params, body: { email: "ada@analytical.example.com" } })
  yield* record("listCustomers", { query: { limit: "20", email: "ada@analytical.example.com" } })
  const other = yield* send("createCustomer", {
    body: { name: "Grace Hopper", code: "grace", email: "grace@example.com" }
  })
  const unwanted = yield* send("createCustomer", { body: { name: "Nobody", code: "nobody" } })
  yield* record("deleteCustomer", { params: { id: unwanted.id } })
  const commerce = yield* commerceOf(product, customer.id)
  return { customer: customer.id, other: other.id, ...commerce }
})

const commerceOf = Effect.fnUntraced(function* (id: string, customer_id: string) {
  const { record } = yield* Recorder
  const subscription = yield* record("createSubscription", {
    params: { id },
    body: {
      external_system: "stripe",
      external_id: "sub_1042",
      status: "active",
      current_period_start: "2030-01-31T00:00:00Z",
      current_period_end: "2030-02-28T00:00:00Z",
      customer_id
    }
  })
  yield* record("getSubscription", { params: { id: subscription.id } })
  yield* record("updateSubscription", { params: { id: subscription.id }, body: { cancel_at_period_end: true } })
  yield* record("listSubscriptions", { params: { id }, query: { limit: "20", status: "active" } })
  const order = yield* record("createOrder", {
    params: { id },
    body: {
      external_system: "stripe",
      external_id: "in_2077",
      status: "paid",
      customer_id,
      subscription_id: subscription.id
    }
  })
  yield* record("getOrder", { params: { id: order.id } })
  yield* record("updateOrder", { params: { id: order.id }, body: { status: "fulfilled" } })
  yield* record("listOrders", { params: { id }, query: { limit: "20", status: "fulfilled", expand: "customer" } })
  return { subscription: subscription.id, order: order.id }
})

interface Owners {
  readonly product: string
  readonly customer: string
  readonly license: string
}

/** Custom fields, and their values of a license and a customer. */
export const customFields = Effect.fnUntraced(function* ({ product: id, customer, license }: Owners) {
  const { record, send } = yield* Recorder
  const field = yield* record("createCustomField", {
    params: { id },
    body: { resource_type: "license", code: "cost-center", name: "Cost centre", value_type: "string" }
  })
  const params = { id, field_id: field.id }
  yield* record("getCustomField", { params })
  yield* record("updateCustomField", { params, body: { name: "Cost center" } })
  yield* record("listCustomFields", { params: { id }, query: { limit: "20" } })
  const ofLicense = { id: license, field_id: field.id }
  yield* record("setLicenseCustomFieldValue", { params: ofLicense, body: { string_value: "CC-1042" } })
  yield* record("listLicenseCustomFieldValues", { params: { id: license }, query: { limit: "20" } })

  const region = yield* send("createCustomField", {
    params: { id },
    body: { resource_type: "customer", code: "region", name: "Region", value_type: "string" }
  })
  const ofCustomer = { id: customer, field_id: region.id }
  yield* record("setCustomerCustomFieldValue", { params: ofCustomer, body: { string_value: "Europe" } })
  yield* record("listCustomerCustomFieldValues", { params: { id: customer }, query: { limit: "20" } })
  yield* send("setCustomerCustomFieldValue", { params: ofCustomer, body: { clear: true } })
  yield* record("deleteCustomField", { params: { id, field_id: region.id } })
})
