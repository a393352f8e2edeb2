/** What is undone, devices of all licenses, the audit of a license, and the erasure of a customer. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { EventLog } from "../../../../src/ledger/events/EventLog.ts"
import { Erasures } from "../../../../src/vendor/customers/erasure/Erasures.ts"
import { Database } from "../../../support/database/Database.ts"
import { issue } from "../../../support/http/IssuedLicenses.ts"
import { TestServer } from "../../../support/http/TestServer.ts"
import { atConsole, consoleLayer, type Person, withPerson } from "../browser/Browser.ts"

const minutes = 5 * 60_000

let people = 0

/** A license of a new customer, with an active device. */
const prepare = Effect.gen(function* () {
  const { client } = yield* TestServer
  const number = ++people
  const name = `Hedy ${number}`
  const email = `hedy-${number}@example.com`
  const customer = yield* client.customers.create({ payload: { name, code: `hedy-${number}`, email } })
  const license = yield* issue({}, { customer_id: customer.id, customer_name: name, customer_email: email })
  const params = { id: license.id }
  yield* license.runtime.activate({ payload: { fingerprint: `m-${number}`, hostname: `laptop-${number}` } })
  return {
    ...license,
    customer,
    email,
    name,
    params,
    hostname: `laptop-${number}`,
    now: client.licenses.get({ params })
  }
})

const layerErasing = Erasures.layer.pipe(
  Layer.provide(EventLog.layer),
  Layer.provideMerge(consoleLayer),
  Layer.provideMerge(Database.layer)
)

const notices = (person: Person) => person.page.getByRole("region", { name: "Notices" })

