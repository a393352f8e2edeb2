/**
 * All screens of the console, for the tests that look at each: their addresses and headings, with records that the service has. A
 * new screen gets a line here.
 */
import { Effect } from "effect"
import { TestServer } from "../support/TestServer.ts"

export type Screen = readonly [path: string, heading: string]

const oldest = { limit: 1, sort: "created_at" } as const

/** The screens of the service as it is: those of one record show the oldest license, and its customer, product and policy. */
export const screens = Effect.gen(function* () {
  const { client } = yield* TestServer
  const [license] = (yield* client.licenses.list({ query: oldest })).items
  const customer = yield* client.customers.get({ params: { id: license!.customer_id! } })
  const product = yield* client.products.get({ params: { id: license!.product_id } })
  const policy = yield* client.policies.get({ params: { id: license!.policy_id } })
  return [
    ["", "Overview"],
    ["/licenses", "Licenses"],
    ["/licenses/new", "Issue a license"],
    [`/licenses/${license!.id}`, license!.customer_name!],
    ["/search?q=example.com", "Search"],
    ["/customers", "Customers"],
    [`/customers/${customer.id}`, customer.name],
    ["/products", "Products"],
    [`/products/${product.id}`, product.name],
    [`/policies/${policy.id}`, policy.name],
    ["/api-keys", "API keys"],
    ["/webhooks", "Webhooks"]
  ] as const satisfies ReadonlyArray<Screen>
})

/** A screen's name, for files. */
export const nameOf = ([path]: Screen): string =>
  path
    .replace(/\?.*/, "")
    .replace(/\/\w+_\w{8,}/, "/one")
    .slice(1)
    .replaceAll(/\W+/g, "-") || "overview"
