/** The console's feeds: new entries appear by themselves, unless somebody reads further down or the tab is hidden. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { issue } from "../../../support/http/IssuedLicenses.ts"
import { TestServer } from "../../../support/http/TestServer.ts"
import { atConsole, consoleLayer, looks, type Person, withPerson } from "../browser/Browser.ts"

const minutes = 5 * 60_000

let customers = 0

const addCustomer = Effect.flatMap(TestServer, ({ client }) => {
  const code = `c-${++customers}`
  return client.customers.create({ payload: { name: `Customer ${customers}`, code } })
})

/** Counts the requests of a feed. */
const countRequests = (person: Person) => {
  const counted = { requests: 0 }
  person.page.on("request", (request) => {
    if (/\/api\/v1\/(activities|events)\?/.test(request.url())) counted.requests++
  })
  return counted
}

const hide = (state: "hidden" | "visible") =>
  `Object.defineProperty(document, "visibilityState", { value: "${state}", configurable: true });
   document.dispatchEvent(new Event("visibilitychange"))`

layer(consoleLayer, { timeout: minutes })("The activity screen", (it) => {
  it.effect(
    "shows a new entry without a reload, announces it, and opens it to its facts",
    ({ skip }) =>
      Effect.gen(function* () {
        const services = yield* Effect.context<TestServer>()
        const add = () => Effect.runPromiseWith(services)(addCustomer)
        yield* atConsole(skip, async (person) => {
          await person.click("Activity", "link")
          await person.seesHeading("Activity")
          await person.sees("Live: new entries appear by themselves.")
          const { id } = await add()
          await person.page.getByRole("status").getByText("1 new entry since you opened it.").waitFor()
          await person.click("Customer created")
          await person.page.locator(`a[title="${id}"]`).first().waitFor()
          await person.sees("Paused while you read.")
          // The event has what was recorded.
          await person.page.locator(".recorded").getByText("Customer 1", { exact: true }).waitFor()
          assert.match(person.page.url(), /open=\d+/)
          const number = person.page.locator(".opened a").filter({ hasText: /^\d+$/ })
          const sequence = await number.textContent()
          await number.click()
          await person.sees("Earlier entries.")
          await person.page.reload()
          await person.page.locator(".opened").getByText(sequence!, { exact: true }).waitFor()
          await person.page.locator(`a[title="${id}"]`).first().click()
          await person.seesHeading("Customer 1")
        })
      }),
    minutes
  )

  it.effect(
    "reads nothing while its reader is further down, while the tab is hidden, and while it is paused",
    ({ skip }) =>
      Effect.gen(function* () {
        const services = yield* Effect.context<TestServer>()
        const add = () => Effect.runPromiseWith(services)(addCustomer)
        yield* Effect.repeat(addCustomer, { times: 60 })
        yield* withPerson(
          skip,
          async (person) => {
            await person.page.clock.install()
            await person.opens("/activity?feed=events", "Activity")
            await person.sees("Live: new entries appear by themselves.")
            const counted = countRequests(person)
            const staysQuiet = async (state: string) => {
              await person.sees(state)
              // A read that had begun before may still end.
              await person.page.waitForLoadState("networkidle")
              counted.requests = 0
              await person.page.clock.runFor(60_000)
              assert.strictEqual(counted.requests, 0, state)
            }
            await person.page.evaluate("scrollTo(0, 900)")
            await staysQuiet("Paused while you read.")
            await add()
            await person.click("Go to the newest")
            await person.sees(/^Live: /)
            await person.page.clock.runFor(4_000)
            await person.sees(/1 new entry/)
            await person.page.evaluate(hide("hidden"))
            await staysQuiet("Paused while you read.")
            await person.page.evaluate(hide("visible"))
            await person.sees(/^Live: /)
            await person.click("Pause")
            await staysQuiet("Paused.")
            await add()
            await person.click("Continue")
            await person.page.clock.runFor(4_000)
            await person.sees(/2 new entries/)
            await person.click("Earlier")
            await person.page.locator("tbody tr").nth(60).waitFor({ state: "attached" })
          },
          { movesClock: true }
        )
      }),
    minutes
  )

  it.effect(
    "narrows the feed by result, product and license, in its address",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client } = yield* TestServer
        const license = yield* issue({}, { customer_name: "Ada" })
        const other = yield* issue()
        yield* license.runtime.activate({ payload: { fingerprint: "m-1" } })
        yield* Effect.ignore(license.runtime.activate({ payload: { fingerprint: "m-2" } }))
        yield* client.products.update({ params: { id: license.product_id }, payload: { name: "Editor" } })
        yield* withPerson(skip, async (person) => {
          await person.opens("/activity", "Activity")
          await person.choose("Product", "Editor")
          await person.page.locator(`[title="${other.id}"]`).first().waitFor({ state: "detached" })
          await person.choose("Result", "Refused")
          await person.sees("All device slots are taken")
          assert.strictEqual(await person.page.locator("tbody tr").count(), 1)
          assert.include(person.page.url(), "result_class=refused")
          await person.fill(/^License$/, other.id)
          await person.press("Enter")
          await person.sees("Nothing matches.")
          await person.choose("Show", "What has changed")
          await person.choose("What", "License activated")
          await person.page
            .getByRole("link", { name: /^Ada …/ })
            .first()
            .waitFor()
        })
      }),
    minutes
  )

  it.effect(
    "suggests records as one types, and narrows the feed by the one that is chosen or the only one",
    ({ skip }) =>
      Effect.gen(function* () {
        const [marie, pierre] = yield* Effect.all([
          issue({}, { customer_name: "Marie Curie" }),
          issue({}, { customer_name: "Pierre Curie" })
        ])
        const nameOf = (name: string, { license_key }: typeof marie) => `${name} …${license_key.slice(-4)} · active`
        yield* withPerson(skip, async (person) => {
          const { page } = person
          await person.opens("/activity", "Activity")
          await person.fill(/^License$/, "Curie")
          const options = page.locator("datalist > option[value*=Curie]")
          await options.nth(1).waitFor({ state: "attached" })
          const offered = await Promise.all([0, 1].map((nth) => options.nth(nth).getAttribute("value")))
          assert.sameMembers(offered, [nameOf("Marie Curie", marie), nameOf("Pierre Curie", pierre)])
          await person.press("Enter")
          await person.sees("Choose one license")
          assert.notInclude(page.url(), "license_id")
          // A browser types the suggestion that is chosen.
          await person.fill(/^License$/, nameOf("Marie Curie", marie))
          await page.locator(".chip.set", { hasText: "Marie Curie" }).waitFor()
          assert.include(page.url(), `license_id=${marie.id}`)
          await person.click("Remove the filter License")
          await person.fill(/^License$/, "Pierre")
          await person.press("Enter")
          await page.locator(".chip.set", { hasText: "Pierre Curie" }).waitFor()
          assert.include(page.url(), `license_id=${pierre.id}`)
        })
      }),
    minutes
  )

  it.effect(
    "names what a link narrows it by, as far as that has a name",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client } = yield* TestServer
        const license = yield* issue({}, { customer_name: "Lise Meitner" })
        const params = { id: license.product_id }
        yield* client.features.create({ params, payload: { name: "Exports as PDF", code: "exports" } })
        yield* license.runtime.activate({ payload: { fingerprint: "m-1", hostname: "laptop-of-lise" } })
        const [device] = (yield* client.devices.list({ params: { id: license.id }, query: {} })).items
        yield* withPerson(skip, async (person) => {
          const { page } = person
          const chip = (text: RegExp) => page.locator(".chip.set", { hasText: text }).waitFor()
          await person.opens(`/activity?device_id=${device!.id}&feature_code=exports&request_id=req_1`, "Activity")
          await chip(/^Device\s*laptop-of-lise$/)
          await chip(/^Feature\s*Exports as PDF$/)
          await chip(/^Request\s*req_1$/)
          await person.inLooks(looks, async () => assert.deepStrictEqual(await person.violations(), []))
          await person.click("Remove the filter Request")
          await person.click("Remove the filter Feature")
          await person.sees("Device activated")
          assert.match(page.url(), /activity\?device_id=\w+$/)
          await person.opens(`/activity?feed=events&resource_id=${license.id}`, "Activity")
          await chip(/^License\s*Lise Meitner …\w{4}$/)
          await person.opens("/activity?feed=events&resource_id=lic_unknown", "Activity")
          await chip(/^Record\s*lic_unknown$/)
          await person.opens("/activity?feed=events&resource_id=dev_unknown", "Activity")
          await chip(/^Device\s*…nown$/)
          await person.opens("/activity?device_id=dev_unknown", "Activity")
          await chip(/^Device\s*…nown$/)
          // Its entries may be older than those that are kept.
          await page.route(/activities\?(?=.*device_id)(?=.*limit=1\b)/, async (route) => {
            const response = await route.fetch()
            const { meta } = (await response.json()) as { readonly meta: object }
            await route.fulfill({ response, json: { data: [], meta } })
          })
          await person.opens(`/activity?device_id=${device!.id}&license_id=${license.id}`, "Activity")
          await chip(/^Device\s*laptop-of-lise$/)
        })
      }),
    minutes
  )

  it.effect(
    "names the features and devices that entries are about, also those that other products have under the same code",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client } = yield* TestServer
        const license = yield* issue({}, { customer_name: "Grace" })
        const { policy_id } = yield* client.licenses.get({ params: { id: license.id } })
        const params = { id: license.product_id }
        const { id: feature_id } = yield* client.features.create({ params, payload: { name: "Drawings", code: "pdf" } })
        const { product_id: other } = yield* issue()
        yield* client.features.create({ params: { id: other }, payload: { name: "Paper", code: "pdf" } })
        const quota = { max_consumptions: 5_000 }
        yield* client.policies.setFeature({ params: { id: policy_id, feature_id }, payload: quota })
        yield* client.licenses.assignFeature({ params: { id: license.id }, payload: { feature_id, ...quota } })
        yield* license.runtime.activate({ payload: { fingerprint: "m-1", hostname: "laptop-of-grace" } })
        yield* withPerson(skip, async (person) => {
          const opens = async (path: string, entry: string) => {
            await person.opens(path, "Activity")
            await person.click(entry)
          }
          const recorded = person.page.locator(".opened .recorded")
          const feature = person.page.locator(".opened [title=pdf]", { hasText: /^Drawings$/ })
          const isNamed = async () => {
            await feature.last().waitFor()
            assert.notInclude(await recorded.textContent(), feature_id)
          }
          await opens(`/activity?feed=events&resource_id=${policy_id}`, "Policy updated")
          await isNamed()
          await recorded.getByText("included yes, quota 5,000").waitFor()
          await opens(`/activity?feed=events&resource_id=${license.id}`, "License feature assigned")
          await isNamed()
          await opens(`/activity?feed=events&resource_id=${license.id}`, "License activated")
          await recorded.getByText("laptop-of-grace", { exact: true }).waitFor()
          await opens(`/activity?license_id=${license.id}`, "Feature changed")
          await isNamed()
          await person.page.locator(".opened dl").first().getByText("Drawings", { exact: true }).waitFor()
        })
      }),
    minutes
  )

  it.effect(
    "says that it cannot be read, and reads again on request, also where it does not read by itself",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client } = yield* TestServer
        yield* addCustomer
        const { items } = yield* client.activities.list({ query: { limit: 1 } })
        yield* withPerson(skip, async (person) => {
          const feed = /\/api\/v1\/activities\?/
          await person.page.route(feed, (route) => route.abort())
          await person.opens(`/activity?cursor=${items[0]!.sequence + 1}`, "Activity")
          await person.page.getByRole("alert").getByText("The service cannot be reached").waitFor()
          assert.deepStrictEqual(await person.violations(), [])
          await person.page.unroute(feed)
          await person.click("Try again")
          await person.page.getByRole("button", { name: "Customer created" }).first().waitFor()
          assert.strictEqual(await person.page.getByRole("button", { name: "Try again" }).count(), 0)
          // The browser itself reports the refused request.
          person.problems.length = 0
        })
      }),
    minutes
  )

  it.effect(
    "names a license by its customer if it has no name",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client } = yield* TestServer
        const customer = yield* client.customers.create({ payload: { code: "noether", name: "Emmy Noether" } })
        const { id } = yield* issue({}, { customer_id: customer.id })
        yield* withPerson(skip, async (person) => {
          await person.opens(`/licenses/${id}`, "Emmy Noether")
          await person.opens(`/activity?license_id=${id}`, "Activity")
          await person.page.locator(".chip.set", { hasText: "Emmy Noether" }).waitFor()
        })
      }),
    minutes
  )
})
