/** The license keys that the page offers to customers with several licenses, and replaces only when they mean it. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { issue } from "../../support/http/IssuedLicenses.ts"
import { Receiver } from "../../support/http/MailServer.ts"
import { TestServer } from "../../support/http/TestServer.ts"
import type { Person } from "../console/browser/Browser.ts"
import { askForLink, linkIn, mailedPortalLayer, withCustomer } from "./Customer.ts"

const prepare = Effect.fnUntraced(function* (customer_email: string) {
  const { client } = yield* TestServer
  const issueOf = Effect.fnUntraced(function* (name: string) {
    const { id: product_id } = yield* client.products.create({ payload: { name, code: name.toLowerCase() } })
    const policy = yield* client.policies.create({
      params: { id: product_id },
      payload: { name: "Team", code: "team", license_type: "perpetual" }
    })
    return yield* client.licenses.create({ payload: { product_id, policy_id: policy.id, customer_email } })
  })
  return { press: yield* issueOf("Press"), mill: yield* issueOf("Mill") }
})

/** Opens the exchange of a license, and returns the offered key. */
const offeredKey = async ({ page }: Person, licenseId: string): Promise<string> => {
  await page.goto(`${page.url().split("#")[0]}#${licenseId}/offline`)
  const file = { name: "request.json", mimeType: "application/json", buffer: Buffer.from('{"fingerprint":"plotter"}') }
  await page.locator("input[type=file]").setInputFiles(file)
  return page.getByLabel("License key").inputValue()
}

layer(mailedPortalLayer, { timeout: 300_000 })("A customer", (it) => {
  it.effect("is offered an entered license key for its license only, and until it is replaced", ({ skip }) =>
    Effect.gen(function* () {
      const server = yield* Receiver
      const address = "pat@customer.example"
      const { mill, press } = yield* prepare(address)
      yield* withCustomer(skip, async (customer) => {
        const { page } = customer
        await askForLink(customer, address)
        const { html } = await Effect.runPromise(server.next)
        await page.goto("about:blank")
        await page.goto(linkIn(html))
        await customer.click("Continue")
        await customer.seesHeading("Licenses")
        assert.strictEqual(await offeredKey(customer, press.license.id), "")
        await customer.fill("License key", press.license_key)
        await customer.click("Create the license file")
        await page.locator("svg.code").waitFor()
        assert.strictEqual(await offeredKey(customer, mill.license.id), "")
        assert.strictEqual(await offeredKey(customer, press.license.id), press.license_key)
        await customer.click(/Back/, "link")
        await customer.click("Get a new key")
        await customer.click("Replace the key")
        await customer.sees("The new key is on its way")
        assert.strictEqual(await offeredKey(customer, press.license.id), "")
      })
    })
  )

  it.effect("is asked before the key is replaced, also by a double click and a held key", ({ skip }) =>
    Effect.gen(function* () {
      const { license_key } = yield* issue({}, { customer_email: "anna@customer.example" })
      yield* withCustomer(skip, async (customer) => {
        const { page } = customer
        const requests: Array<string> = []
        page.on(
          "request",
          (request) => void (/\/licenses\/.*\/key$/.test(request.url()) && requests.push(request.url()))
        )
        await page.goto(customer.home)
        await customer.fill("License key", license_key)
        await customer.press("Enter")
        const ask = page.getByRole("button", { name: "Get a new key" })
        const dialog = page.locator("dialog[open]")
        await ask.click()
        const answer = (await dialog.getByRole("button", { name: "Replace the key" }).boundingBox())!
        await customer.press("Escape")
        await customer.isDone()
        // At the place of the answer.
        await ask.evaluate((button, { x, y }) => {
          Object.assign((button as unknown as { style: object }).style, {
            position: "fixed",
            left: `${x}px`,
            top: `${y}px`
          })
        }, answer)
        await ask.dblclick({ position: { x: 20, y: 20 } })
        assert.strictEqual(await dialog.count(), 1)
        await customer.press("Escape")
        await customer.isDone()
        await ask.focus()
        for (let repeats = 0; repeats < 3; repeats++) await page.keyboard.down("Enter")
        await page.keyboard.up("Enter")
        assert.strictEqual(await dialog.count(), 1)
        assert.deepStrictEqual(requests, [])
        await customer.click("Replace the key")
        await customer.seesHeading("Sign in")
        assert.lengthOf(requests, 1)
      })
    })
  )
})
