/** What is shown once is not lost by one key or click. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { issue } from "../../../support/http/IssuedLicenses.ts"
import { TestServer } from "../../../support/http/TestServer.ts"
import { atConsole, consoleLayer, type Person, withPerson } from "../browser/Browser.ts"
import { held } from "../browser/Meanwhile.ts"

const minutes = 5 * 60_000

const secret = (person: Person) => person.page.locator(".secret")

const asks = async (person: Person, what: string) => {
  await person.page.getByRole("heading", { name: `Leave without ${what}?` }).waitFor({ timeout: 10_000 })
  assert.deepStrictEqual(await person.violations(), [])
  await person.click("Stay")
  assert.isTrue(await secret(person).isVisible())
}

/** The browser asks by itself; the reader stays. */
const reloadAsks = async (person: Person) => {
  const asked = person.page.waitForEvent("dialog", { timeout: 10_000 })
  await person.page.evaluate("void setTimeout(() => location.reload())")
  const dialog = await asked
  assert.strictEqual(dialog.type(), "beforeunload")
  await dialog.dismiss()
  assert.isTrue(await secret(person).isVisible())
}

/** A secret in a dialog, through all that would close it. */
const keepsInDialog = async (person: Person, what: string) => {
  await secret(person).waitFor()
  const { page } = person
  await person.press("Escape")
  await asks(person, what)
  // A click on text takes the focus away.
  await page.locator("dialog[open] h2").click()
  await person.press("Escape")
  await asks(person, what)
  // A browser closes a dialog at the second Escape whatever the page says: here that is the question only.
  const question = page.getByRole("heading", { name: `Leave without ${what}?` })
  await person.press("Escape")
  await question.waitFor()
  await person.press("Escape")
  await question.waitFor({ state: "detached" })
  assert.isTrue(await secret(person).isVisible())
  await person.click("Close")
  await asks(person, what)
  await page.mouse.click(5, 5)
  assert.isTrue(await secret(person).isVisible())
  await page.evaluate("history.back()")
  await asks(person, what)
  await reloadAsks(person)
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"])
  await person.click("Copy")
  await person.sees("Copied")
  assert.strictEqual(await page.evaluate("navigator.clipboard.readText()"), await secret(person).textContent())
  await person.press("Escape")
  await person.isDone()
}

layer(consoleLayer, { timeout: minutes })("What is shown once", (it) => {
  it.effect(
    "stays in its dialog until it is copied, or the reader agrees",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client } = yield* TestServer
        yield* issue({}, { customer_name: "Once Only" })
        yield* client.webhooks.create({ payload: { name: "Shop", url: "https://hooks.example.com/once" } })
        yield* atConsole(skip, async (person) => {
          await person.click("API keys", "link")
          await person.click("New API key")
          await person.fill("Name", "Once")
          await person.press("Enter")
          await keepsInDialog(person, "the token")
          await person.click("Webhooks", "link")
          await person.pick("Actions for Shop", "New secret for Shop")
          await person.click("Replace secret")
          await keepsInDialog(person, "the secret")
          await person.search("Once Only")
          await person.seesHeading("Once Only")
          await person.click("More")
          await person.click("New key")
          await person.click("Replace key")
          await keepsInDialog(person, "the key")
          await person.click("More")
          await person.click("New key")
          await person.click("Replace key")
          await secret(person).waitFor()
          await person.press("Escape")
          await person.click("Leave")
          await person.isDone()
        })
      }),
    minutes
  )

  it.effect(
    "is saved as a file where the browser refuses to copy it, or offers no clipboard",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client } = yield* TestServer
        const { id } = yield* client.products.create({ payload: { name: "Batch", code: "batch" } })
        yield* client.policies.create({
          params: { id },
          payload: { name: "Batch team", code: "team", license_type: "perpetual" }
        })
        yield* withPerson(
          skip,
          async (person) => {
            const copies = person.page.getByRole("button", { name: "Copy all keys" })
            const issues = async (script: string) => {
              await person.opens(`/licenses/batch?product_id=${id}`, "Issue a batch")
              await person.page.evaluate(script)
              await person.choose("Policy", "Batch team")
              await person.fill("Number of licenses", "2")
              await person.click("Issue the batch")
              await person.seesHeading("2 licenses issued")
            }
            const saves = async () => {
              const download = person.page.waitForEvent("download")
              await person.click("Save as CSV")
              await download
              await person.page.getByRole("link", { name: "Done" }).waitFor()
            }
            await issues("Clipboard.prototype.writeText = () => Promise.reject(new Error('No.')), 0")
            await copies.click()
            await person.sees("The browser refused to copy.")
            await saves()
            await issues("Object.defineProperty(navigator, 'clipboard', { value: undefined }), 0")
            assert.strictEqual(await copies.count(), 0)
            await saves()
          },
          { movesClock: true }
        )
      }),
    minutes
  )

  it.effect(
    "stays on its screen: other screens, signing out and reloading ask first",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client } = yield* TestServer
        const product = yield* client.products.create({ payload: { name: "Once", code: "once" } })
        yield* client.policies.create({
          params: { id: product.id },
          payload: { name: "Team", code: "team", license_type: "perpetual" }
        })
        yield* atConsole(skip, async (person) => {
          await person.opens("/licenses/new", "Issue a license")
          await person.choose("Product", "Once")
          await person.choose("Policy", "Team")
          await person.click("Issue")
          await person.seesHeading("The license is issued")
          await person.click("Devices", "link")
          await asks(person, "the key")
          await person.click("Sign out")
          await asks(person, "the key")
          await reloadAsks(person)
          await person.click("Open the license", "link")
          await asks(person, "the key")
          await person.click("Sign out")
          await person.click("Leave")
          await person.seesHeading("Licensing console")
        })
      }),
    minutes
  )

  it.effect(
    "is not lost by who leaves while the service still responds",
    ({ skip }) =>
      Effect.gen(function* () {
        const { product_id } = yield* issue({}, { customer_name: "Once Slow" })
        yield* withPerson(skip, async (person) => {
          const { hold, reached, release } = held()
          await person.opens(`/licenses?product_id=${product_id}`, "Licenses")
          await person.click("Once Slow", "link")
          await person.seesHeading("Once Slow")
          await person.page.route("**/rotate-key", hold)
          await person.pick("More", "New key")
          await person.click("Replace key")
          await reached
          for (const leave of [
            () => person.press("Escape"),
            () => person.click("Cancel"),
            () => person.page.evaluate("history.back()")
          ]) {
            await leave()
            await person.page.getByRole("heading", { name: "Leave without the key?" }).waitFor()
            await person.click("Stay")
          }
          release()
          await secret(person).waitFor()
          await person.click("Close")
          await person.click("Leave")
          await person.isDone()
        })
      }),
    minutes
  )
})
