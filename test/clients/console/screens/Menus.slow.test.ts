/** Menus of screens and rows, and the dialogs that they open. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { issue } from "../../../support/http/IssuedLicenses.ts"
import { TestServer } from "../../../support/http/TestServer.ts"
import { consoleLayer, looks, type Person, withPerson } from "../browser/Browser.ts"
import { stepTo } from "../browser/MenuSteps.ts"

const minutes = 5 * 60_000

/** A license with a quota and a device. */
const prepare = Effect.fnUntraced(function* (name: string) {
  const { client } = yield* TestServer
  const license = yield* issue({}, { customer_name: name })
  const feature = yield* client.features.create({
    params: { id: license.product_id },
    payload: { name: "Proofs", code: "proofs" }
  })
  yield* client.licenses.assignFeature({
    params: { id: license.id },
    payload: { feature_id: feature.id, max_consumptions: 3 }
  })
  yield* license.runtime.activate({ payload: { fingerprint: "m-1", hostname: "laptop" } })
  return license.id
})

const topOf = async (person: Person, name: string) =>
  (await person.page.getByRole("button", { name, exact: true }).boundingBox())!.y

layer(consoleLayer, { timeout: minutes })("A menu", (it) => {
  it.effect(
    "leaves the arrows of a field to the field, though it has opened the dialog",
    ({ skip }) =>
      Effect.gen(function* () {
        const id = yield* prepare("Barbara Liskov")
        yield* withPerson(skip, async (person) => {
          await person.opens(`/licenses/${id}`, "Barbara Liskov")
          await person.page.getByRole("button", { name: "Actions for Proofs" }).focus()
          await person.press("Enter")
          await stepTo(person, "Edit")
          await person.press("Enter")
          const quota = person.page.getByLabel(/^Quota/)
          await quota.fill("7")
          await person.press("ArrowUp")
          assert.strictEqual(await quota.inputValue(), "8")
        })
      }),
    minutes
  )

  it.effect(
    "stays beside its button while the page scrolls",
    ({ skip }) =>
      Effect.gen(function* () {
        const id = yield* prepare("Frances Allen")
        yield* withPerson(
          skip,
          async (person) => {
            await person.opens(`/licenses/${id}`, "Frances Allen")
            await person.click("Actions for laptop")
            await person.page.getByRole("button", { name: "Block laptop" }).waitFor()
            const between = async () =>
              (await topOf(person, "Block laptop")) - (await topOf(person, "Actions for laptop"))
            const before = await between()
            await person.page.evaluate(
              "scrollBy(0, 40), new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))"
            )
            assert.isAbove((await person.page.evaluate("scrollY")) as number, 0)
            assert.closeTo(await between(), before, 1)
          },
          { width: 390 }
        )
      }),
    minutes
  )

  it.effect(
    "has nothing that axe finds fault with: light, dark, and on a phone",
    ({ skip }) =>
      Effect.gen(function* () {
        const id = yield* prepare("Grace Hopper")
        yield* withPerson(skip, async (person) => {
          await person.opens(`/licenses/${id}`, "Grace Hopper")
          await person.isLoaded()
          await person.click("More")
          await person.page.getByRole("button", { name: "Transfer" }).waitFor()
          await person.inLooks(looks, async (look) => {
            assert.deepStrictEqual(await person.violations(), [], JSON.stringify(look))
            const box = (await person.page.getByRole("button", { name: "Transfer" }).boundingBox())!
            assert.isAtLeast(box.x, 0)
            assert.isAtMost(box.x + box.width, look.width ?? 1280)
          })
        })
      }),
    minutes
  )

  it.effect(
    "leads to dialogs that no double click or held key answers, and that leave the focus where it was",
    ({ skip }) =>
      Effect.gen(function* () {
        const id = yield* prepare("Mary Shaw")
        yield* withPerson(skip, async (person) => {
          const { page } = person
          const sent: Array<string> = []
          page.on("request", (request) => void (request.method() === "POST" && sent.push(request.url())))
          const changes = () => sent.filter((url) => !/\/(preview|diagnose)$/.test(url))
          const dialog = page.locator("dialog[open]")
          await person.opens(`/licenses/${id}`, "Mary Shaw")
          await person.isLoaded()
          await person.click("New key")
          const answer = (await dialog.getByRole("button", { name: "Replace key" }).boundingBox())!
          await person.press("Escape")
          await person.isDone()
          const opener = page.getByRole("button", { name: "New key", exact: true })
          // At the place of the answer, as on some phones.
          const at = { position: "fixed", left: `${answer.x}px`, top: `${answer.y}px` }
          await opener.evaluate(
            (button, style) => Object.assign((button as unknown as { style: object }).style, style),
            at
          )
          await opener.dblclick()
          assert.strictEqual(await dialog.count(), 1)
          await person.press("Escape")
          await person.isDone()
          const reset = page.getByRole("button", { name: "Reset laptop" })
          await reset.focus()
          for (let repeats = 0; repeats < 3; repeats++) await page.keyboard.down("Enter")
          await page.keyboard.up("Enter")
          assert.strictEqual(await dialog.count(), 1)
          assert.deepStrictEqual(changes(), [])
          await person.click("Reset")
          await person.isDone()
          await page.locator("[aria-label='Actions for laptop']:focus").waitFor()
          await person.pick("More", "Revoke")
          await person.click("Revoke")
          await page.locator("#content:focus").waitFor()
          assert.lengthOf(changes(), 2)
        })
      }),
    minutes
  )
})
