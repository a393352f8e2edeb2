/** What a person has typed when the session ends is there again after the same person has signed in, and for nobody else. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestServer } from "../../../support/http/TestServer.ts"
import { type Person, withPerson } from "../browser/Browser.ts"
import { bulkLayer } from "../browser/BulkWorker.ts"
import { forgive, prepare } from "../browser/Meanwhile.ts"
import { adminKey, signsIn } from "../browser/Refused.ts"

const minutes = 5 * 60_000

const refused = {
  status: 401,
  json: {
    error: { code: "TOKEN_EXPIRED", message: "The token has expired." },
    meta: { request_id: "req_draft", timestamp: "2026-01-01T00:00:00.000Z" }
  }
}

const path = "**/api/v1/**"

const isSignedOut = async (person: Person) => {
  await person.sees("What you were doing here is kept")
  await person.page.unroute(path)
}

/** The next request with this method ends the session; perhaps the service has done it. */
const ends = async (person: Person, method: string, act: () => Promise<void>, isDone = false) => {
  await person.page.route(path, async (route) => {
    if (route.request().method() !== method) return await route.fallback()
    if (isDone) await route.fetch()
    await route.fulfill(refused)
  })
  await act()
  await isSignedOut(person)
}

const stored = (person: Person) =>
  person.page.evaluate("JSON.stringify([{ ...sessionStorage }, { ...localStorage }])") as Promise<string>

const value = (person: Person, label: string) => person.page.locator("dialog[open]").getByLabel(label).inputValue()

