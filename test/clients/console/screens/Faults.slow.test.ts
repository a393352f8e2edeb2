/** What the reader has in hand stays when something fails, and nobody gets what belongs to somebody else. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { Route } from "playwright-core"
import { issue } from "../../../support/http/IssuedLicenses.ts"
import { TestServer } from "../../../support/http/TestServer.ts"
import { atConsole, consoleLayer, type Person, withPerson } from "../browser/Browser.ts"

const minutes = 5 * 60_000
const dayMillis = 86_400_000
const unreachable = "The service cannot be reached"

const notices = (person: Person) => person.page.getByRole("region", { name: "Notices" })

const main = (person: Person) =>
  person.page.getByRole("navigation", { name: "Main" }).getByRole("link").allTextContents()

/** The browser itself reports requests that failed. */
const forgetProblems = (person: Person) => person.problems.splice(0)

/** Lets the service do what is asked, and loses its response. */
const losing = async (route: Route) => {
  await route.fetch()
  await route.abort()
}

const customer = (code: string) =>
  Effect.gen(function* () {
    const { client } = yield* TestServer
    const { id } = yield* client.customers.create({ payload: { code, name: "Ada", email: "ada@example.com" } })
    const params = { id }
    return {
      id,
      rename: (name: string) => Effect.runPromise(client.customers.update({ params, payload: { name } })),
      now: client.customers.get({ params })
    }
  })

const renames = async (person: Person, name: string) => {
  await person.click("Edit")
  await person.fill("Name", name)
  await person.press("Enter")
  await person.isDone()
  await notices(person).getByText("The change is saved.").waitFor()
}

