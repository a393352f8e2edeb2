/** What screens say and show where something is missing: choices, rights, room on a phone, the network, a part of an address. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { issue } from "../../../support/http/IssuedLicenses.ts"
import { TestServer } from "../../../support/http/TestServer.ts"
import { atConsole, consoleLayer, withPerson } from "../browser/Browser.ts"
import { forgive, prepare } from "../browser/Meanwhile.ts"
import { prepareOrder } from "../browser/Purchase.ts"

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
          await person.click("Create API key")
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
    "a key is edited also while the products cannot be read, and stays limited to its own",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client, product } = yield* prepare(0)
        const payload = { name: "Limited", scopes: ["license:read"], product_ids: [product.id] } as const
        const { api_key } = yield* client["api-keys"].create({ payload })
        yield* withPerson(skip, async (person) => {
          await person.page.route("**/products?*", (route) => route.abort())
          await person.opens("/api-keys", "API keys")
          await person.pick("Actions for Limited", "Edit Limited")
          await person.page.locator("dialog[open]").getByText("The service cannot be reached").waitFor()
          await person.fill("Name", "Renamed")
          await person.click("Save")
          await person.isDone()
          forgive(person)
        })
        const after = yield* client["api-keys"].get({ params: { id: api_key.id } })
        assert.deepStrictEqual([after.name, after.product_ids], ["Renamed", [product.id]])
      }),
    minutes
  )

  it.effect(
    "a field that links a record says if the search fails, searches again, and never takes an earlier result",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client, product } = yield* prepare(0)
        const email = "twice@example.com"
        const create = (code: string) => client.customers.create({ payload: { code, name: `Name ${code}`, email } })
        const { id } = yield* create("twice-1")
        yield* withPerson(skip, async (person) => {
          const typed = (text: string) =>
            person.page.getByRole("combobox", { name: "Customer", exact: true }).fill(text)
          const linked = (value: string) =>
            person.page.locator(`[name="customer_id"][value="${value}"]`).waitFor({ state: "attached" })
          await person.page.route("**/search?*", (route) => route.abort())
          await person.opens(`/licenses/new?product_id=${product.id}`, "Issue a license")
          await typed(email)
          await person.sees("The service cannot be reached")
          await person.click("Issue")
          await person.sees("The customer could not be looked for: the reason is below.")
          assert.deepStrictEqual(await person.violations(), [])
          await person.page.unroute("**/search?*")
          await person.click("Try again")
          await linked(id)
          await typed("nobody@example.com")
          await linked("?nobody@example.com")
          await Effect.runPromise(create("twice-2"))
          await typed(email)
          await linked(`?${email}`)
          forgive(person)
        })
      }),
    minutes
  )

  it.effect(
    "a filter says how many products it offers, and shows one of the address that is not among them",
    ({ skip }) =>
      Effect.gen(function* () {
        yield* prepare(0)
        const { product } = yield* prepare(0)
        yield* withPerson(skip, async (person) => {
          await person.page.route("**/products?*", (route) =>
            route.continue({ url: route.request().url().replace("limit=200", "limit=1") })
          )
          await person.opens(`/licenses?product_id=${product.id}`, "Licenses")
          await person.sees("Only the first 1 are offered here.")
          assert.strictEqual(await person.page.getByLabel("Product", { exact: true }).inputValue(), product.id)
          assert.deepStrictEqual(await person.violations(), [])
        })
      }),
    minutes
  )

  it.effect(
    "what is about one of several products begins with the one that was chosen last, or asks for one",
    ({ skip }) =>
      Effect.gen(function* () {
        yield* prepare(0)
        const { policy, product } = yield* prepare(0)
        yield* withPerson(skip, async (person) => {
          for (const [path, heading] of [
            ["/licenses/new", "Issue a license"],
            ["/licenses/batch", "Issue a batch"],
            ["/subscriptions", "Subscriptions"],
            ["/orders", "Orders"]
          ] as const) {
            await person.opens(path, heading)
            await person.sees("Choose a product")
            assert.strictEqual(await person.page.getByLabel("Product", { exact: true }).inputValue(), "")
            assert.deepStrictEqual(await person.violations(), [])
          }
          await person.choose("Product", product.name)
          await person.sees("This product has no orders yet.")
          await person.click("Licenses", "link")
          await person.click("Issue a license", "link")
          await person.choose("Policy", policy.name)
          assert.strictEqual(await person.page.getByLabel("Product", { exact: true }).inputValue(), product.id)
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
        // A new service shows its first steps instead of charts.
        yield* issue()
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
          await person.page.route("**/customers?*", (route) => route.fulfill({ json: {} }))
          await person.page.reload()
          await person.sees("The service cannot be reached: check the connection and try again.")
          await person.page.unroute("**/customers?*")
          await person.click("Try again")
          await person.sees(/^\d+ customers?$/)
          await person.page.route("**/OverviewCharts-*.js", (route) => route.abort())
          await person.opens("", "Overview")
          await person.sees(/^It cannot be loaded: the service was replaced/)
          await person.page
            .getByRole("link", { name: /^Active/ })
            .first()
            .waitFor()
          forgive(person)
        })
      }),
    minutes
  )

  it.effect(
    "who is signed in for this tab only stays so when a part of the address is left out",
    ({ skip }) =>
      Effect.gen(function* () {
        const { adminToken } = yield* TestServer
        yield* withPerson(
          skip,
          async (person) => {
            await person.opens("/licenses?sort=bogus", "Licensing console")
            await person.fill("API token", adminToken)
            await person.press("Enter")
            await person.seesHeading("This screen cannot be shown")
            await person.click("Open the screen", "link")
            await person.seesHeading("Licenses")
            assert.strictEqual(new URL(person.page.url()).search, "")
            forgive(person)
          },
          { token: "" }
        )
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
              await person.sees(/^Your sign-in does not allow this/)
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
