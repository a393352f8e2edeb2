/** API keys at the console: what they may do, for which products, and until when; and the events that a webhook gets. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestServer } from "../../../support/http/TestServer.ts"
import { consoleLayer, type Person, withPerson } from "../browser/Browser.ts"

const minutes = 5 * 60_000
const dayMillis = 86_400_000

const rowOf = (person: Person, name: string) => person.page.getByRole("row", { name: new RegExp(`^${name}`) })

layer(consoleLayer, { timeout: minutes })("At the console", (it) => {
  it.effect(
    "an API key is limited to products, unless it may do everything, and the limit is lifted again",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client } = yield* TestServer
        const product = yield* client.products.create({ payload: { name: "Editor", code: "editor" } })
        yield* client.products.create({ payload: { name: "Viewer", code: "viewer" } })
        const keys = Effect.map(client["api-keys"].list({ query: {} }), ({ items }) => items)
        const before = (yield* keys).length
        yield* withPerson(skip, async (person) => {
          await person.opens("/api-keys", "API keys")
          await person.click("New API key")
          await person.fill("Name", "Reseller")
          await person.page.getByLabel("Editor").check()
          await person.page.getByLabel("Do everything").check()
          await person.press("Enter")
          const fault = person.page.locator("dialog .fault")
          await fault.waitFor()
          assert.include(await fault.textContent(), "cannot be limited to products")
          assert.deepStrictEqual(await person.violations(), [])
          assert.lengthOf(await Effect.runPromise(keys), before)
          await person.page.getByLabel("Do everything").uncheck()
          await person.press("Enter")
          assert.match((await person.page.locator(".secret").textContent()) ?? "", /^lsm_/)
          await person.click("Close")
          await person.click("Leave")
          await person.isDone()
          assert.include(await rowOf(person, "Reseller").textContent(), "read licenses" + "only for Editor")
          const limited = (await Effect.runPromise(keys)).find(({ name }) => name === "Reseller")
          assert.deepStrictEqual(limited?.product_ids, [product.id])
          await person.pick("Actions for Reseller", "Edit Reseller")
          await person.page.getByLabel("Editor").uncheck()
          await person.click("Save")
          await person.isDone()
          await person.page.getByText("only for Editor").waitFor({ state: "detached" })
        })
        const lifted = (yield* keys).find(({ name }) => name === "Reseller")
        assert.notProperty(lifted, "product_ids")
        assert.deepStrictEqual(lifted?.scopes, ["license:read"])
      }),
    minutes
  )

  it.effect(
    "API keys that expire within two weeks are marked",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client } = yield* TestServer
        for (const [name, days] of [
          ["Soon", 13],
          ["Later", 15]
        ] as const) {
          const expires_at = Date.now() + days * dayMillis
          yield* client["api-keys"].create({ payload: { name, scopes: ["license:read"], expires_at } })
        }
        yield* withPerson(skip, async (person) => {
          await person.opens("/api-keys", "API keys")
          assert.include(await rowOf(person, "Soon").textContent(), "Expires soon")
          assert.notInclude(await rowOf(person, "Later").textContent(), "expires soon")
        })
      }),
    minutes
  )

  it.effect(
    "the events of a webhook are found and chosen by their names",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client } = yield* TestServer
        yield* withPerson(skip, async (person) => {
          const shown = person.page.locator("dialog .inset label")
          const chosen = person.page.locator("dialog .picks [role=status]")
          await person.opens("/webhooks", "Webhooks")
          await person.click("New webhook")
          await person.fill("Name", "Billing")
          await person.fill("Address", "https://example.com/billing")
          assert.strictEqual(await chosen.textContent(), "All events")
          await person.fill("Search events", "grace period")
          assert.deepStrictEqual(await shown.allTextContents(), ["License grace period started"])
          await shown.getByTitle("license.grace_period_started").waitFor()
          await person.check("License grace period started")
          // Enter in the search does not send the form.
          await person.fill("Search events", "Floating seat")
          await person.press("Enter")
          await person.check("All floating seat events")
          assert.isTrue(await person.page.getByLabel("Floating seat checked out").isDisabled())
          await person.fill("Search events", "no such event")
          assert.strictEqual(await shown.count(), 0)
          assert.strictEqual(await chosen.textContent(), "License grace period started, All floating seat events")
          assert.deepStrictEqual(await person.violations(), [])
          await person.click("Create webhook")
          await person.page.locator(".secret").waitFor()
          await person.click("Close")
          await person.click("Leave")
          await person.isDone()
          await person.click("Billing", "link")
          await person.sees("License grace period started")
        })
        const [webhook] = (yield* client.webhooks.list({ query: {} })).items
        assert.deepStrictEqual(webhook?.event_types, ["license.grace_period_started", "lease.*"])
      }),
    minutes
  )

  it.effect(
    "what is said twice is heard twice, and a product's long name fits its list of versions, where the focus stays",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client } = yield* TestServer
        const name = "w".repeat(255)
        const { id } = yield* client.products.create({ payload: { name, code: "wide" } })
        const params = { id }
        yield* client.versions.create({ params, payload: { version: "1.0.0" } })
        yield* client.webhooks.create({ payload: { name, url: "https://hooks.example.com/wide" } })
        yield* withPerson(
          skip,
          async (person) => {
            const { page } = person
            await person.opens(`/products/${id}/versions`, "Versions")
            await person.isLoaded()
            assert.isAtMost(await person.overflow(), 0)
            await person.pick("Actions for 1.0.0", /^Delete/)
            await person.click("Delete")
            await person.isDone()
            await page.getByText("No version matches.").waitFor()
            await page.locator("#content:focus").waitFor()
            await person.opens("/webhooks", "Webhooks")
            const said = page.locator(".notices [role=status] > *")
            const switches = async (action: RegExp) => {
              await person.pick(`Actions for ${name}`, action)
              await person.click(action)
              await person.isDone()
              await said.filter({ hasText: "is switched" }).waitFor()
              assert.isAtMost(await person.overflow(), 0)
              return await said.elementHandle()
            }
            const first = await switches(/^Switch off/)
            const second = await switches(/^Switch on/)
            assert.isFalse(await first!.evaluate((before, after) => before === after, second))
          },
          { width: 360 }
        )
      }),
    minutes
  )

  it.effect(
    "a webhook whose health is not known is not said to have no deliveries",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client } = yield* TestServer
        yield* client.webhooks.create({ payload: { name: "Stock", url: "https://hooks.example.com/stock" } })
        const payload = { name: "Only webhooks", scopes: ["webhook:write"] } as const
        const { token } = yield* client["api-keys"].create({ payload })
        yield* withPerson(
          skip,
          async (person) => {
            await person.opens("/webhooks", "Webhooks")
            await rowOf(person, "Stock").waitFor()
            assert.strictEqual(await person.page.getByText("no attempts").count(), 0)
            assert.strictEqual(await person.page.getByRole("columnheader", { name: "Waiting" }).count(), 0)
          },
          { token }
        )
        yield* withPerson(skip, async (person) => {
          // The service reports on 1,000 webhooks.
          await person.page.route("**/ops/webhook-health", async (route) => {
            const response = await route.fetch()
            const { data, meta } = (await response.json()) as { readonly data: object; readonly meta: object }
            const endpoints = { total: 1_001, active: 1_001, disabled: 0 }
            await route.fulfill({ response, json: { data: { ...data, endpoints, per_endpoint: [] }, meta } })
          })
          await person.opens("/webhooks", "Webhooks")
          await person.isLoaded()
          const waiting = rowOf(person, "Stock").locator("[data-title=Waiting]")
          await waiting.filter({ hasText: "–" }).waitFor()
          assert.notInclude(await rowOf(person, "Stock").textContent(), "no attempts")
          await person.opens("/operations", "Operations")
          await person.sees("The newest 0 of 1,001 webhooks.")
        })
      }),
    minutes
  )
})
