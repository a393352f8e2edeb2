/** Refunds of orders, at the console: a daily task, done in at most five interactions from the overview. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { consoleLayer, withPerson } from "../browser/Browser.ts"
import { become, prepareOrder, withOrder } from "../browser/Purchase.ts"

const interactionsMax = 5
const minutes = 5 * 60_000

layer(consoleLayer, { timeout: minutes })("At the console", (it) => {
  const test = (name: string, ...story: Parameters<typeof withOrder>) => it.effect(name, withOrder(...story), minutes)

  test(
    "an order is found by its number and refunded, and its license suspended",
    async (person, { name, number }) => {
      await person.opens("", "Overview")
      await person.search(number)
      await person.seesHeading(name)
      await person.click(`Refund order ${number}`)
      await person.sees("No money moves here: return it in stripe.")
      await person.sees("1 license is linked to it.")
      await person.click("Refund")
      await person.isDone()
      await person.sees(/^Suspended$/)
      assert.isAtMost(person.interactions, interactionsMax)
    },
    become("refunded", "suspended")
  )

  test(
    "an order is found by its customer's e-mail and refunded, and its license revoked",
    async (person, { email, name, number }) => {
      await person.opens("", "Overview")
      await person.search(email)
      await person.seesHeading(name)
      await person.click(`Refund order ${number}`)
      await person.choose("Its licenses", "Revoke")
      await person.click("Refund")
      await person.isDone()
      await person.sees(/^Revoked$/)
      assert.isAtMost(person.interactions, interactionsMax)
    },
    become("refunded", "revoked")
  )

  test("an order without a license is found by its number and refunded", async (person, { client, product }) => {
    const external_id = `free-${product.code}`
    const payload = { external_system: "shop", external_id, status: "fulfilled" } as const
    const { id } = await Effect.runPromise(client.commerce.createOrder({ params: { id: product.id }, payload }))
    await person.opens("", "Overview")
    await person.search(external_id)
    await person.seesHeading(`Order ${external_id}`)
    await person.click(`Refund order ${external_id}`)
    await person.sees("No license is linked to it.")
    await person.click("Refund")
    await person.isDone()
    assert.isAtMost(person.interactions, interactionsMax)
    const { status } = await Effect.runPromise(client.commerce.getOrder({ params: { id } }))
    assert.strictEqual(status, "refunded")
    // What is refunded is not refunded again.
    await person.page.getByRole("button", { name: /^Refund/ }).waitFor({ state: "detached" })
  })

  test("who has changed the status of an order is not told that somebody else did, and refunds it", async (person, {
    client,
    number,
    order: { id }
  }) => {
    await person.opens(`/orders/${id}`, `Order ${number}`)
    await person.click("Change status")
    await person.choose("Status", "Fulfilled")
    await person.click("Change status")
    await person.isDone()
    await person.page.locator(".about").getByText("Fulfilled").waitFor()
    await person.click(`Refund order ${number}`)
    await person.click("Refund")
    await person.isDone()
    const { status } = await Effect.runPromise(client.commerce.getOrder({ params: { id } }))
    assert.strictEqual(status, "refunded")
  })

  test(
    "who refunds an order is told that somebody else canceled it meanwhile",
    async (person, { client, number, order: { id } }) => {
      await person.opens(`/orders/${id}`, `Order ${number}`)
      await person.click(`Refund order ${number}`)
      await Effect.runPromise(client.commerce.updateOrder({ params: { id }, payload: { status: "canceled" } }))
      await person.click("Refund")
      await person.sees("Somebody else changed this order meanwhile: it is now canceled.")
      assert.deepStrictEqual(await person.violations(), [])
      const { status } = await Effect.runPromise(client.commerce.getOrder({ params: { id } }))
      assert.strictEqual(status, "canceled")
      await person.click("Refund")
      await person.isDone()
    },
    become("refunded", "suspended")
  )

  test(
    "who refunds an order is told which licenses could not be suspended",
    async (person, { license, number, order }) => {
      await person.opens(`/orders/${order.id}`, `Order ${number}`)
      await person.page.route("**/suspend", (route) => route.abort())
      await person.click(`Refund order ${number}`)
      await person.click("Refund")
      await person.sees("The order is refunded. These licenses could not be changed:")
      await person.sees(`…${license.license_key_last4}`)
      assert.deepStrictEqual(await person.violations(), [])
      await person.click("Close")
      await person.isDone()
      // The browser itself reports the requests that failed.
      person.problems.length = 0
    },
    become("refunded", "active")
  )

  it.effect(
    "a token that may not change orders sees them without actions, and one that may not change licenses refunds alone",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client, license, number, order } = yield* prepareOrder
        const tokenWith = (...scopes: ReadonlyArray<"product:read" | "product:write" | "license:read">) =>
          Effect.map(client["api-keys"].create({ payload: { name: "Sales", scopes } }), ({ token }) => token)
        yield* withPerson(
          skip,
          async (person) => {
            await person.opens(`/orders/${order.id}`, `Order ${number}`)
            assert.strictEqual(await person.page.getByRole("button", { name: /Refund|Edit|Change/ }).count(), 0)
          },
          { token: yield* tokenWith("product:read") }
        )
        yield* withPerson(
          skip,
          async (person) => {
            await person.opens(`/orders/${order.id}`, `Order ${number}`)
            await person.click(`Refund order ${number}`)
            assert.strictEqual(await person.page.getByLabel("Its licenses").count(), 0)
            await person.click("Refund")
            await person.isDone()
          },
          { token: yield* tokenWith("product:read", "product:write", "license:read") }
        )
        assert.strictEqual((yield* client.licenses.get({ params: { id: license.id } })).status, "active")
      }),
    minutes
  )
})
