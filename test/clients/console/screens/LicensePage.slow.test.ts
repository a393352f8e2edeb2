/** The page of one license: its many devices and their place above the timeline, the form that says why it does not work, and its words. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Refusals } from "../../../../src/insight/activities/Refusals.ts"
import { layerActivities } from "../../../support/http/Activities.ts"
import { issue } from "../../../support/http/IssuedLicenses.ts"
import { TestServer } from "../../../support/http/TestServer.ts"
import { Browser, type Person, withPerson } from "../browser/Browser.ts"
import { builtConsole } from "../browser/BuiltConsole.ts"

const minutes = 5 * 60_000
const activated = 7
const few = 3

/** A license with three features, and as many devices as it allows: another one was refused. */
const prepare = Effect.fnUntraced(function* (policy: Parameters<typeof issue>[0] = {}) {
  const { client } = yield* TestServer
  const license = yield* issue({ max_activations: activated, ...policy }, { customer_name: "Ada" })
  const features = [
    ["exports", "Exports as PDF"],
    ["renders", "Renders"],
    ["sso", "Single sign-on"]
  ] as const
  for (const [code, name] of features) {
    const feature = yield* client.features.create({ params: { id: license.product_id }, payload: { code, name } })
    yield* client.licenses.assignFeature({
      params: { id: license.id },
      payload: { feature_id: feature.id, max_consumptions: 10 }
    })
  }
  for (let device = 1; device <= activated; device++)
    yield* license.runtime.activate({ payload: { fingerprint: `machine-${device}`, hostname: `desk-${device}` } })
  yield* Effect.flip(license.runtime.activate({ payload: { fingerprint: "another" } }))
  return license
})

const devicesOf = (person: Person) => person.page.getByRole("table", { name: "Devices" }).locator("tbody > tr")

/** Awaits that so many devices are in sight. */
const showsDevices = (person: Person, count: number) =>
  person.page.waitForFunction(
    `[...document.querySelectorAll("table[aria-label=Devices] tbody > tr")].filter((row) => row.checkVisibility()).length === ${count}`
  )

/** What the form asks the service about a feature. */
const asksAbout = async (person: Person, feature: string) => {
  await person.fill("Feature", feature)
  const asked = person.page.waitForRequest(/\/diagnose$/)
  await person.click("Check")
  return ((await asked).postDataJSON() as { readonly feature_code?: string }).feature_code
}

/** With the worker that writes what was refused. */
const service = Layer.merge(layerActivities().pipe(Layer.provideMerge(builtConsole)), Browser.layer)

