/** What customers are told after what they have done, also by a screen reader. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { issue } from "../../support/http/IssuedLicenses.ts"
import { Person } from "../console/browser/Browser.ts"
import { portalLayerWith, withCustomer } from "./Customer.ts"

const signIn = async (customer: Person, licenseKey: string) => {
  await customer.page.goto(customer.home)
  await customer.fill("License key", licenseKey)
  await customer.press("Enter")
  await customer.seesHeading("P")
}

const requestOf = (fingerprint: string, product_code: string) => ({
  name: "request.json",
  mimeType: "application/json",
  buffer: Buffer.from(JSON.stringify({ fingerprint, product_code, hostname: fingerprint }))
})

layer(portalLayerWith({ ratePortal: 0 }), { timeout: 300_000 })("A customer with two tabs", (it) => {
  it.effect("leaves nothing in one after the other signed out, and has the license of the last sign-in", ({ skip }) =>
    Effect.gen(function* () {
      const [first, second] = [yield* issue({ allow_offline_activation: true }), yield* issue()]
      yield* withCustomer(skip, async (customer) => {
        const { page } = customer
        await signIn(customer, first.license_key)
        await customer.click("License such a computer", "link")
        await page.locator("input[type=file]").setInputFiles(requestOf("Mill", "any"))
        assert.strictEqual(await page.getByLabel("License key").inputValue(), first.license_key)
        const other = new Person(await page.context().newPage(), customer.home, { width: 390 })
        await other.page.goto(customer.home)
        await other.seesHeading("P")
        await other.click("Sign out")
        await customer.sees("You were signed out")
        assert.strictEqual(await page.getByLabel("License key").inputValue(), "")
        await signIn(other, second.license_key)
        await customer.click(/Back/, "link")
        await customer.sees(`Key ending in ${second.license_key.slice(-4)}`)
        assert.deepStrictEqual(other.problems, [])
      })
    })
  )
})
