/** Where the focus is after another page of a list. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { consoleLayer, withPerson } from "../browser/Browser.ts"
import { prepare } from "../browser/Meanwhile.ts"

const minutes = 5 * 60_000

layer(consoleLayer, { timeout: minutes })("Another page", (it) => {
  it.effect(
    "of a list begins at the top of the screen, and the arrow keys move in its rows",
    ({ skip }) =>
      Effect.gen(function* () {
        const { product } = yield* prepare(102)
        yield* withPerson(skip, async (person) => {
          const { page } = person
          const rows = page.locator("tbody tr")
          await person.opens(`/licenses?product_id=${product.id}`, "Licenses")
          for (const [link, count] of [
            ["Next page", 2],
            ["First page", 100]
          ] as const) {
            await page.getByRole("link", { name: link }).press("Enter")
            await page.waitForFunction(`document.querySelectorAll("tbody tr").length === ${count}`)
            assert.strictEqual(await page.locator(":focus").getAttribute("id"), "content")
            await person.press("ArrowDown")
            assert.strictEqual(await rows.first().and(page.locator(":focus")).count(), 1)
          }
        })
      }),
    minutes
  )

  it.effect(
    "of a part of a screen leaves the focus on its button",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client, product } = yield* prepare(0)
        const { id } = yield* client.commerce.createOrder({
          params: { id: product.id },
          payload: { external_system: "shop", external_id: "1", status: "paid" }
        })
        for (let change = 2; change <= 22; change++)
          yield* client.commerce.updateOrder({ params: { id }, payload: { external_id: `${change}` } })
        yield* withPerson(skip, async (person) => {
          const history = person.page.getByRole("region", { name: "History" })
          await person.opens(`/orders/${id}`, "Order 22")
          await history.getByRole("button", { name: "Earlier" }).press("Enter")
          await history.getByText("Order created").waitFor()
          assert.strictEqual(await person.page.locator("button:focus").textContent(), "Earlier")
        })
      }),
    minutes
  )
})