layer(layerErasing, { timeout: minutes })("At the console", (it) => {
  it.effect(
    "a suspension is undone with the keyboard, and an extension with a click",
    ({ skip }) =>
      Effect.gen(function* () {
        const { expires_at, id, name, now } = yield* prepare
        yield* withPerson(skip, async (person) => {
          await person.opens(`/licenses/${id}`, name)
          await person.pick("More", "Suspend")
          await person.click("Suspend")
          await person.isDone()
          await notices(person).getByRole("status").filter({ hasText: "The license is suspended." }).waitFor()
          assert.deepStrictEqual(await person.violations(), [])
          await person.press("Control+z")
          await notices(person).getByText("Undone.").waitFor()
          await person.page.locator(".about .status.active").waitFor()
          await person.click("Dismiss")
          await person.page.locator("body:not(:has(.notices button)) main:focus").waitFor()
          await person.click("Extend")
          await person.click("Extend")
          await person.isDone()
          await person.click("Undo")
          await notices(person).getByText("Undone.").waitFor()
        })
        const license = yield* now
        assert.deepStrictEqual([license.status, license.expires_at], ["active", expires_at])
      }),
    minutes
  )

  it.effect(
    "an edit is undone, unless somebody has changed the same field again",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client } = yield* TestServer
        const { customer, email, name } = yield* prepare
        const params = { id: customer.id }
        yield* withPerson(skip, async (person) => {
          const rename = async (to: string) => {
            await person.click("Edit")
            await person.fill("Name", to)
            await person.press("Enter")
            await person.isDone()
            await notices(person).getByText("The change is saved.").waitFor()
          }
          await person.opens(`/customers/${customer.id}`, name)
          await rename("Hedy Lamarr")
          await person.seesHeading("Hedy Lamarr")
          await person.click("Undo")
          await person.seesHeading(name)
          await rename("Hedwig Kiesler")
          await Effect.runPromise(client.customers.update({ params, payload: { name: "Hedy K." } }))
          await person.click("Undo")
          await notices(person).getByText("Not undone. Somebody has changed it again since").waitFor()
        })
        const found = yield* client.customers.get({ params })
        assert.deepStrictEqual([found.name, found.email], ["Hedy K.", email])
      }),
    minutes
  )

  it.effect(
    "a notice stays on its screen, goes along to the next, and does not follow for ever",
    ({ skip }) =>
      Effect.gen(function* () {
        const { hostname, id, name } = yield* prepare
        yield* withPerson(
          skip,
          async (person) => {
            await person.page.clock.install()
            await person.opens(`/licenses/${id}`, name)
            await person.pick(`Actions for ${hostname}`, `Block ${hostname}`)
            await person.click("Block")
            await person.isDone()
            const undo = notices(person).getByRole("button", { name: "Undo" })
            await undo.waitFor()
            await person.click("Customers", "link")
            await person.seesHeading("Customers")
            await undo.waitFor()
            await person.page.clock.fastForward(60_000)
            assert.isTrue(await undo.isVisible())
            await person.click("Licenses", "link")
            await person.seesHeading("Licenses")
            await undo.waitFor({ state: "detached" })
          },
          { movesClock: true }
        )
      }),
    minutes
  )

  it.effect(
    "a device is found among those of all licenses, blocked, and unblocked by undo",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client } = yield* TestServer
        const { hostname, params } = yield* prepare
        const others = yield* prepare
        const device = () => Effect.runPromise(client.devices.list({ params, query: {} }))
        yield* atConsole(skip, async (person) => {
          await person.click("Devices", "link")
          await person.sees(others.hostname)
          await person.fill("Host name", hostname)
          await person.press("Enter")
          await person.page.getByText(others.hostname).first().waitFor({ state: "detached" })
          assert.include(person.page.url(), hostname)
          assert.deepStrictEqual(await person.violations(), [])
          await person.pick(`Actions for ${hostname}`, `Block ${hostname}`)
          await person.click("Block")
          await person.isDone()
          assert.strictEqual((await device()).items[0]?.status, "blacklisted")
          await person.click("Undo")
          await notices(person).getByText("Undone.").waitFor()
          assert.strictEqual((await device()).items[0]?.status, "reset")
          await person.fill("Host name", "")
          await person.press("Enter")
          await person.fill("Fingerprint", `m-${people}`)
          await person.press("Enter")
          await person.page.getByText(hostname, { exact: true }).first().waitFor({ state: "detached" })
          await person.sees(others.hostname)
          assert.notInclude(person.page.url(), `m-${people}`)
        })
      }),
    minutes
  )

  it.effect(
    "the audit of a license tells who changed what",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client } = yield* TestServer
        const { id, name, params } = yield* prepare
        yield* client.licenses.update({ params, payload: { customer_name: `${name} L.` } })
        yield* withPerson(skip, async (person) => {
          await person.opens(`/licenses/${id}`, `${name} L.`)
          await person.click("Open the audit", "link")
          await person.seesHeading(`Audit of ${name} L.`)
          const row = person.page.getByRole("row", { name: /License updated/ })
          assert.match((await row.textContent()) ?? "", new RegExp(`customer name: ${name} → ${name} L\\.`))
          await person.choose("Period", "Last 90 days")
          await person.page.waitForURL(/period=last_90_days/)
          await person.sees("Validations by day")
        })
      }),
    minutes
  )

  it.effect(
    "a customer's page sums up its licenses, and shows others with its e-mail",
    ({ skip }) =>
      Effect.gen(function* () {
        const { customer, email, name } = yield* prepare
        yield* issue({}, { customer_name: "Somebody else", customer_email: email.toUpperCase() })
        yield* withPerson(skip, async (person) => {
          await person.opens(`/customers/${customer.id}`, name)
          await person.sees("1 active")
          await person.page.getByRole("heading", { name: "Other licenses with this e-mail" }).waitFor()
          await person.sees("Somebody else")
          await person.choose("Period", "Last 30 days")
          await person.page.waitForURL(/period=last_30_days/)
        })
      }),
    minutes
  )

  it.effect(
    "a customer is erased once its name is typed; until then nothing happens, and the page shows how far it is",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client } = yield* TestServer
        const { pass } = yield* Erasures
        const { customer, name, now } = yield* prepare
        const params = { id: customer.id }
        yield* withPerson(skip, async (person) => {
          await person.opens(`/customers/${customer.id}`, name)
          await person.pick("More", "Erase")
          await person.fill(/^Type/, "Hedy")
          await person.click("Erase")
          await person.sees(`This is not “${name}”.`)
          assert.deepStrictEqual(await person.violations(), [])
          assert.strictEqual((await Effect.runPromise(client.customers.get({ params }))).name, name)
          await person.fill(/^Type/, name.replace(" ", "  "))
          await person.click("Erase")
          await person.isDone()
          await person.seesHeading(`Customer ${customer.code}`)
          await person.sees("is being erased")
          assert.strictEqual(await person.page.getByRole("button", { name: /Edit|Delete|Erase/ }).count(), 0)
          assert.deepStrictEqual(await person.violations(), [])
          // The worker, which a test's service has not.
          await Effect.runPromise(pass)
          await person.sees("The data of this customer was erased")
          await person.page.getByRole("button", { name: "Edit" }).waitFor()
          // The lists are read again after that.
          await person.page.locator("main").getByText(name).first().waitFor({ state: "detached" })
          assert.notInclude(await person.page.locator("main").textContent(), name)
        })
        assert.isDefined((yield* client.customers.get({ params })).erased_at)
        assert.isUndefined((yield* now).customer_name)
        yield* withPerson(skip, async (person) => {
          await person.opens(`/customers/${customer.id}`, `Customer ${customer.code}`)
          await person.isFaultless()
          await person.opens("/customers", "Customers")
          await person.sees(`Customer ${customer.code}`)
          await person.isFaultless()
        })
      }),
    minutes
  )

  it.effect(
    "erasure is offered to administrators only",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client } = yield* TestServer
        const { customer, name } = yield* prepare
        const { token } = yield* client["api-keys"].create({
          payload: { name: "Support", scopes: ["license:read", "license:write"] }
        })
        yield* withPerson(
          skip,
          async (person) => {
            await person.opens(`/customers/${customer.id}`, name)
            await person.page.getByRole("button", { name: "Edit" }).waitFor()
            assert.strictEqual(await person.page.getByRole("button", { name: "Erase" }).count(), 0)
          },
          { token }
        )
      }),
    minutes
  )

  it.effect(
    "a license is issued with a key that the vendor has already",
    ({ skip }) =>
      Effect.gen(function* () {
        const { params } = yield* prepare
        const { client } = yield* TestServer
        const { policy_id, product_id } = yield* client.licenses.get({ params })
        yield* client.products.update({ params: { id: product_id }, payload: { name: "Own keys" } })
        yield* client.policies.update({ params: { id: policy_id }, payload: { name: "Own keys", duration_days: 30 } })
        yield* withPerson(skip, async (person) => {
          await person.opens("/licenses/new", "Issue a license")
          await person.choose("Product", "Own keys")
          await person.choose("Policy", "Own keys")
          await person.fill(/^Key, if/, "SHORT")
          await person.click("Issue")
          await person.page.locator("[aria-invalid]").waitFor()
          await person.fill(/^Key, if/, `VENDOR-KEY-${people}-1234`)
          await person.click("Issue")
          await person.seesHeading("The license is issued")
          assert.strictEqual(await person.page.locator(".secret").textContent(), `VENDOR-KEY-${people}-1234`)
          person.problems.length = 0
        })
      }),
    minutes
  )
})
