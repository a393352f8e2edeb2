/** What screens say and show where something is missing: choices, rights, room on a phone, the network, a part of an address. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { atConsole, consoleLayer } from "./Browser.ts"
import { forgive, prepare } from "./Meanwhile.ts"
import { prepareOrder } from "./Purchase.ts"

const minutes = 5 * 60_000

layer(consoleLayer, { timeout: minutes })("At the console", (it) => {
  it.effect(
    "a form says if what is chosen from cannot be read, and reads it again",
    ({ skip }) =>
      Effect.gen(function* () {
        const { policy, product } = yield* prepare(0)
        yield* atConsole(skip, async (person) => {
          const fail = (glob: string) => person.page.route(glob, (route) => route.abort())
          await fail("**/policies?*")
          for (const [path, heading] of [
            [`/licenses/new?product_id=${product.id}`, "Issue a license"],
            ["/licenses/batch", "Issue a batch"]
          ] as const) {
            await person.opens(path, heading)
            if (heading === "Issue a batch")
              await person.page.getByLabel("Product", { exact: true }).selectOption({ label: product.name })
            const field = person.page.locator(".field", { hasText: "Policy" }).first()
            await field.getByText("The service cannot be reached").waitFor()
            assert.deepStrictEqual(await person.violations(), [])
          }
          await person.page.unroute("**/policies?*")
          await person.click("Try again")
          await person.choose("Policy", policy.name)
          await fail("**/products?*")
          await person.opens("/api-keys", "API keys")
          await person.click("New API key")
          await person.fill("Name", "For one product")
          await person.page.locator("dialog[open]").getByText("The service cannot be reached").waitFor()
          // Sent now, the key would be for all products.
          await person.click("New API key")
          await person.sees("These could not be read yet: try again first.")
          await person.page.unroute("**/products?*")
          await person.click("Try again")
          await person.page.locator("dialog[open]").getByLabel(product.name, { exact: true }).check()
          forgive(person)
        })
      }),
    minutes
  )

  it.effect(
    "a phone shows the status of each row, and whose it is",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client, customer, license, order, product } = yield* prepareOrder
        yield* client.commerce.createSubscription({
          params: { id: product.id },
          payload: {
            external_system: "stripe",
            external_id: "sub_1PgmMZLkdIwHu7ixJ4jXq2kd",
            status: "past_due",
            customer_id: customer.id,
            current_period_start: 0,
            current_period_end: 1
          }
        })
        yield* client.reports.createExport({ payload: { report_kind: "usage-summary" } })
        const name = "A customer with a name that is much longer than the width of a phone"
        yield* client.licenses.update({ params: { id: license.id }, payload: { customer_name: name } })
        yield* atConsole(
          skip,
          async (person) => {
            for (const [path, heading] of [
              ["/licenses", "Licenses"],
              [`/orders?product_id=${product.id}`, "Orders"],
              [`/subscriptions?product_id=${product.id}`, "Subscriptions"],
              [`/orders/${order.id}`, `Order ${order.external_id}`],
              ["/api-keys", "API keys"],
              ["/reports/exports", "Exports"]
            ] as const) {
              await person.opens(path, heading)
              const status = person.page.locator("tbody .status").first()
              await status.waitFor()
              const { width, x } = (await status.boundingBox())!
              assert.isAtMost(x + width, 375, path)
            }
            await person.opens("/subscriptions", "Subscriptions")
            await person.page.getByLabel("Product", { exact: true }).selectOption(product.id)
            // Further to the right, a list has the customer, read with it.
            await person.page.getByRole("link", { name: customer.name }).first().waitFor({ state: "attached" })
          },
          { width: 375 }
        )
      }),
    minutes
  )

  it.effect(
    "what cannot be shown says why in a sentence, and leaves the rest of the screen",
    ({ skip }) =>
      Effect.gen(function* () {
        yield* prepare(0)
        yield* atConsole(skip, async (person) => {
          await person.opens("/licenses?sort=bogus", "This screen cannot be shown")
          await person.sees(/^A part of this address is not known/)
          await person.click("Open the screen", "link")
          await person.seesHeading("Licenses")
          await person.opens("/search?q=%20", "Search")
          await person.sees("Type into the search box to find something.")
          // The sign-in page of a network responds in place of the service.
          await person.page.route("**/customers?*", (route) =>
            route.fulfill({ contentType: "text/html", body: "<h1>Welcome to this network</h1>" })
          )
          await person.opens("/customers", "Customers")
          await person.sees("The service cannot be reached: check the connection and try again.")
          await person.page.unroute("**/customers?*")
          await person.click("Try again")
          await person.sees(/^\d+ customers?$/)
          await person.page.route("**/OverviewCharts-*.js", (route) => route.abort())
          await person.opens("", "Overview")
          await person.sees(/^It cannot be loaded: the service was replaced/)
          await person.page
            .getByRole("link", { name: /active$/ })
            .first()
            .waitFor()
          forgive(person)
        })
      }),
    minutes
  )

  it.effect(
    "a token that may not change anything is offered no change, at any address",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client } = yield* prepare(0)
        const { token } = yield* client["api-keys"].create({ payload: { name: "reader", scopes: ["license:read"] } })
        yield* atConsole(
          skip,
          async (person) => {
            for (const [path, heading] of [
              ["/api-keys", "API keys"],
              ["/webhooks", "Webhooks"],
              ["/reports/exports", "Exports"]
            ] as const) {
              await person.opens(path, heading)
              await person.sees(/^The API token lacks a scope/)
              assert.strictEqual(await person.page.getByRole("main").getByRole("button").count(), 0, path)
              assert.strictEqual(await person.page.getByRole("main").getByRole("combobox").count(), 0, path)
            }
            forgive(person)
          },
          { token }
        )
      }),
    minutes
  )
})
