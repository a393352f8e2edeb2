/** Screens opened in the dark or on a phone, at wrong addresses, in print, by keyboard, in two tabs; and how people sign in. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { issue } from "../../../support/http/IssuedLicenses.ts"
import { TestServer } from "../../../support/http/TestServer.ts"
import { atConsole, consoleLayer, withPerson } from "../browser/Browser.ts"
import { gate } from "../browser/Meanwhile.ts"
import { focused, stepTo } from "../browser/MenuSteps.ts"

const minutes = 10 * 60_000

layer(consoleLayer, { timeout: minutes })("The console", (it) => {
  it.effect(
    "is the same when it is opened in the dark or on a phone, not only changed to that",
    ({ skip }) =>
      Effect.gen(function* () {
        const { product_id } = yield* issue({}, { customer_name: "Barbara Liskov" })
        yield* withPerson(
          skip,
          async (person) => {
            for (const [path, heading] of [
              ["", "Overview"],
              ["/licenses", "Licenses"],
              [`/licenses/new?product_id=${product_id}`, "Issue a license"],
              ["/reports", "Usage"]
            ] as const) {
              await person.opens(path, heading)
              assert.deepStrictEqual(await person.violations(), [], heading)
              assert.strictEqual(await person.overflow(), 0, heading)
            }
          },
          { dark: true, width: 390 }
        )
      }),
    minutes
  )

  it.effect(
    "signs in with a token that the service accepts, and keeps it in memory unless asked to",
    ({ skip }) =>
      Effect.gen(function* () {
        const { adminToken, client } = yield* TestServer
        const { api_key, token } = yield* client["api-keys"].create({ payload: { name: "Deleted", scopes: ["admin"] } })
        yield* client["api-keys"].delete({ params: { id: api_key.id } })
        yield* atConsole(
          skip,
          async (person) => {
            assert.deepStrictEqual(await person.violations(), [])
            await person.fill("API token", "no token")
            await person.press("Enter")
            await person.sees("This is not an API token: copy it whole, without spaces or line breaks.")
            await person.fill("API token", "LK-EXAMP-LE000-00000-00000-00000")
            await person.press("Enter")
            await person.sees("This is a license key. The console needs an API token.")
            await person.fill("API token", token)
            await person.press("Enter")
            await person.sees("The service does not know this token.")
            // The browser itself reports the refused request.
            person.problems.length = 0
            await person.fill("API token", adminToken)
            await person.press("Enter")
            await person.seesHeading("Overview")
            assert.strictEqual(await person.page.evaluate("sessionStorage.length + localStorage.length"), 0)
            assert.strictEqual(await person.page.evaluate("document.cookie"), "")
            await person.page.reload()
            await person.seesHeading("Licensing console")
          },
          { token: "" }
        )
      }),
    minutes
  )

  it.effect(
    "is shared by two tabs in which the person stays signed in, and one sign-out ends both",
    ({ skip }) =>
      atConsole(skip, async (person) => {
        // The second tab has no token of its own.
        const other = await person.page.context().newPage()
        await other.goto(`${person.home}/customers`)
        await other.getByRole("heading", { name: "Customers", level: 1 }).waitFor()
        await other.getByRole("button", { name: "Sign out" }).click()
        await other.getByRole("heading", { name: "Licensing console" }).waitFor()
        await person.seesHeading("Licensing console")
        assert.strictEqual(await person.page.evaluate("sessionStorage.getItem('licensing.token')"), null)
        await other.close()
      }),
    minutes
  )

  for (const [how, said] of [
    ["is deleted", "The API token is unknown or revoked: use another one."],
    ["has expired", "The API key has expired: use another one."]
  ] as const)
    it.effect(
      `ends in both tabs with the reason once its API key ${how}, and goes on in both with another one`,
      ({ skip }) =>
        Effect.gen(function* () {
          const { adminToken, advance, client } = yield* TestServer
          const expires_at = Date.now() + 3_600_000
          const { api_key, token } = yield* client["api-keys"].create({
            payload: { name: how, scopes: ["admin"], expires_at }
          })
          const end = how === "has expired" ? advance(3_600) : client["api-keys"].delete({ params: { id: api_key.id } })
          yield* atConsole(
            skip,
            async (person) => {
              const { page } = person
              const other = await page.context().newPage()
              const tabs = [page, other]
              const { close, open } = await gate(person)
              await other.goto(`${person.home}/customers`)
              await other.getByRole("heading", { name: "Customers", level: 1 }).waitFor()
              await person.isLoaded()
              await close()
              await Effect.runPromise(end)
              await person.click("Licenses", "link")
              open()
              for (const tab of tabs) await tab.getByRole("alert").getByText(`You are signed out. ${said}`).waitFor()
              const asked: Array<string> = []
              for (const tab of tabs) tab.on("request", (request) => asked.push(request.url()))
              await other.getByLabel(/^Stay signed in/).check()
              await other.getByLabel("API token").fill(adminToken)
              // Neither tab tries again by itself, nor leaves its address.
              assert.deepStrictEqual(asked, [])
              assert.deepStrictEqual(
                tabs.map((tab) => tab.url()),
                [`${person.home}/licenses`, `${person.home}/customers`]
              )
              if (how === "has expired") await Effect.runPromise(advance(-3_600))
              await other.keyboard.press("Enter")
              await other.getByRole("heading", { name: "Customers", level: 1 }).waitFor()
              await person.seesHeading("Licenses")
              await other.close()
              // The browser itself reports the refused requests.
              person.problems.length = 0
            },
            { token }
          )
        }),
      minutes
    )

  it.effect(
    "leads back from an address where nothing is, and prints a license without menus and buttons",
    ({ skip }) =>
      Effect.gen(function* () {
        const { id } = yield* issue({}, { customer_name: "Katherine Johnson" })
        yield* withPerson(skip, async (person) => {
          for (const [path, noun, list] of [
            ["licenses", "license", "Licenses"],
            ["licenses/unknown/audit", "license", "Licenses"],
            ["customers", "customer", "Customers"],
            ["products", "product", "Products"],
            ["policies", "policy", "Products"],
            ["orders", "order", "Orders"],
            ["subscriptions", "subscription", "Subscriptions"],
            ["webhooks", "webhook", "Webhooks"],
            ["bulk-jobs", "bulk job", "Bulk jobs"],
            ["reports/exports", "export", "Exports"]
          ] as const) {
            await person.opens(path.includes("unknown") ? `/${path}` : `/${path}/unknown`, `There is no such ${noun}`)
            await person.click("Open the list", "link")
            await person.seesHeading(list)
          }
          await person.opens("/nowhere", "There is no such screen")
          assert.deepStrictEqual(await person.violations(), [])
          await person.opens(`/licenses/${id}`, "Katherine Johnson")
          await person.isLoaded()
          await person.page.emulateMedia({ media: "print" })
          for (const role of ["button", "navigation", "searchbox"] as const)
            assert.strictEqual(await person.page.getByRole(role).count(), 0, role)
          assert.isTrue(await person.page.getByRole("heading", { name: "Limits" }).isVisible())
          await person.opens("/reports?from=2026-01-01", "Usage")
          assert.isTrue(await person.page.getByLabel("From", { exact: true }).isVisible())
          assert.isFalse(await person.page.getByLabel("To", { exact: true }).isVisible())
          await person.page.emulateMedia({ media: null })
          // The browser itself reports what was not found.
          person.problems.length = 0
        })
      }),
    minutes
  )

  it.effect(
    "offers only what the token may do, and signs out with a sentence once it is revoked",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client } = yield* TestServer
        const { api_key, token } = yield* client["api-keys"].create({
          payload: { name: "Reader", scopes: ["license:read"] }
        })
        const { id } = yield* issue({}, { customer_name: "Grace Hopper" })
        yield* atConsole(
          skip,
          async (person) => {
            const links = await person.page
              .getByRole("navigation", { name: "Main" })
              .getByRole("link")
              .allTextContents()
            assert.deepStrictEqual(links, ["Overview", "Licenses", "Devices", "Customers"])
            await person.opens(`/licenses/${id}`, "Grace Hopper")
            assert.strictEqual(await person.page.getByRole("button", { name: "Suspend" }).count(), 0)
            await Effect.runPromise(client["api-keys"].delete({ params: { id: api_key.id } }))
            await person.page.reload()
            await person.sees("You are signed out.")
            person.problems.length = 0
          },
          { token }
        )
      }),
    minutes
  )

  it.effect(
    "says what is wrong beside its field, in words that name no field of the API",
    ({ skip }) =>
      Effect.gen(function* () {
        const { id } = yield* issue({}, { customer_name: "Alan Turing" })
        yield* withPerson(skip, async (person) => {
          await person.opens(`/licenses/${id}`, "Alan Turing")
          await person.click("Extend")
          await person.fill("Or until the end of", "2020-01-01")
          await person.press("Enter")
          const fault = person.page.locator("dialog .fault").first()
          const text = (await fault.textContent()) ?? ""
          assert.notMatch(text, /_/)
          assert.include(text, "“")
          assert.deepStrictEqual(await person.violations(), [])
          person.problems.length = 0
        })
      }),
    minutes
  )

  it.effect(
    "tells who edits a record that somebody else changed the same field meanwhile, and keeps the other's fields",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client } = yield* TestServer
        const { id } = yield* client.customers.create({ payload: { name: "Linus", code: "linus" } })
        const params = { id }
        yield* withPerson(skip, async (person) => {
          await person.opens(`/customers/${id}`, "Linus")
          await person.click("Edit")
          await Effect.runPromise(
            client.customers.update({ params, payload: { name: "Linus T.", email: "linus@example.com" } })
          )
          await person.fill("Name", "Linus Torvalds")
          await person.press("Enter")
          await person.sees("Somebody else changed this meanwhile: it is now Linus T.")
          await person.press("Enter")
          await person.isDone()
          await person.seesHeading("Linus Torvalds")
        })
        const { email, name } = yield* client.customers.get({ params })
        assert.deepStrictEqual([name, email], ["Linus Torvalds", "linus@example.com"])
      }),
    minutes
  )

  it.effect(
    "is used with the keyboard alone, and shows instants in the reader's zone, with its name and UTC on hover",
    ({ skip }) =>
      Effect.gen(function* () {
        yield* issue({}, { customer_name: "Edsger Dijkstra" })
        yield* atConsole(skip, async (person) => {
          await person.press("/")
          await person.page.keyboard.type("edsger")
          await person.press("Enter")
          await person.seesHeading("Edsger Dijkstra")
          assert.strictEqual(await person.page.evaluate("document.activeElement.id"), "content")
          await person.page.getByRole("button", { name: "More" }).focus()
          await person.press("Enter")
          await person.page.getByRole("button", { name: "Suspend" }).waitFor()
          await person.press("Escape")
          assert.strictEqual(await focused(person), "More")
          await person.press("Enter")
          await stepTo(person, "Suspend")
          await person.press("Enter")
          await person.page.locator("dialog[open]").waitFor()
          await person.press("Escape")
          await person.isDone()
          assert.strictEqual(await focused(person), "More")
          const time = person.page.locator("time").first()
          assert.match((await time.getAttribute("title")) ?? "", /GMT-[45] · .+ UTC$/)
          assert.match((await time.getAttribute("datetime")) ?? "", /Z$/)
        })
      }),
    minutes
  )
})