layer(service, { timeout: minutes })("The page of a license", (it) => {
  it.effect(
    "names devices in its timeline, and keeps the focus from page to page",
    ({ skip }) =>
      Effect.gen(function* () {
        const { id, runtime } = yield* issue({ max_activations: 0 }, { customer_name: "Ada" })
        for (let device = 0; device <= 20; device++)
          yield* runtime.activate({
            payload: { fingerprint: `${device}`, hostname: device ? `desk-${device}` : "oldest" }
          })
        yield* withPerson(skip, async (person) => {
          const turns = async (part: string, button: string, seen: string) => {
            const section = person.page.getByRole("region", { name: part, exact: true })
            await section.getByRole("button", { name: button, exact: true }).press("Enter")
            await section.getByText(seen).first().waitFor()
            assert.strictEqual(await section.locator("button:focus").textContent(), button)
          }
          await person.opens(`/licenses/${id}#devices`, "Ada")
          await turns("Devices", "More", "oldest")
          await person.sees(/^Device activated ?desk-20$/)
          await turns("Timeline", "Earlier", "Issued")
        })
      }),
    minutes
  )

  it.effect(
    "shows the first devices, and all to who asks for them, comes for them or prints",
    ({ skip }) =>
      Effect.gen(function* () {
        const { id } = yield* prepare()
        yield* withPerson(skip, async (person) => {
          const { page } = person
          await person.opens(`/licenses/${id}`, "Ada")
          await person.isLoaded()
          await page.setViewportSize({ width: 1440, height: 900 })
          await showsDevices(person, few)
          const { height, y } = (await page.getByRole("heading", { name: "Timeline" }).boundingBox())!
          assert.isBelow(y + height, 900)
          await page.emulateMedia({ media: "print" })
          await showsDevices(person, activated)
          await page.emulateMedia({ media: null })
          await showsDevices(person, few)
          await page.getByRole("button", { name: `Show all ${activated}` }).focus()
          await person.press("Enter")
          await showsDevices(person, activated)
          assert.deepStrictEqual(await person.violations(), [])
          await person.press("Enter")
          await showsDevices(person, few)
          await person.opens(`/licenses/${id}`, "Ada")
          await person.click("Reset a device", "link")
          await showsDevices(person, activated)
          assert.strictEqual(await devicesOf(person).count(), activated)
        })
      }),
    minutes
  )

  it.effect(
    "of a busy license fits one screen up to its timeline, and tells who has a device slot and who a seat",
    ({ skip }) =>
      Effect.gen(function* () {
        const { id, runtime } = yield* prepare({ max_floating_users: 3 })
        for (const fingerprint of ["float-1", "float-2", "float-3"])
          yield* runtime.checkout({ payload: { fingerprint } })
        yield* Effect.flip(runtime.checkout({ payload: { fingerprint: "float-4" } }))
        const use = { fingerprint: "machine-1", amount: 10 }
        yield* runtime.consume({ payload: { ...use, feature_code: "renders", event_id: "1" } })
        yield* Effect.flip(runtime.consume({ payload: { ...use, feature_code: "renders", event_id: "2" } }))
        yield* (yield* Refusals).pass
        const both = yield* issue(
          { max_activations: 2, max_floating_users: 1, borrow_days_max: 7 },
          { customer_name: "Both" }
        )
        yield* both.runtime.activate({ payload: { fingerprint: "machine-1" } })
        const until = Date.now() + 86_400_000
        yield* both.runtime.checkout({ payload: { fingerprint: "machine-1", until } })
        yield* withPerson(skip, async (person) => {
          const { page } = person
          await person.opens(`/licenses/${both.id}`, "Both")
          await person.sees("slot and seat")
          await page.getByRole("region", { name: "Floating seats" }).getByRole("button", { name: "Show all 1" }).click()
          await page.getByRole("row", { name: /borrowed$/ }).waitFor()
          await person.opens(`/licenses/${id}`, "Ada")
          await person.isLoaded()
          await page.setViewportSize({ width: 1440, height: 900 })
          await person.sees("3 of 3 in use")
          const bottomOf = async (part: string) => {
            const { height, y } = (await page.getByRole("region", { name: part, exact: true }).boundingBox())!
            return y + height
          }
          const parts = ["Why does it not work?", "Features and quotas", "Devices", "Floating seats", "About", "Limits"]
          for (const part of parts) assert.isBelow(await bottomOf(part), 900, part)
          const { height, y } = (await page.locator(".timeline > li").first().boundingBox())!
          assert.isBelow(y + height, 900)
          // The quota that is used up is among the first.
          await page.locator(".quotas > li").first().getByText("Renders").waitFor()
          assert.strictEqual(await page.locator(".refusals > li").filter({ visible: true }).count(), 2)
          await page.getByRole("region", { name: "Devices" }).getByRole("button", { name: "Show all 10" }).click()
          const places = await page.locator("table[aria-label=Devices] td:nth-child(2) small").allInnerTexts()
          assert.deepStrictEqual(places.sort(), [
            ...Array.from({ length: 3 }, () => "seat"),
            ...Array.from({ length: activated }, () => "slot")
          ])
          await page.getByRole("region", { name: "Floating seats" }).getByRole("button", { name: "Show all 3" }).click()
          await page.getByRole("table", { name: "Floating seats in use" }).getByText("float-2").waitFor()
        })
      }),
    minutes
  )

  it.effect(
    "offers one more device after a refusal only as long as the license has a limit of them",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client } = yield* TestServer
        const { id } = yield* prepare()
        yield* (yield* Refusals).pass
        const allow = (max_activations: number) =>
          client.licenses.update({ params: { id }, payload: { max_activations } })
        yield* allow(0)
        yield* withPerson(skip, async (person) => {
          const more = person.page.getByRole("button", { name: "Allow one more device" })
          await person.opens(`/licenses/${id}`, "Ada")
          await person.page.getByRole("link", { name: "Reset a device" }).waitFor()
          assert.strictEqual(await more.count(), 0)
          await Effect.runPromise(allow(activated))
          await person.page.reload()
          await more.waitFor()
        })
      }),
    minutes
  )

  it.effect(
    "offers its features by name where it is asked why it does not work, and takes the code of any other",
    ({ skip }) =>
      Effect.gen(function* () {
        const { id, runtime } = yield* prepare()
        const consumption = { fingerprint: "machine-1", feature_code: "renders", event_id: "1", amount: 11 }
        yield* withPerson(skip, async (person) => {
          const { page } = person
          await person.opens(`/licenses/${id}`, "Ada")
          await page.locator("datalist > option").nth(2).waitFor({ state: "attached" })
          const offered = await page.evaluate(
            "[...document.querySelectorAll('datalist > option')].map(({ value }) => value)"
          )
          assert.deepStrictEqual(offered, ["Exports as PDF", "Renders", "Single sign-on"])
          assert.strictEqual(await asksAbout(person, "Exports as PDF"), "exports")
          await person.sees(/^The application gets:/)
          assert.strictEqual(await asksAbout(person, "exports"), "exports")
          assert.strictEqual(await asksAbout(person, "of_later"), "of_later")
        })
        yield* Effect.flip(runtime.consume({ payload: consumption }))
        yield* (yield* Refusals).pass
        yield* withPerson(skip, async (person) => {
          const { page } = person
          await person.opens(`/licenses/${id}`, "Ada")
          await page.locator("datalist > option").nth(2).waitFor({ state: "attached" })
          assert.strictEqual(await page.getByLabel("Feature", { exact: true }).inputValue(), "Renders")
          // A new assignment had no metadata, and has none. Devices are told by their names.
          await person.opens(`/licenses/${id}/audit`, "Audit of Ada")
          await person.sees("License feature assigned")
          assert.notMatch((await page.locator("main").textContent())!, /none → none|sha256:/)
          await person.opens(`/activity?feed=events&resource_id=${id}&event_type=license.feature_assigned`, "Activity")
          await person.click("License feature assigned")
          await page.locator(".recorded").waitFor()
          assert.notInclude(await page.locator(".recorded").textContent(), "none → none")
        })
      }),
    minutes
  )

  it.effect(
    "cuts off no label of its facts, of its policy's and of the form that says why it does not work",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client } = yield* TestServer
        const { id } = yield* prepare()
        const { policy_id } = yield* client.licenses.get({ params: { id } })
        yield* withPerson(skip, async (person) => {
          for (const [path, heading, labels] of [
            [`/licenses/${id}`, "Ada", 15],
            [`/policies/${policy_id}`, "P", 15]
          ] as const) {
            await person.opens(path, heading)
            await person.isLoaded()
            for (const width of [1440, 1280, 1024, 390]) {
              await person.changesLook({ width })
              const shown = "[...document.querySelectorAll('.facts dt, .asking label')]"
              assert.isAtLeast((await person.page.evaluate(`${shown}.length`)) as number, labels)
              const cut = `${shown}.filter(({ clientWidth, scrollWidth }) => scrollWidth > clientWidth)`
              assert.deepStrictEqual(await person.page.evaluate(`${cut}.map(({ textContent }) => textContent)`), [])
            }
          }
        })
      }),
    minutes
  )

  it.effect(
    "says by the names of fields why a policy is refused, and names the features of one that it got",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client } = yield* TestServer
        const { id: product_id } = yield* client.products.create({ payload: { name: "Suite", code: "suite" } })
        const params = { id: product_id }
        const policy = (name: string, terms: { license_type: "perpetual" | "time_limited"; duration_days?: number }) =>
          client.policies.create({ params, payload: { name, code: name.toLowerCase(), ...terms } })
        const owned = yield* policy("Owned", { license_type: "perpetual" })
        yield* policy("Yearly", { license_type: "time_limited" })
        const studio = yield* policy("Studio", { license_type: "time_limited", duration_days: 365 })
        const feature = yield* client.features.create({ params, payload: { code: "sso", name: "Single sign-on" } })
        yield* client.policies.setFeature({
          params: { id: studio.id, feature_id: feature.id },
          payload: { max_consumptions: 5_000 }
        })
        const given = { product_id, policy_id: owned.id, customer_name: "Ada" }
        const { id } = (yield* client.licenses.create({ payload: given })).license
        const fault =
          "A license of the type time limited needs an expiry: give “Expires at the end of”, or use a policy with “Days of a license’s term”."
        yield* withPerson(skip, async (person) => {
          await person.opens(`/licenses/${id}`, "Ada")
          await person.click("Change policy")
          await person.choose("New policy", "Yearly")
          await person.sees(`This would be refused. ${fault}`)
          await person.click("Change policy")
          await person.page.locator("dialog .fault", { hasText: fault }).waitFor()
          await person.choose("New policy", "Studio")
          await person.click("Change policy")
          await person.isDone()
          const entry = person.page.locator(".timeline > li", { hasText: "Policy changed" })
          await entry
            .getByText(/Single sign-on included yes, quota 5,000, license type perpetual → time limited/)
            .waitFor()
          assert.notInclude(await entry.textContent(), "sso")
          await person.opens(`/licenses/${id}/audit`, "Audit of Ada")
          await person.sees(/^Single sign-on:/)
          // The browser itself reports the refused request.
          person.problems.length = 0
        })
      }),
    minutes
  )
})
