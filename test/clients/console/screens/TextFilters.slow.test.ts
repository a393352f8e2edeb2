/** Filters by text, which an address sets: they are chips that can be removed, narrow their list, and are on paper; and their focus. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { issue } from "../../../support/http/IssuedLicenses.ts"
import { TestServer } from "../../../support/http/TestServer.ts"
import { consoleLayer, type Person, withPerson } from "../browser/Browser.ts"

const minutes = 5 * 60_000

const prepare = Effect.gen(function* () {
  const { client } = yield* TestServer
  for (const name of ["Ada", "Bob"]) {
    const code = name.toLowerCase()
    yield* client.customers.create({ payload: { name, code, email: `${code}@example.com` } })
    yield* issue(
      {},
      { customer_name: name, customer_email: `${code}@example.com`, metadata: { batch: `${name}’s fair` } }
    )
  }
})

/** Awaits that the list has Ada, and Bob only if it is not narrowed. */
const lists = async (person: Person, bob: "visible" | "detached") => {
  const row = (name: string) => person.page.getByRole("row", { name })
  await row("Ada").waitFor()
  await row("Bob").waitFor({ state: bob })
}

/** Awaits that the control with this label has the focus. */
const hasFocus = (person: Person, label: string) =>
  person.page.waitForFunction(`document.activeElement.labels?.[0]?.textContent === ${JSON.stringify(label)}`)

layer(consoleLayer, { timeout: minutes })("A filter by text", (it) => {
  it.effect(
    "keeps the focus while it is set and removed, and another filter keeps it or hands it to the next",
    ({ skip }) =>
      Effect.gen(function* () {
        yield* issue({}, { customer_name: "Focus Lens" })
        yield* withPerson(skip, async (person) => {
          const { page } = person
          const isSet = (label: string, state: "attached" | "detached") =>
            page.getByRole("button", { name: `Remove the filter ${label}` }).waitFor({ state })
          const removes = async (label: string) => {
            await person.click(`Remove the filter ${label}`)
            await isSet(label, "detached")
          }
          await person.opens("/licenses", "Licenses")
          await person.fill(/^Customer$/, "Lens")
          await person.press("Enter")
          await isSet("Customer", "attached")
          await hasFocus(person, "Customer")
          await removes("Customer")
          await hasFocus(person, "Customer")
          assert.strictEqual(await page.getByLabel(/^Customer$/).inputValue(), "")
          await person.choose("Status", "Active")
          await removes("Status")
          await hasFocus(person, "Status")
          await person.opens("/activity?request_id=req_1", "Activity")
          await person.fill(/^From$/, "2026-01-02")
          await person.press("Enter")
          await page.waitForURL(/from=2026-01-02/)
          await hasFocus(person, "From")
          await removes("Request")
          await hasFocus(person, "From")
          await person.fill(/^License$/, "Focus Lens")
          await person.press("Enter")
          await isSet("License", "attached")
          await hasFocus(person, "Customer")
          await removes("License")
          await hasFocus(person, "Customer")
        })
      }),
    minutes
  )

  it.effect(
    "that the address sets narrows the list, stands on paper, and is removed by its button",
    ({ skip }) =>
      Effect.gen(function* () {
        yield* prepare
        yield* withPerson(skip, async (person) => {
          const { page } = person
          for (const [path, heading, label, text] of [
            ["/customers?email=ada@example.com", "Customers", "E-mail", "ada@example.com"],
            ["/licenses?batch=Ada’s fair", "Licenses", "Batch", "Ada’s fair"],
            ["/licenses?q=ada@example.com", "Licenses", "Customer", "ada@example.com"]
          ] as const) {
            await person.opens(path, heading)
            await lists(person, "detached")
            const chip = page.locator(".chip.set").filter({ has: page.getByLabel(label, { exact: true }) })
            assert.strictEqual(await chip.getByRole("searchbox").inputValue(), text)
            await page.emulateMedia({ media: "print" })
            assert.isTrue(await chip.getByRole("searchbox").isVisible(), path)
            const shown = "[...document.querySelectorAll('.chip.set :is(input, label)')]"
            // A width with a fraction of a pixel is rounded.
            const isCut = "({ clientWidth, scrollWidth }) => clientWidth === 1 || scrollWidth > clientWidth + 1"
            const widths = "({ clientWidth, scrollWidth, tagName }) => [tagName, clientWidth, scrollWidth]"
            assert.deepStrictEqual(await page.evaluate(`${shown}.filter(${isCut}).map(${widths})`), [], path)
            assert.strictEqual(await page.locator(".filters .chip").filter({ visible: true }).count(), 1)
            assert.strictEqual(await page.getByRole("button").count(), 0)
            await page.emulateMedia({ media: null })
            await person.click(`Remove the filter ${label}`)
            await lists(person, "visible")
            assert.notInclude(page.url(), "=")
            await chip.waitFor({ state: "detached" })
          }
        })
      }),
    minutes
  )
})
