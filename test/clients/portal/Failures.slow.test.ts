/** What customers are told at their page when the service is not reached. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { issue } from "../../support/http/IssuedLicenses.ts"
import type { Person } from "../console/browser/Browser.ts"
import { portalLayerWith, withCustomer } from "./Customer.ts"

/** The product of a license that is issued for a test. */
const product = "P"

/** The service is not reached with these requests while `act` runs. */
const cutOff = async (customer: Person, path: string, act: () => Promise<void>) => {
  await customer.page.route(path, (route) => route.abort())
  await act()
  await customer.page.unroute(path)
  // The browser reports lost requests itself.
  assert.isNotEmpty(customer.problems.splice(0))
}

layer(portalLayerWith({ ratePortal: 0 }), { timeout: 300_000 })("A customer without a connection", (it) => {
  it.effect("is told what could not be loaded, and loads it again", ({ skip }) =>
    Effect.gen(function* () {
      const { license_key } = yield* issue()
      yield* withCustomer(skip, async (customer) => {
        await cutOff(customer, "**/portal/api/page", async () => {
          await customer.page.goto(customer.home)
          await customer.seesHeading("This could not be loaded")
          await customer.isFaultless()
        })
        await customer.click("Try again")
        await customer.seesHeading("Sign in")
        await customer.fill("License key", license_key)
        await cutOff(customer, "**/portal/api/licenses/*", async () => {
          await customer.press("Enter")
          await customer.seesHeading("This could not be loaded")
        })
        await customer.click("Try again")
        await customer.seesHeading(product)
      })
    })
  )

  it.effect("stays signed in, and knows it, until the service has answered a sign-out", ({ skip }) =>
    Effect.gen(function* () {
      const { license_key } = yield* issue()
      yield* withCustomer(skip, async (customer) => {
        await customer.page.goto(customer.home)
        await customer.fill("License key", license_key)
        await customer.press("Enter")
        await customer.seesHeading(product)
        await cutOff(customer, "**/portal/api/sign-out", async () => {
          await customer.click("Sign out")
          await customer.sees("You are still signed in")
          await customer.isFaultless()
          assert.isAtMost(await customer.overflow(), 0)
        })
        await customer.seesHeading(product)
        await customer.click("Sign out")
        await customer.seesHeading("Sign in")
      })
    })
  )

  it.effect("has no camera on that the page cannot use", ({ skip }) =>
    Effect.gen(function* () {
      const { license_key } = yield* issue()
      yield* withCustomer(skip, async (customer) => {
        const { page } = customer
        let asked = 0
        await page.exposeFunction("askForCamera", () => asked++)
        await page.addInitScript("navigator.mediaDevices.getUserMedia = async () => { await askForCamera() }")
        await page.goto(customer.home)
        await customer.fill("License key", license_key)
        await customer.press("Enter")
        await customer.click("License such a computer", "link")
        await cutOff(customer, "**/assets/*.js", async () => {
          await customer.click("Scan the code")
          await customer.sees("The camera cannot be used")
        })
        assert.strictEqual(asked, 0)
      })
    })
  )
})
