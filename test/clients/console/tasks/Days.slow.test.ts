/** Days that are typed into forms or follow from a period: which instants they are, also where clocks change on that day. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { PolicyCreate } from "../../../../src/vendor/policies/Policy.ts"
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

const issuePerpetual = Effect.gen(function* () {
  const { client } = yield* TestServer
  const product = yield* client.products.create({ payload: { name: "Own", code: "own" } })
  const policy = yield* client.policies.create({
    params: { id: product.id },
    payload: { name: "Own", code: "own", license_type: "perpetual" }
  })
  return yield* client.licenses.create({
    payload: { product_id: product.id, policy_id: policy.id, customer_name: "Ada" }
  })
})

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

  it.effect(
    "or a number, is not taken for an emptied one while only a part of it is there",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client } = yield* TestServer
        const { id, policy_id, product_id } = (yield* issuePerpetual).license
        const own = { max_activations: 5, maintenance_expires_at: Date.parse("2031-05-17T12:00:00Z") }
        yield* client.licenses.update({ params: { id }, payload: own })
        yield* withPerson(skip, async (person) => {
          /** Types into a field, whose old value stays in parts, and sends the form. */
          const isRefused = async (label: string, key: string, send: string) => {
            await person.page.locator("dialog").getByLabel(label, { exact: true }).focus()
            await person.page.keyboard.press(key)
            await person.click(send)
            await person.sees("This is not complete, or no valid value: correct or clear it.")
            assert.strictEqual(await person.page.locator("[aria-invalid=true]:focus").count(), 1)
          }
          await person.opens(`/licenses/${id}`, "Ada")
          await person.click("Edit")
          await isRefused("Updates until the end of", "Backspace", "Save")
          await person.press("Escape")
          await person.isDone()
          await person.click("Change limits")
          await isRefused("Devices", "e", "Change limits")
          await person.opens(`/licenses/new?product_id=${product_id}`, "Issue a license")
          await person.choose("Policy", "Own")
          await person.page.getByLabel(/^Starts/).focus()
          await person.press("3")
          await person.click("Issue")
          await person.sees("This is not complete, or no valid value: correct or clear it.")
        })
        const { maintenance_expires_at, max_activations } = yield* client.licenses.get({ params: { id } })
        assert.deepStrictEqual({ max_activations, maintenance_expires_at }, own)
        const { items } = yield* client.licenses.list({ query: { policy_id } })
        assert.lengthOf(items, 1)
      }),
    minutes
  )

  it.effect(
    "or follows from the first use of a license is not said to be never before that",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client } = yield* TestServer
        const product = yield* client.products.create({ payload: { name: "Later", code: "later" } })
        const issueUnder = Effect.fnUntraced(function* (
          terms: Pick<typeof PolicyCreate.Type, "license_type" | "duration_days" | "duration_starts">
        ) {
          const code = terms.license_type.replace("_", "-")
          const policy = yield* client.policies.create({
            params: { id: product.id },
            payload: { name: code, code, ...terms }
          })
          const customer_name = `Owner of ${code}`
          const payload = { product_id: product.id, policy_id: policy.id, customer_name }
          return [(yield* client.licenses.create({ payload })).license.id, customer_name] as const
        })
        const owned = yield* issueUnder({ license_type: "perpetual" })
        const pending = yield* issueUnder({
          license_type: "time_limited",
          duration_days: 30,
          duration_starts: "first_activation"
        })
        yield* withPerson(skip, async (person) => {
          await person.opens(`/licenses?product_id=${product.id}`, "Licenses")
          for (const [[, name], expiry] of [
            [owned, "never"],
            [pending, "set at first use"]
          ] as const)
            await person.page.getByRole("row", { name }).getByRole("cell", { name: expiry, exact: true }).waitFor()
          await person.opens(`/licenses/${owned[0]}`, owned[1])
          await person.sees("never expires")
          await person.opens(`/licenses/${pending[0]}`, pending[1])
          await person.sees("its term begins with its first use")
          assert.strictEqual(await person.page.getByText(/never/).count(), 0)
        })
      }),
    minutes
  )
})
