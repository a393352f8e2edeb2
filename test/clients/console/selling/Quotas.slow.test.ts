/** Quotas by period, extra credits and overage, where people look for them. */
import { assert, layer } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { TestServer } from "../../../support/http/TestServer.ts"
import { consoleLayer, consoleLayerWith, type Person, withPerson } from "../browser/Browser.ts"

const minutes = 5 * 60_000

let products = 0

/** A license with 100 renders a month, of which 90 are used. */
const prepare = Effect.gen(function* () {
  const { client, send } = yield* TestServer
  const code = `meter-${++products}`
  const product = yield* client.products.create({ payload: { name: `Meter ${products}`, code } })
  const params = { id: product.id }
  const policy = yield* client.policies.create({
    params,
    payload: { name: "Metered", code: "metered", license_type: "perpetual" }
  })
  const feature = yield* client.features.create({ params, payload: { name: "Renders", code: "renders" } })
  yield* client.policies.setFeature({
    params: { id: policy.id, feature_id: feature.id },
    payload: { max_consumptions: 100, reset_period: "month", rollover_max: 20, overage_max: 50 }
  })
  const { license, license_key } = yield* client.licenses.create({
    payload: { product_id: product.id, policy_id: policy.id, customer_name: `Owner of ${code}` }
  })
  const use = (operation: string, body: object) =>
    send({
      method: "POST",
      path: `/api/v1/license/${operation}`,
      headers: { authorization: `License ${license_key}` },
      body
    })
  yield* use("activate", { fingerprint: code })
  const consume = (amount: number, event_id: string) =>
    use("consume", { fingerprint: code, feature_code: "renders", amount, event_id })
  yield* consume(90, "first")
  return { client, product, policy, feature, license, consume, name: `Owner of ${code}` }
})

const faultsOf = async (person: Person) => {
  await person.page.locator("dialog[open] [aria-invalid]").first().waitFor()
  return person.page.locator("dialog[open] .fault").allTextContents()
}

