/** Customers with many licenses: more of them by the keyboard, one that is another's now, and one whose term has not begun. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { Receiver } from "../../support/http/MailServer.ts"
import { TestServer } from "../../support/http/TestServer.ts"
import { askForLink, linkIn, mailedPortalLayer, withCustomer } from "./Customer.ts"

const count = 52
const pageSize = 50

const prepare = Effect.fnUntraced(function* (customer_email: string) {
  const { client } = yield* TestServer
  const { id: product_id } = yield* client.products.create({ payload: { name: "Acme", code: "acme" } })
  const policy = yield* client.policies.create({
    params: { id: product_id },
    payload: {
      name: "Later",
      code: "later",
      license_type: "time_limited",
      duration_days: 30,
      duration_starts: "first_activation"
    }
  })
  const licenses = Array.from({ length: count }, () => ({ product_id, policy_id: policy.id, customer_email }))
  yield* client.licenses.createBatch({ payload: { licenses } })
  return client
})

layer(mailedPortalLayer, { timeout: 300_000 })("A customer with many licenses", (it) => {
  it.effect("reads all of them by the keyboard, and finds back from one that is another's now", ({ skip }) =>
    Effect.gen(function* () {
      const server = yield* Receiver
      const address = "pat@customer.example"
      const client = yield* prepare(address)
      yield* withCustomer(skip, async (customer) => {
        const { page } = customer
        await askForLink(customer, address)
        const { html } = await Effect.runPromise(server.next)
        await page.goto("about:blank")
        await page.goto(linkIn(html))
        await customer.click("Continue")
        await customer.seesHeading("Licenses")
        const links = page.locator("a.card")
        assert.strictEqual(await links.count(), pageSize)
        await page.getByRole("button", { name: "Show more" }).press("Enter")
        await links.nth(count - 1).waitFor()
        assert.strictEqual(await page.getByRole("button", { name: "Show more" }).count(), 0)
        assert.strictEqual(await links.nth(pageSize).and(page.locator(":focus")).count(), 1)
        await customer.isFaultless()
        await customer.press("Enter")
        await customer.seesHeading("Acme")
        await customer.sees("Known from the first use on")
        const id = new URL(page.url()).hash.slice(1)
        const transfer = client.licenses.transfer({
          params: { id },
          payload: { customer_email: "new@customer.example" }
        })
        await Effect.runPromise(transfer)
        await page.reload()
        await customer.seesHeading("This could not be loaded")
        await customer.isFaultless()
        await customer.click(/Back/, "link")
        await customer.seesHeading("Licenses")
        // The browser reports the refused request itself.
        assert.lengthOf(customer.problems.splice(0), 1)
      })
    })
  )
})