layer(consoleLayer, { timeout: minutes })("At the console", (it) => {
  it.effect(
    "a key that is shown once stays while the service cannot be reached, and the fault goes by itself",
    ({ skip }) =>
      withPerson(skip, async (person) => {
        await person.opens("/api-keys", "API keys")
        await person.click("New API key")
        await person.fill("Name", "Nightly")
        const failing = [/\/api\/v1\/me$/, /\/api\/v1\/api-keys\?/]
        for (const path of failing) await person.page.route(path, (route) => route.abort())
        await person.press("Enter")
        const secret = person.page.locator(".secret")
        const token = await secret.textContent()
        assert.match(token ?? "", /^lsm_/)
        await person.page.locator(".failed", { hasText: unreachable }).first().waitFor({ state: "attached" })
        assert.strictEqual(await secret.textContent(), token)
        await person.click("Close")
        await person.click("Leave")
        await person.isDone()
        await person.seesHeading("API keys")
        assert.include(await main(person), "API keys")
        assert.deepStrictEqual(await person.violations(), [])
        await person.page.unroute(failing[0]!)
        await person.page.locator("#content > .loaded > .row > .failed").first().waitFor({ state: "detached" })
        await person.page.unroute(failing[1]!)
        await person.page.getByRole("button", { name: "Try again" }).first().click()
        await person.page.getByRole("row", { name: /^Nightly/ }).waitFor()
        await person.page.locator(".failed").first().waitFor({ state: "detached" })
        forgetProblems(person)
      }),
    minutes
  )

  it.effect(
    "a token for some products is not offered what is about all of them",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client } = yield* TestServer
        const { product_id } = yield* issue()
        const scopes = ["license:read", "license:write", "product:read", "product:write", "webhook:write", "ops:read"]
        const tokenOf = (product_ids?: ReadonlyArray<string>) =>
          Effect.map(
            client["api-keys"].create({
              payload: { name: "Reseller", scopes: scopes as never, ...(product_ids && { product_ids }) }
            }),
            ({ token }) => token
          )
        const offered = async (person: Person) => {
          const places = await main(person)
          const news: Array<boolean> = []
          for (const [path, heading] of [
            ["/products", "Products"],
            ["/customers", "Customers"]
          ] as const) {
            await person.opens(path, heading)
            await person.isLoaded()
            news.push(await person.page.getByRole("button", { name: /^New (product|customer)$/ }).isVisible())
          }
          return [places.includes("Webhooks"), places.includes("Operations"), ...news]
        }
        yield* atConsole(
          skip,
          async (person) => assert.deepStrictEqual(await offered(person), [true, true, true, true]),
          { token: yield* tokenOf() }
        )
        yield* atConsole(
          skip,
          async (person) => {
            await person.sees("Licenses")
            assert.deepStrictEqual(await offered(person), [false, false, false, false])
            await person.opens(`/products/${product_id}`, "P")
            await person.page.getByRole("button", { name: "New policy" }).waitFor()
          },
          { token: yield* tokenOf([product_id]) }
        )
      }),
    minutes
  )

  it.effect(
    "a license is extended once although the response was lost and the reader clicks again",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client } = yield* TestServer
        const { expires_at, id } = yield* issue({}, { customer_name: "Ada" })
        yield* withPerson(skip, async (person) => {
          await person.opens(`/licenses/${id}`, "Ada")
          await person.click("Extend")
          await person.fill("Days to add", "30")
          const renewals = `**/api/v1/licenses/${id}/renew`
          await person.page.route(renewals, losing)
          await person.click("Extend")
          await person.sees(unreachable)
          await person.page.unroute(renewals)
          await person.click("Extend")
          await person.isDone()
          await notices(person).getByText("The license is extended.").waitFor()
          const found = await Effect.runPromise(client.licenses.get({ params: { id } }))
          assert.strictEqual(found.expires_at, expires_at + 30 * dayMillis)
          // Another dialog is another extension.
          await person.click("Extend")
          await person.fill("Days to add", "30")
          await person.click("Extend")
          await person.isDone()
          forgetProblems(person)
        })
        const found = yield* client.licenses.get({ params: { id } })
        assert.strictEqual(found.expires_at, expires_at + 60 * dayMillis)
      }),
    minutes
  )

  it.effect(
    "an edit whose response was lost is no change of somebody else, and is undone as a whole",
    ({ skip }) =>
      Effect.gen(function* () {
        const { id, now, rename } = yield* customer("lost")
        yield* withPerson(skip, async (person) => {
          const path = `**/api/v1/customers/${id}`
          const edits = async (name: string) => {
            await person.click("Edit")
            await person.fill("Name", name)
            await person.page.route(path, (route) =>
              route.request().method() === "PATCH" ? losing(route) : route.continue()
            )
            await person.click("Save")
            await person.page.locator("dialog[open]").getByText(unreachable).waitFor()
            await person.page.unroute(path)
          }
          const undoes = async (earlier: string) => {
            await person.isDone()
            await person.click("Undo")
            await notices(person).getByText("Undone.").waitFor()
            await person.seesHeading(earlier)
          }
          await person.opens(`/customers/${id}`, "Ada")
          await edits("Ada L.")
          await person.click("Save")
          await undoes("Ada")
          await edits("Ada Lovlace")
          await person.fill("Name", "Ada Lovelace")
          await person.click("Save")
          await undoes("Ada")
          await edits("Ada King")
          await rename("Countess")
          await person.click("Save")
          await person.sees("it is now Countess")
          await person.click("Save")
          await undoes("Countess")
          forgetProblems(person)
        })
        assert.strictEqual((yield* now).name, "Countess")
      }),
    minutes
  )

  it.effect(
    "an undo gives back what a colleague had saved while the form was open, also at a second try",
    ({ skip }) =>
      Effect.gen(function* () {
        const { id, now, rename } = yield* customer("undone")
        yield* withPerson(skip, async (person) => {
          await person.opens(`/customers/${id}`, "Ada")
          await person.click("Edit")
          await person.fill("Name", "Ada Lovelace")
          await rename("Countess")
          await person.click("Save")
          await person.sees("it is now Countess")
          assert.strictEqual(await person.page.evaluate("document.activeElement.name"), "name")
          await person.click("Save")
          await person.isDone()
          await person.seesHeading("Ada Lovelace")
          const path = `**/api/v1/customers/${id}`
          await person.page.route(path, (route) => route.abort())
          await person.click("Undo")
          await notices(person).getByText("Not undone.").waitFor()
          await person.page.unroute(path)
          await person.click("Undo")
          await notices(person).getByText("Undone.").waitFor()
          await person.seesHeading("Countess")
          forgetProblems(person)
        })
        assert.strictEqual((yield* now).name, "Countess")
      }),
    minutes
  )

  it.effect(
    "who signs in next in the same tab sees and undoes nothing of who was there before",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client } = yield* TestServer
        const { id } = yield* customer("private")
        const { token } = yield* client["api-keys"].create({ payload: { name: "Next", scopes: ["license:read"] } })
        yield* withPerson(skip, async (person) => {
          await person.opens(`/customers/${id}`, "Ada")
          await renames(person, "Ada Private")
          await person.seesHeading("Ada Private")
          const release = Promise.withResolvers<void>()
          await person.click("Sign out")
          await person.seesHeading("Licensing console")
          await person.page.route(`**/api/v1/customers/${id}`, (route) => release.promise.then(() => route.continue()))
          await person.fill("API token", token)
          await person.press("Enter")
          await person.page.locator("#content .waiting").first().waitFor()
          assert.notInclude(await person.page.locator("body").textContent(), "Ada Private")
          assert.strictEqual(await notices(person).textContent(), "")
          assert.notInclude(await main(person), "API keys")
          release.resolve()
          await person.seesHeading("Ada Private")
        })
      }),
    minutes
  )

  it.effect(
    "metrics, counts and exports that cannot be read say so",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client } = yield* TestServer
        const made = yield* client.reports.createExport({ payload: { report_kind: "usage-summary" } })
        yield* withPerson(skip, async (person) => {
          await person.page.route("**/metrics", (route) => route.abort())
          await person.opens("/operations", "Operations")
          await person.sees("Its metrics could not be read")
          await person.page.unroute("**/metrics")
          await person.sees("Requests a second")
          await person.page.getByText("Its metrics could not be read").waitFor({ state: "detached" })
          const totals = /\/api\/v1\/licenses\?.*include_total/
          await person.page.route(totals, (route) => route.abort())
          await person.opens("", "Overview")
          await person.sees("Could not be counted")
          assert.deepStrictEqual(await person.violations(), [])
          await person.page.unroute(totals)
          let asked = 0
          await person.page.route(`**/exports/${made.id}`, async (route) => {
            if (route.request().resourceType() === "document") return await route.continue()
            const response = await route.fetch({ ...(++asked === 1 ? {} : { url: `${route.request().url()}x` }) })
            const json = (await response.json()) as { readonly data: object }
            if (asked > 1) return await route.fulfill({ response })
            await route.fulfill({ response, json: { ...json, data: { ...json.data, status: "pending" } } })
          })
          await person.opens(`/reports/exports/${made.id}`, "Export: usage summary")
          await person.page.locator("#content .failed code").waitFor()
          forgetProblems(person)
        })
      }),
    minutes
  )
})