layer(consoleLayer, { timeout: minutes })("At the console", (it) => {
  it.effect(
    "a license shows the period of a quota, extra credits and overage, and the ledger says what each change was",
    ({ skip }) =>
      Effect.gen(function* () {
        const { consume, feature, license, name } = yield* prepare
        yield* withPerson(skip, async (person) => {
          await person.opens(`/licenses/${license.id}`, name)
          await person.sees("90 of 100 · 10 left")
          await person.sees(/^resets on \d/)
          await person.sees("50 overage allowed")
          await person.click("Add credits to Renders")
          await person.sees("Renders gets extra credits. They are used after the quota of a period")
          await person.fill("Credits to add", "25")
          await person.press("Enter")
          await person.isDone()
          await person.sees("25 extra credits left")
          await Effect.runPromise(consume(50, "second"))
          await person.page.reload()
          await person.sees("100 of 100 · 0 left")
          await person.sees("15 of 50 overage used")
          await person.isFaultless()
          await person.opens(`/reports/ledger?license_id=${license.id}`, "Ledger")
          await person.sees("+25 extra credits")
          await person.sees("-25 extra credits, +15 overage")
          await person.sees("Credits added")
          assert.isString(feature.id)
        })
      }),
    minutes
  )

  it.effect(
    "the quota of a license is given a period, and what contradicts is said at its field",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client, feature, license, name } = yield* prepare
        yield* withPerson(skip, async (person) => {
          await person.opens(`/licenses/${license.id}`, name)
          await person.pick("Actions for Renders", "Edit Renders")
          await person.choose("Begins anew", "With each period of the subscription")
          await person.click("Save")
          assert.deepStrictEqual(await faultsOf(person), [
            "The license is not linked to a subscription: link one first."
          ])
          await person.choose("Begins anew", "Each week")
          await person.fill("Carried over at most", "500")
          await person.click("Save")
          assert.deepStrictEqual(await faultsOf(person), [
            "The rollover is above the quota: choose a “Carried over at most” of at most “Quota”."
          ])
          person.problems.length = 0
          await person.fill("Carried over at most", "5")
          await person.fill("Overage", "-1")
          await person.click("Save")
          await person.isDone()
          await person.sees("any overage allowed")
        })
        const { items } = yield* client.licenses.listFeatures({ params: { id: license.id }, query: {} })
        const [{ overage_max, reset_period, rollover_max } = {}] = items.filter(
          ({ feature_id }) => feature_id === feature.id
        )
        assert.deepStrictEqual([reset_period, rollover_max, overage_max], ["week", 5, -1])
      }),
    minutes
  )

  it.effect(
    "a feature that is switched off is not called included",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client, feature, license, name } = yield* prepare
        const { id } = yield* client.features.create({
          params: { id: license.product_id },
          payload: { name: "Audit log", code: `audit-log-of-${feature.id.slice(-8).toLowerCase()}` }
        })
        const params = { id: license.id }
        yield* client.licenses.assignFeature({ params, payload: { feature_id: id, enabled: false } })
        yield* withPerson(skip, async (person) => {
          await person.opens(`/licenses/${license.id}`, name)
          const line = person.page.getByRole("listitem").filter({ hasText: "Audit log" })
          await line.getByText("Off", { exact: true }).waitFor()
          assert.strictEqual(await line.getByText("Included").count(), 0)
        })
      }),
    minutes
  )

  it.effect(
    "an edit of a policy's feature keeps what it does not change",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client, policy } = yield* prepare
        yield* withPerson(skip, async (person) => {
          await person.opens(`/policies/${policy.id}`, "Metered")
          await person.sees("100 each month")
          await person.sees("up to 20 carried over, overage up to 50")
          await person.pick("Actions for Renders", "Edit Renders")
          await person.fill("Quota", "200")
          await person.fill("Overage", "")
          await person.click("Save")
          await person.isDone()
          await person.sees("200 each month")
        })
        const { items } = yield* client.policies.listFeatures({ params: { id: policy.id }, query: {} })
        const [{ max_consumptions, overage_max, reset_period, rollover_max } = {}] = items
        assert.deepStrictEqual(
          [max_consumptions, reset_period, rollover_max, overage_max],
          [200, "month", 20, undefined]
        )
      }),
    minutes
  )

  it.effect(
    "no form offers mail where the service sends none",
    ({ skip }) =>
      Effect.gen(function* () {
        const { product } = yield* prepare
        yield* withPerson(skip, async (person) => {
          await person.opens(`/licenses/new?product_id=${product.id}`, "Issue a license")
          await person.page.getByLabel("Key, if the license has one already").waitFor()
          assert.strictEqual(await person.page.getByLabel("Mail the key to the customer").count(), 0)
        })
      }),
    minutes
  )
})

const mailing = {
  consoleTitle: 'Acme & "Sons" <Software>',
  smtpUrl: Redacted.make("smtp://127.0.0.1:1"),
  mailFrom: { name: "Acme", address: "keys@example.com" }
}

layer(consoleLayerWith(mailing), { timeout: minutes })("At a console with a name of its own and mail", (it) => {
  it.effect(
    "the frame and the titles have the name, and a batch mails its keys",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client, product } = yield* prepare
        yield* withPerson(skip, async (person) => {
          await person.opens(`/licenses/batch?product_id=${product.id}`, "Issue a batch")
          assert.strictEqual(await person.page.title(), `Issue a batch · ${mailing.consoleTitle}`)
          await person.page.getByRole("link", { name: mailing.consoleTitle }).waitFor()
          await person.choose("Policy", "Metered")
          await person.fill("Customers", "Ada, ada@example.com\nGrace")
          await person.check("Mail each key to its customer")
          await person.click("Issue the batch")
          await person.sees(/^Line 2: There is no e-mail address to send the key to/)
          person.problems.length = 0
          await person.fill("Customers", "Ada, ada@example.com\nGrace, grace@example.com")
          await person.click("Issue the batch")
          await person.seesHeading("2 licenses issued")
          await person.click("Save as CSV")
          await person.click("Sign out")
          await person.seesHeading(mailing.consoleTitle)
        })
        const { mails } = yield* client.ops.mailHealth({})
        assert.strictEqual(mails.pending, 2)
      }),
    minutes
  )
})
