/** Two people change the same record: neither overwrites the other silently. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestServer } from "../../../support/http/TestServer.ts"
import { consoleLayer, type Person, withPerson } from "../browser/Browser.ts"
import { prepare } from "../browser/Meanwhile.ts"

const minutes = 5 * 60_000

const customer = (code: string) =>
  Effect.gen(function* () {
    const { adminToken, baseUrl, client } = yield* TestServer
    const { id } = yield* client.customers.create({ payload: { code, name: "Ada", email: "ada@example.com" } })
    const change = async (payload: object) => {
      const response = await fetch(`${baseUrl}/api/v1/customers/${id}`, {
        method: "PATCH",
        headers: { authorization: `Bearer ${adminToken}`, "content-type": "application/json" },
        body: JSON.stringify(payload)
      })
      assert.strictEqual(response.status, 200)
    }
    return { id, change, now: client.customers.get({ params: { id } }) }
  })

const beginsEdit = async (person: Person, id: string) => {
  await person.opens(`/customers/${id}`, "Ada")
  await person.click("Edit")
  await person.fill("Name", "Ada Lovelace")
}

layer(consoleLayer, { timeout: minutes })("Two people who edit the same customer", (it) => {
  it.effect(
    "learn of each other's change of the same field, and keep those of other fields",
    ({ skip }) =>
      Effect.gen(function* () {
        const { change, id, now } = yield* customer("same-field")
        yield* withPerson(skip, async (person) => {
          await beginsEdit(person, id)
          await change({ name: "Countess", email: "countess@example.com" })
          await person.click("Save")
          await person.sees("it is now Countess")
          await person.click("Save")
          await person.isDone()
        })
        const { email, name } = yield* now
        assert.deepStrictEqual({ email, name }, { email: "countess@example.com", name: "Ada Lovelace" })
      }),
    minutes
  )

  it.effect(
    "learn of it even if it falls between the comparison and the change",
    ({ skip }) =>
      Effect.gen(function* () {
        const { change, id, now } = yield* customer("at-the-same-moment")
        yield* withPerson(skip, async (person) => {
          await beginsEdit(person, id)
          let isFirst = true
          await person.page.route(`**/api/v1/customers/${id}`, async (route) => {
            if (route.request().method() === "PATCH" && isFirst) {
              isFirst = false
              await change({ name: "Countess" })
            }
            await route.continue()
          })
          await person.click("Save")
          await person.sees("it is now Countess")
          // The browser itself reports the refused request.
          person.problems.splice(0)
        })
        assert.strictEqual((yield* now).name, "Countess")
      }),
    minutes
  )
})

const dayMillis = 86_400_000

layer(consoleLayer, { timeout: minutes })("Two people who change the same license", (it) => {
  it.effect(
    "do not assign a feature again that one has removed while the other edits it",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client, licenses, name, product } = yield* prepare(1)
        const feature = { params: { id: product.id }, payload: { name: "Export", code: "export" } }
        const { id: feature_id } = yield* client.features.create(feature)
        const params = { id: licenses[0]!.id }
        yield* client.licenses.assignFeature({ params, payload: { feature_id, max_consumptions: 10 } })
        yield* withPerson(skip, async (person) => {
          await person.opens(`/licenses/${params.id}`, `${name} customer 1`)
          await person.pick("Actions for Export", "Edit Export")
          await Effect.runPromise(client.licenses.removeFeature({ params: { ...params, feature_id } }))
          await person.fill("Expires at the end of", "2031-01-31")
          await person.click("Save")
          await person.sees("Somebody has removed the feature from the license: assign it again.")
        })
        assert.deepStrictEqual((yield* client.licenses.listFeatures({ params, query: {} })).items, [])
      }),
    minutes
  )

  it.effect(
    "take only their own extension back",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client, licenses, name } = yield* prepare(1)
        const { expires_at = 0, id } = licenses[0]!
        const extend = client.licenses.renew({
          params: { id },
          payload: { extend_by_days: 30 },
          headers: { "idempotency-key": "colleague" }
        })
        yield* withPerson(skip, async (person) => {
          await person.opens(`/licenses/${id}`, `${name} customer 1`)
          await person.click("Extend")
          await person.fill("Days to add", "10")
          await Effect.runPromise(extend)
          await person.click("Extend")
          await person.isDone()
          await person.click("Undo")
          await person.sees("Undone.")
        })
        const after = yield* client.licenses.get({ params: { id } })
        assert.strictEqual(after.expires_at, expires_at + 30 * dayMillis)
      }),
    minutes
  )
})