layer(bulkLayer, { timeout: minutes })("After the session has ended", (it) => {
  it.effect(
    "the dialog of an edit is open again with what was typed, and sends only that",
    ({ skip }) =>
      Effect.gen(function* () {
        const { adminToken, client } = yield* TestServer
        const payload = { code: "draft", name: "Ada", email: "ada@example.com", metadata: { seats: 3 } }
        const { id } = yield* client.customers.create({ payload })
        const rename = client.customers.update({ params: { id }, payload: { email: "new@example.com" } })
        yield* withPerson(skip, async (person) => {
          await person.opens(`/customers/${id}`, "Ada")
          await person.click("Edit")
          await person.fill("Name", "Ada Lovelace")
          await person.click("Add an entry")
          await person.fill("Key of new entry", "secret")
          await person.fill("Value of secret", "s3cret")
          await ends(person, "PATCH", () => person.click("Save"))
          assert.notInclude(await stored(person), "s3cret")
          assert.notInclude(await person.page.content(), "s3cret")
          // What the form does not change keeps a colleague's value.
          await Effect.runPromise(rename)
          await signsIn(person, adminToken)
          await person.page.locator("dialog[open]").waitFor()
          assert.deepStrictEqual(
            [await value(person, "Name"), await value(person, "Value of secret")],
            ["Ada Lovelace", "s3cret"]
          )
          await person.click("Save")
          await person.isDone()
          forgive(person)
        })
        const { email, metadata, name } = yield* client.customers.get({ params: { id } })
        assert.deepStrictEqual(
          { email, metadata, name },
          { email: "new@example.com", name: "Ada Lovelace", metadata: { seats: 3, secret: "s3cret" } }
        )
      }),
    minutes
  )

  it.effect(
    "a form of a screen has its choices again, also those that load later, and issues once what was sent before",
    ({ skip }) =>
      Effect.gen(function* () {
        const { adminToken } = yield* TestServer
        const { all, name, policy } = yield* prepare(0)
        yield* prepare(0)
        yield* withPerson(skip, async (person) => {
          await person.opens("/licenses/new", "Issue a license")
          await person.choose("Product", name)
          await person.choose("Policy", policy.name)
          await person.fill("Customer’s name", "Draft")
          await ends(person, "POST", () => person.click("Issue"), true)
          await signsIn(person, adminToken)
          await person.seesHeading("Issue a license")
          await person.page.locator("select[name=policy_id]").getByText(policy.name).waitFor({ state: "attached" })
          await person.click("Issue")
          await person.seesHeading("The license is issued")
          await person.click(/^(Copy|Select)/)
          forgive(person)
        })
        const { items } = yield* all
        assert.deepStrictEqual(
          items.map(({ customer_name }) => customer_name),
          ["Draft"]
        )
      }),
    minutes
  )

  it.effect(
    "rows are chosen again, and the dialog of their change is open with what was typed",
    ({ skip }) =>
      Effect.gen(function* () {
        const { adminToken } = yield* TestServer
        const { product } = yield* prepare(2)
        yield* withPerson(skip, async (person) => {
          await person.opens(`/licenses?product_id=${product.id}`, "Licenses")
          await person.check("Choose all on this page")
          await person.click("Extend")
          await person.fill("Days to add", "14")
          await person.fill("Reason", "An outage")
          await ends(person, "POST", () => person.click("Check"))
          await signsIn(person, adminToken)
          await person.page.locator("dialog[open]").getByText("2 licenses").first().waitFor()
          assert.deepStrictEqual(
            [await value(person, "Days to add"), await value(person, "Reason")],
            ["14", "An outage"]
          )
          await person.press("Escape")
          await person.isDone()
          await person.sees("2 licenses chosen")
          forgive(person)
        })
      }),
    minutes
  )

  it.effect(
    "a job that was created when the session ended is not created twice",
    ({ skip }) =>
      Effect.gen(function* () {
        const { adminToken, client } = yield* TestServer
        const { product } = yield* prepare(2)
        yield* withPerson(skip, async (person) => {
          const begins = async () => {
            await person.click("Check")
            await person.sees("2 of 2 licenses would change.")
            return () => person.click("Extend 2 licenses")
          }
          await person.opens(`/licenses?product_id=${product.id}`, "Licenses")
          await person.check("Choose all on this page")
          await person.click("Extend")
          await person.fill("Days to add", "14")
          await ends(person, "POST", await begins(), true)
          await signsIn(person, adminToken)
          await person.page.locator("dialog[open]").waitFor()
          await (await begins())()
          await person.seesHeading("Extend 2 licenses")
          forgive(person)
        })
        const { items } = yield* client.bulkJobs.list({ query: { action: "renew" } })
        assert.deepStrictEqual(
          items.filter(({ dry_run }) => !dry_run).map(({ matched }) => matched),
          [2]
        )
      }),
    minutes
  )

  it.effect(
    "a key that was not copied yet is shown again",
    ({ skip }) =>
      Effect.gen(function* () {
        const { adminToken } = yield* TestServer
        const { licenses, name } = yield* prepare(1)
        yield* withPerson(skip, async (person) => {
          await person.opens(`/licenses/${licenses[0]!.id}`, `${name} customer 1`)
          await person.pick("More", "New key")
          let key = ""
          await person.page.route(path, async (route) => {
            if (key !== "") return await route.fulfill(refused)
            const response = await route.fetch()
            if (route.request().url().endsWith("/rotate-key")) key = (await response.json()).data.license_key
            await route.fulfill({ response })
          })
          await person.click("Replace key")
          await isSignedOut(person)
          await signsIn(person, adminToken)
          await person.page.locator("dialog[open]").getByText(key, { exact: true }).waitFor()
          await person.click(/^(Copy|Select)/)
          forgive(person)
        })
      }),
    minutes
  )

  it.effect(
    "another person finds nothing of it, and neither does who leaves the screen",
    ({ skip }) =>
      Effect.gen(function* () {
        const { adminToken, client } = yield* TestServer
        const { token } = yield* adminKey()
        const { id } = yield* client.customers.create({ payload: { code: "private", name: "Grace" } })
        yield* withPerson(skip, async (person) => {
          const types = async () => {
            await person.click("Edit")
            await person.fill("Name", "Private")
            await ends(person, "PATCH", () => person.click("Save"))
          }
          const isGone = async () => {
            await person.isLoaded()
            assert.strictEqual(await person.page.locator("dialog[open]").count(), 0)
            await person.click("Edit")
            assert.strictEqual(await value(person, "Name"), "Grace")
            await person.press("Escape")
            await person.isDone()
          }
          await person.opens(`/customers/${id}`, "Grace")
          await types()
          await signsIn(person, token)
          await person.seesHeading("Grace")
          await isGone()
          await types()
          await signsIn(person, adminToken)
          await person.seesHeading("Grace")
          await person.click("Sign out")
          await signsIn(person, token)
          await person.seesHeading("Grace")
          await isGone()
          forgive(person)
        })
      }),
    minutes
  )
})
