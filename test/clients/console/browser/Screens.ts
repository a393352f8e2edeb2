/**
 * All screens of the console, for the tests that look at each: their addresses and headings, with records that the service has. A
 * new screen gets a line here.
 */
import { Effect } from "effect"
import { TestServer } from "../../../support/http/TestServer.ts"

export type Screen = readonly [path: string, heading: string]

const oldest = { limit: 1, sort: "created_at" } as const

/** The screens of the service as it is: those of one record show the oldest license, and its customer, product and policy. */
export const screens = Effect.gen(function* () {
  const { client } = yield* TestServer
  const [license] = (yield* client.licenses.list({ query: oldest })).items
  const customer = yield* client.customers.get({ params: { id: license!.customer_id! } })
  const product = yield* client.products.get({ params: { id: license!.product_id } })
  const policy = yield* client.policies.get({ params: { id: license!.policy_id } })
  const params = { id: product.id }
  const { items: orders } = yield* client.commerce.listOrders({ params, query: oldest })
  const { items: subscriptions } = yield* client.commerce.listSubscriptions({ params, query: oldest })
  const { items: versions } = yield* client.versions.list({ params, query: oldest })
  const exported = yield* client.events.list({ query: { event_type: "report_export.created", limit: 1 } })
  const { items: jobs } = yield* client.bulkJobs.list({ query: { action: "apply_policy", limit: 1 } })
  const { items: webhooks } = yield* client.webhooks.list({ query: { limit: 1 } })
  const [opened] = (yield* client.activities.list({ query: { license_id: license!.id, limit: 1 } })).items
  return [
    ["", "Overview"],
    ["/licenses", "Licenses"],
    ["/licenses/new", "Issue a license"],
    ["/licenses/batch", "Issue a batch"],
    ["/bulk-jobs", "Bulk jobs"],
    ...jobs.map(({ id, matched }): Screen => [`/bulk-jobs/${id}`, `Apply the policy to ${matched} licenses`]),
    [`/licenses/${license!.id}`, license!.customer_name!],
    [`/licenses/${license!.id}/audit`, `Audit of ${license!.customer_name}`],
    ["/devices", "Devices"],
    ["/search?q=example.com", "Search"],
    ["/customers", "Customers"],
    [`/customers/${customer.id}`, customer.name],
    ["/products", "Products"],
    [`/products/${product.id}`, product.name],
    [`/products/${product.id}/versions`, "Versions"],
    ...versions.map(({ id, version }): Screen => [`/products/${product.id}/versions/${id}`, `Version ${version}`]),
    [`/orders?product_id=${product.id}`, "Orders"],
    ...orders.map(({ external_id, id }): Screen => [`/orders/${id}`, `Order ${external_id}`]),
    [`/subscriptions?product_id=${product.id}`, "Subscriptions"],
    ...subscriptions.map(({ external_id, id }): Screen => [`/subscriptions/${id}`, `Subscription ${external_id}`]),
    [`/policies/${policy.id}`, policy.name],
    ["/reports", "Usage"],
    ["/reports/ledger", "Ledger"],
    ["/reports/exports?kind=license-audit", "Exports"],
    ...exported.items.map(({ resource_id }): Screen => [`/reports/exports/${resource_id}`, "Export: usage ledger"]),
    [`/activity?cursor=${opened!.sequence + 1}&open=${opened!.sequence}`, "Activity"],
    ["/activity?feed=events", "Activity"],
    ["/operations", "Operations"],
    ["/api-keys", "API keys"],
    ...webhooks.map(({ id, name }): Screen => [`/webhooks/${id}`, name]),
    ["/webhooks", "Webhooks"]
  ] satisfies ReadonlyArray<Screen>
})

/** A screen's name, for files. */
export const nameOf = ([path]: Screen): string =>
  path
    .replace(/\?.*/, "")
    .replace(/\/\w+_\w{8,}/, "/one")
    .slice(1)
    .replaceAll(/\W+/g, "-") || "overview"
