/** The console of a service that has nothing yet: each screen says so, and fails nowhere. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestServer } from "../../../support/http/TestServer.ts"
import { atConsole, consoleLayer, withPerson } from "../browser/Browser.ts"

const minutes = 5 * 60_000

const screens = [
  ["", "Overview", "What you sell, such as an application."],
  ["/reports", "Usage", "Nothing was used in this period."],
  ["/reports/ledger", "Ledger", "Nothing was counted yet."],
  ["/reports/exports", "Exports", "No report has been exported yet."],
  ["/activity?action=license.create", "Activity", "Nothing matches."],
  ["/activity?feed=events&event_type=license.created", "Activity", "Nothing matches."],
  ["/products", "Products", "No products yet"],
  ["/customers", "Customers", "No customers yet"],
  ["/customers?code=none", "Customers", "No customer matches."],
  ["/devices", "Devices", "No devices yet"],
  ["/devices?status=active", "Devices", "No device matches."],
  ["/bulk-jobs", "Bulk jobs", "No bulk jobs yet"],
  ["/operations", "Operations", "There is no webhook yet."]
] as const

layer(consoleLayer, { timeout: minutes })("The console of an empty service", (it) => {
  it.effect(
    "says on each screen that nothing is there, and axe finds nothing",
    ({ skip }) =>
      Effect.gen(function* () {
        yield* withPerson(skip, async (person) => {
          for (const [path, heading, text] of screens) {
            await person.opens(path, heading)
            await person.sees(text)
            assert.deepStrictEqual(await person.violations(), [])
          }
        })
      }),
    minutes
  )

  it.effect(
    "leads from the first product to the first key in at most 12 interactions, and then to the figures",
    ({ skip }) =>
      Effect.gen(function* () {
        const { connect } = yield* TestServer
        let key = ""
        yield* atConsole(skip, async (person) => {
          const creates = async (what: string, name: string) => {
            await person.click(`Create a ${what}`)
            await person.fill("Name", name)
            await person.press("Enter")
            await person.isDone()
          }
          await creates("product", "Night Sky")
          await creates("policy", "Single")
          await creates("feature", "Export as PDF")
          await person.click("Issue a license")
          await person.fill("Customer’s name", "Ada Lovelace")
          await person.press("Enter")
          await person.sees("This is its key.")
          assert.isAtMost(person.interactions, 12)
          key = (await person.page.locator(".secret").textContent()) ?? ""
        })
        const { runtime } = yield* connect({ licenseKey: key })
        const { data } = yield* runtime.activate({ payload: { fingerprint: "m-1" } })
        assert.strictEqual(data.product_code, "night-sky")
        yield* atConsole(skip, async (person) => {
          await person.sees("Needs attention")
          await person.sees("Nothing else needs you now.")
        })
      }),
    minutes
  )
})
