/** What happens meanwhile at the console: somebody else makes a change, a request still runs, a list does not load. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestServer } from "../../../support/http/TestServer.ts"
import { consoleLayer, withPerson } from "../browser/Browser.ts"
import { forgive, held, prepare } from "../browser/Meanwhile.ts"

const minutes = 5 * 60_000

layer(consoleLayer, { timeout: minutes })("Meanwhile, at the console,", (it) => {
  it.effect(
    "a feature of a policy keeps what somebody else has changed of it, and stays removed",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client, policy, product } = yield* prepare(0)
        const feature = yield* client.features.create({
          params: { id: product.id },
          payload: { name: "Export", code: "export" }
        })
        const params = { id: policy.id, feature_id: feature.id }
        const set = (max_consumptions: number) =>
          Effect.runPromise(client.policies.setFeature({ params, payload: { enabled: true, max_consumptions } }))
        const { list, remove } = {
          list: client.policies.listFeatures({ params: { id: policy.id }, query: {} }),
          remove: client.policies.removeFeature({ params })
        }
        yield* withPerson(skip, async (person) => {
          await set(10)
          await person.opens(`/policies/${policy.id}`, policy.name)
          await person.pick("Actions for Export", "Edit Export")
          await set(500)
          await person.fill("Days until it expires", "30")
          await person.click("Save")
          await person.isDone()
          const { items } = await Effect.runPromise(list)
          assert.deepStrictEqual(
            items.map(({ expires_after_days, max_consumptions }) => [expires_after_days, max_consumptions]),
            [[30, 500]]
          )
          await person.pick("Actions for Export", "Edit Export")
          await Effect.runPromise(remove)
          await person.fill("Days until it expires", "60")
          await person.click("Save")
          await person.sees("Somebody has removed the feature from the policy: include it again.")
        })
        assert.deepStrictEqual((yield* list).items, [])
      }),
    minutes
  )

  it.effect(
    "what a change would do is asked for again where no response came",
    ({ skip }) =>
      Effect.gen(function* () {
        const { licenses, name } = yield* prepare(1)
        yield* withPerson(skip, async (person) => {
          await person.page.route("**/preview", (route) => route.abort())
          await person.opens(`/licenses/${licenses[0]!.id}`, `${name} customer 1`)
          await person.pick("More", "Suspend")
          await person.sees(/^What would change cannot be shown. The service cannot be reached/)
          await person.page.unroute("**/preview")
          await person.click("Try again")
          await person.page.getByRole("status", { name: "What changes" }).getByText("Suspended").waitFor()
          forgive(person)
        })
      }),
    minutes
  )

  it.effect(
    "a suspension that somebody else made is not offered to be undone",
    ({ skip }) =>
      Effect.gen(function* () {
        const { all, client, licenses, name } = yield* prepare(1)
        const params = { id: licenses[0]!.id }
        yield* withPerson(skip, async (person) => {
          await person.opens(`/licenses/${params.id}`, `${name} customer 1`)
          await person.pick("More", "Suspend")
          await Effect.runPromise(client.licenses.suspend({ params }))
          await person.click("Suspend")
          await person.sees(/The license is in this state already/)
          await person.press("Escape")
          await person.isDone()
          assert.strictEqual(await person.page.getByRole("button", { name: "Undo" }).count(), 0)
        })
        assert.strictEqual((yield* all).items[0]!.status, "suspended")
      }),
    minutes
  )

  it.effect(
    "a suspension whose response was lost is the reader's own, and can be undone",
    ({ skip }) =>
      Effect.gen(function* () {
        const { all, licenses, name } = yield* prepare(1)
        const { id } = licenses[0]!
        yield* withPerson(skip, async (person) => {
          const suspension = `**/licenses/${id}/suspend`
          await person.page.route(suspension, async (route) => {
            await route.fetch()
            await route.abort()
          })
          await person.opens(`/licenses/${id}`, `${name} customer 1`)
          await person.pick("More", "Suspend")
          await person.click("Suspend")
          await person.page.locator("dialog[open]").getByText("The service cannot be reached").waitFor()
          await person.page.unroute(suspension)
          await person.click("Suspend")
          await person.isDone()
          await person.sees("The license is suspended.")
          await person.click("Undo")
          await person.sees("Undone.")
          forgive(person)
        })
        assert.strictEqual((yield* all).items[0]!.status, "active")
      }),
    minutes
  )

  it.effect(
    "earlier entries of the feed are read once what is being read is there",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client } = yield* TestServer
        for (let count = 1; count <= 60; count++)
          yield* client.customers.create({ payload: { name: `Customer ${count}`, code: `meanwhile-${count}` } })
        yield* withPerson(skip, async (person) => {
          const { hold, reached, release } = held()
          await person.opens("/activity?feed=events&event_type=customer.created", "Activity")
          await person.page.locator("tbody tr").first().waitFor()
          await person.page.route(/\/api\/v1\/events\?(?!.*cursor=)/, hold)
          await reached
          await person.click("Earlier")
          await person.sees("Reading…")
          release()
          await person.page.locator("tbody tr").nth(55).waitFor({ state: "attached" })
          await person.page.getByRole("button", { name: "Reading…" }).waitFor({ state: "detached" })
          assert.strictEqual(await person.page.locator("button:focus").textContent(), "Earlier")
        })
      }),
    minutes
  )

  it.effect(
    "products that do not load are not taken for none",
    ({ skip }) =>
      withPerson(skip, async (person) => {
        await person.page.route("**/api/v1/products?*", (route) => route.abort())
        for (const [path, heading] of [
          ["/licenses/batch", "Issue a batch"],
          ["/licenses/new", "Issue a license"],
          ["/orders", "Orders"],
          ["/subscriptions", "Subscriptions"]
        ] as const) {
          await person.opens(path, heading)
          await person.page.locator("main").getByRole("alert").getByText("The service cannot be reached").waitFor()
          assert.strictEqual(await person.page.getByText("No product yet").count(), 0)
        }
        forgive(person)
      }),
    minutes
  )

  it.effect(
    "a custom field that was saved before another was refused is nobody else's change",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client, licenses, name, product } = yield* prepare(1)
        const define = (code: string, value_type: "string" | "integer", is_required: boolean) =>
          client["custom-fields"].create({
            params: { id: product.id },
            payload: { resource_type: "license", code, name: code, value_type, is_required }
          })
        yield* define("note", "string", false)
        const seats = yield* define("seats", "integer", true)
        const id = licenses[0]!.id
        const params = { id, field_id: seats.id }
        yield* client["custom-fields"].setLicenseValue({ params, payload: { integer_value: 1 } })
        yield* withPerson(skip, async (person) => {
          await person.opens(`/licenses/${id}`, `${name} customer 1`)
          await person.click("Edit custom fields")
          await person.fill("note", "from the fair")
          await person.fill("seats", "")
          await person.click("Save")
          await person.sees("The field is required: set another value instead of clearing it.")
          await person.fill("seats", "4")
          await person.click("Save")
          await person.isDone()
          await person.sees("from the fair")
          forgive(person)
        })
        const { items } = yield* client["custom-fields"].listLicenseValues({ params: { id }, query: {} })
        assert.deepStrictEqual(
          items.map(({ integer_value, string_value }) => integer_value ?? string_value).toSorted(),
          [4, "from the fair"]
        )
      }),
    minutes
  )

  it.effect(
    "a number that two orders have links neither until one is chosen",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client, product } = yield* prepare(0)
        const record = (external_system: string, external_id: string) =>
          client.commerce.createOrder({
            params: { id: product.id },
            payload: { external_system, external_id, status: "paid" }
          })
        yield* record("stripe", "1001")
        const paddle = yield* record("paddle", "1001")
        const single = yield* record("paddle", "1002")
        yield* withPerson(skip, async (person) => {
          const typed = (text: string) => person.page.getByRole("combobox", { name: "Order", exact: true }).fill(text)
          const linked = (value: string) =>
            person.page.locator(`[name="order_id"][value="${value}"]`).waitFor({ state: "attached" })
          await person.opens(`/licenses/new?product_id=${product.id}`, "Issue a license")
          await typed("1002")
          await linked(single.id)
          await typed("1001")
          await person.page.locator("datalist option").nth(1).waitFor({ state: "attached" })
          await linked("?1001")
          await person.click("Issue")
          await person.sees("No order is chosen: pick one of the suggestions.")
          await typed("1001 · paddle")
          await linked(paddle.id)
        })
      }),
    minutes
  )

  it.effect(
    "results that come late do not change what Enter opens",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client } = yield* prepare(0)
        yield* client.customers.create({ payload: { name: "Issuing Bank", code: "issuing-bank" } })
        yield* withPerson(skip, async (person) => {
          const { hold, reached, release } = held()
          await person.page.route("**/api/v1/search?*", hold)
          await person.opens("/licenses", "Licenses")
          await person.fill(/^Search/, "issu")
          await person.press("ArrowDown")
          const active = person.page.locator("[role=option][aria-selected=true]")
          await active.filter({ hasText: "Issue a license" }).waitFor()
          await reached
          release()
          await person.page.getByRole("option", { name: /Issuing Bank/ }).waitFor()
          await active.filter({ hasText: "Issue a license" }).waitFor()
          await person.press("Enter")
          await person.seesHeading("Issue a license")
        })
      }),
    minutes
  )
})
