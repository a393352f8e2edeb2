/** What customers are told after what they have done, also by a screen reader. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { issue } from "../../support/http/IssuedLicenses.ts"
import { TestServer } from "../../support/http/TestServer.ts"
import { Person } from "../console/browser/Browser.ts"
import { portalLayerWith, withCustomer } from "./Customer.ts"

const laptop = "laptop".repeat(30)

const focused = ({ page }: Person) => page.evaluate("document.activeElement.textContent") as Promise<string>

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

layer(portalLayerWith({ ratePortal: 0 }), { timeout: 300_000 })("A customer is told", (it) => {
  it.effect("that each of two devices with the same name is deactivated", ({ skip }) =>
    Effect.gen(function* () {
      const { connect } = yield* TestServer
      const { license_key } = yield* issue({ max_activations: 3 })
      const { runtime } = yield* connect({ licenseKey: license_key })
      for (const fingerprint of ["a", "b"]) yield* runtime.activate({ payload: { fingerprint, hostname: laptop } })
      yield* withCustomer(skip, async (customer) => {
        await signIn(customer, license_key)
        assert.isAtLeast(await customer.page.getByRole("status").count(), 1, "known before it says something")
        for (const left of [1, 0]) {
          await customer.click(`Deactivate ${laptop}`)
          await customer.click("Deactivate")
          await customer.sees(`${left} of 3 devices in use`)
          assert.strictEqual(await focused(customer), `${laptop} is deactivated.`)
          assert.isAtMost(await customer.overflow(), 0)
        }
      })
    })
  )

  it.effect("why a request was refused, until another one is chosen", ({ skip }) =>
    Effect.gen(function* () {
      const { license_key } = yield* issue({ allow_offline_activation: true })
      yield* withCustomer(skip, async (customer) => {
        const { page } = customer
        await signIn(customer, license_key)
        await customer.click("License such a computer", "link")
        await page.locator("input[type=file]").setInputFiles(requestOf("Mill", "another"))
        await customer.click("Create the license file")
        await customer.sees("The request is of another product")
        assert.lengthOf(customer.problems.splice(0), 1)
        await page.locator("input[type=file]").setInputFiles(requestOf(laptop, "another"))
        await customer.sees(`Request of ${laptop}`)
        assert.strictEqual(await page.getByRole("alert").count(), 0)
        assert.isAtMost(await customer.overflow(), 0)
      })
    })
  )
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
