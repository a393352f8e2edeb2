/** A list that is sorted by the heading of a column, over a slow network. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { consoleLayer, withPerson } from "../browser/Browser.ts"
import { forgive, held, prepare } from "../browser/Meanwhile.ts"
import { focused } from "../browser/MenuSteps.ts"

const minutes = 5 * 60_000

layer(consoleLayer, { timeout: minutes })("A list that is sorted", (it) => {
  it.effect(
    "keeps its rows and the focus until it is there in the new order, and says if it cannot be read",
    ({ skip }) =>
      Effect.gen(function* () {
        const { product } = yield* prepare(2)
        yield* withPerson(skip, async (person) => {
          await person.opens(`/licenses?product_id=${product.id}`, "Licenses")
          await person.isLoaded()
          const expires = person.page.getByRole("columnheader").getByRole("link", { name: /^Expires/ })
          const order = () => person.page.locator("th[aria-sort]").allTextContents()
          const by = (sort: string) => (url: URL) => url.searchParams.get("sort") === sort
          assert.deepStrictEqual(await order(), ["Issued ↓"])
          const { hold, reached, release } = held()
          await person.page.route(by("-expires_at"), hold)
          await expires.focus()
          await person.press("Enter")
          await reached
          await person.page.locator("[aria-busy=true] tbody").waitFor()
          assert.match(String(await focused(person)), /^Expires/)
          // The rows are those from before, and so is their order.
          assert.deepStrictEqual(await order(), ["Issued ↓"])
          release()
          await expires.getByText("↓").waitFor()
          assert.match(String(await focused(person)), /^Expires/)
          assert.deepStrictEqual(await order(), ["Expires ↓"])
          await person.page.route(by("expires_at"), (route) => route.abort())
          await person.press("Enter")
          await person.sees(/The service cannot be reached/)
          assert.strictEqual(await person.page.locator("tbody tr").count(), 0)
          forgive(person)
        })
      }),
    minutes
  )
})
