/** Days that are typed into forms or follow from a period: which instants they are, also where clocks change on that day. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { issue } from "../../../support/http/IssuedLicenses.ts"
import { TestServer } from "../../../support/http/TestServer.ts"
import { consoleLayer, Person, withPerson } from "../browser/Browser.ts"

const minutes = 5 * 60_000

/** A license that starts and expires on days of a zone. */
const cases = [
  { zone: "America/New_York", on: ["2027-01-10", "2027-02-10"], are: ["2027-01-10T05:00:00Z", "2027-02-11T04:59:59Z"] },
  { zone: "Europe/Berlin", on: ["2027-03-28", "2027-10-31"], are: ["2027-03-27T23:00:00Z", "2027-10-31T22:59:59Z"] },
  // Clocks go back in the last hour of the last day: 23:59:59 comes twice.
  { zone: "America/Santiago", on: ["2027-01-10", "2027-04-03"], are: ["2027-01-10T03:00:00Z", "2027-04-04T03:59:59Z"] },
  // The first day begins at 01:00.
  { zone: "Africa/Cairo", on: ["2027-04-30", "2027-05-30"], are: ["2027-04-29T22:00:00Z", "2027-05-30T20:59:59Z"] }
] as const

layer(consoleLayer, { timeout: minutes })("A day that is typed", (it) => {
  for (const { are, on, zone } of cases)
    it.effect(
      `begins at its start and ends at its end in ${zone}, which stands beside it`,
      ({ skip }) =>
        Effect.gen(function* () {
          const { adminToken, baseUrl, client } = yield* TestServer
          const code = zone.toLowerCase().replaceAll(/[^a-z]/g, "-")
          const product = yield* client.products.create({ payload: { name: zone, code } })
          // So that the product must be chosen.
          yield* client.products.create({ payload: { name: "Another", code: `${code}-other` } })
          yield* client.policies.create({
            params: { id: product.id },
            payload: { name: "Team", code: "team", license_type: "subscription", duration_days: 30 }
          })
          yield* withPerson(skip, async ({ home, page }) => {
            const context = await page.context().browser()!.newContext({ timezoneId: zone, locale: "en-GB" })
            const person = new Person(await context.newPage(), `${baseUrl}/console`, {})
            await person.page.addInitScript(`sessionStorage.setItem("licensing.token", ${JSON.stringify(adminToken)})`)
            await person.opens("/licenses/new", "Issue a license")
            await person.choose("Product", zone)
            // The form is for one product always.
            assert.strictEqual(await person.page.getByRole("button", { name: /^Remove the filter/ }).count(), 0)
            await person.choose("Policy", "Team")
            await person.fill(/^Starts/, on[0])
            await person.fill(/^Expires/, on[1])
            await person.click("Issue")
            await person.seesHeading("The license is issued")
            const { items } = await Effect.runPromise(client.licenses.list({ query: { product_id: product.id } }))
            assert.deepStrictEqual(
              [items[0]?.starts_at, items[0]?.expires_at],
              are.map((instant) => Date.parse(instant))
            )
            await person.opens("/licenses/new", "Issue a license")
            await person.choose("Product", zone)
            const described = await person.page.getByLabel(/^Starts/).getAttribute("aria-describedby")
            const hint = person.page.locator(`[id="${described}"]`)
            assert.include(await hint.textContent(), `Time zone: ${zone}.`)
            await context.close()
            await page.goto(home)
          })
        }),
      minutes
    )

  it.effect(
    "or follows from a period is a day of the calendar: twelve months ago, also in a year of 366 days",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client } = yield* TestServer
        const { id } = yield* issue({}, { customer_name: "Ada" })
        const customer = yield* client.customers.create({ payload: { name: "Bob", code: "bob" } })
        yield* withPerson(
          skip,
          async (person) => {
            const { page } = person
            await page.clock.setFixedTime("2025-02-10T15:00:00Z")
            for (const [path, heading, others] of [
              // An audit is of a period always.
              [`/licenses/${id}/audit`, "Audit of Ada", []],
              [`/customers/${customer.id}`, "Bob", ["Any"]]
            ] as const) {
              await person.opens(path, heading)
              const period = page.getByLabel("Period", { exact: true })
              await period.waitFor()
              const offered = await period.locator("option").allTextContents()
              const unbounded = offered.filter((name) => !name.startsWith("Last "))
              assert.deepStrictEqual(unbounded, [...others])
              assert.strictEqual(await page.getByRole("button", { name: /^Remove the filter/ }).count(), 0)
              const asked = page.waitForRequest(/\/reports\/.*from=2024-/)
              await period.focus()
              await person.choose("Period", "Last 12 months")
              const from = new URL((await asked).url()).searchParams.get("from")
              assert.strictEqual(Date.parse(from!), Date.parse("2024-02-10T05:00:00Z"))
              await person.isLoaded()
              assert.strictEqual(
                await page.getByLabel("Period", { exact: true }).and(page.locator(":focus")).count(),
                1
              )
            }
          },
          { movesClock: true }
        )
      }),
    minutes
  )
})
