/** What people rely on while they edit: links that name one record, and undo. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestServer } from "../../../support/http/TestServer.ts"
import { atConsole, consoleLayer, type Person, withPerson } from "../browser/Browser.ts"
import { prepare } from "../browser/Meanwhile.ts"
import { withOrder } from "../browser/Purchase.ts"

const minutes = 5 * 60_000
const day = 86_400_000

const dialog = (person: Person) => person.page.locator("dialog[open]")

const undo = async (person: Person) => {
  await person.click("Undo")
  await person.sees("Undone.")
}

/** A perpetual license of Ida, with a new product and policy. */
const issuePerpetual = Effect.fnUntraced(function* (
  code: string,
  given: { readonly maintenance_expires_at?: number } = {}
) {
  const { client } = yield* TestServer
  const product = yield* client.products.create({ payload: { name: "P", code } })
  const { id: policy_id } = yield* client.policies.create({
    params: { id: product.id },
    payload: { name: "P", code, license_type: "perpetual" }
  })
  const { license } = yield* client.licenses.create({
    payload: { product_id: product.id, policy_id, customer_name: "Ida", ...given }
  })
  return { client, license, policy_id, product }
})

layer(consoleLayer, { timeout: minutes })("At the console", (it) => {
  const test = (name: string, ...story: Parameters<typeof withOrder>) => it.effect(name, withOrder(...story), minutes)

  it.effect(
    "an e-mail links to a customer only if no other has it, also among those that were not suggested",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client, product } = yield* prepare(0)
        const create = (code: string, email: string) =>
          client.customers.create({ payload: { code, name: `Name ${code}`, email } })
        yield* create("shared-1", "shared@example.com")
        // So many newer ones that the first is not suggested.
        for (let n = 0; n < 20; n++) yield* create(`filler-${n}`, `filler-${n}@example.com`)
        const second = yield* create("shared-2", "shared@example.com")
        yield* atConsole(skip, async (person) => {
          const linked = (value: string) =>
            person.page.locator(`[name="customer_id"][value="${value}"]`).waitFor({ state: "attached" })
          const typed = (text: string) =>
            person.page.getByRole("combobox", { name: "Customer", exact: true }).fill(text)
          await person.opens(`/licenses/new?product_id=${product.id}`, "Issue a license")
          await person.page.locator("datalist option[value*='shared-2']").waitFor({ state: "attached" })
          await typed("shared@example.com")
          await linked("?shared@example.com")
          await typed("filler-7@example.com")
          await person.page.locator("datalist option[value*='filler-7']").waitFor({ state: "attached" })
          await person.page.waitForFunction(`document.querySelector('[name="customer_id"]').value.startsWith("cust_")`)
          await typed("shared@")
          await person.page.locator("datalist option[value*='shared-2']").waitFor({ state: "attached" })
          await typed(`${second.name} · ${second.email} · ${second.code}`)
          await linked(second.id)
        })
      }),
    minutes
  )

  test("the status of an order is taken back together with its licenses", async (person, {
    client,
    license,
    number,
    order
  }) => {
    const now = async () => {
      const { status } = await Effect.runPromise(client.commerce.getOrder({ params: { id: order.id } }))
      const { status: ofLicense } = await Effect.runPromise(client.licenses.get({ params: { id: license.id } }))
      return [status, ofLicense]
    }
    await person.opens(`/orders/${order.id}`, `Order ${number}`)
    await person.click("Change status")
    await person.choose("Status", "Canceled")
    await person.choose("Its licenses", "Suspend")
    await person.click("Change status")
    await person.isDone()
    await person.sees("The order is canceled, and 1 license is suspended.")
    assert.deepStrictEqual(await now(), ["canceled", "suspended"])
    await undo(person)
    assert.deepStrictEqual(await now(), ["paid", "active"])
    await person.click(`Refund order ${number}`)
    await person.click("Refund")
    await person.isDone()
    await person.sees("The order is refunded, and 1 license is suspended.")
    // Somebody else's change since is not taken back.
    await Effect.runPromise(client.commerce.updateOrder({ params: { id: order.id }, payload: { status: "fulfilled" } }))
    await person.click("Undo")
    await person.sees("Not undone. Somebody has changed it again since")
    assert.deepStrictEqual(await now(), ["fulfilled", "suspended"])
    await person.page.reload()
    await person.click("Change status")
    await person.choose("Status", "Canceled")
    await person.choose("Its licenses", "Revoke")
    await person.click("Change status")
    await person.isDone()
    assert.strictEqual(await person.page.getByRole("button", { name: "Undo" }).count(), 0)
  })

  test("a subscription that goes on again is canceled again since the same day", async (person, {
    client,
    product
  }) => {
    const canceled_at = Date.parse("2026-01-05T00:00:00Z")
    const { id } = await Effect.runPromise(
      client.commerce.createSubscription({
        params: { id: product.id },
        payload: {
          external_system: "stripe",
          external_id: "back",
          status: "canceled",
          canceled_at,
          current_period_start: 0,
          current_period_end: 1
        }
      })
    )
    await person.opens(`/subscriptions/${id}`, "Subscription back")
    await person.click("Change status")
    await person.choose("Status", "Active")
    await person.click("Change status")
    await person.isDone()
    await person.sees("The subscription is active.")
    await undo(person)
    const after = await Effect.runPromise(client.commerce.getSubscription({ params: { id } }))
    assert.deepStrictEqual([after.status, after.canceled_at], ["canceled", canceled_at])
  })

  test("values of custom fields are taken back, unless somebody has changed them again", async (person, {
    client,
    license,
    name,
    product
  }) => {
    const define = (code: string, is_required: boolean) =>
      Effect.runPromise(
        client["custom-fields"].create({
          params: { id: product.id },
          payload: { resource_type: "license", code: code.toLowerCase(), name: code, value_type: "string", is_required }
        })
      )
    const [tier, note, must] = [await define("Tier", false), await define("Note", false), await define("Must", true)]
    const params = { id: license.id }
    const set = (field: string, string_value: string) =>
      Effect.runPromise(
        client["custom-fields"].setLicenseValue({ params: { ...params, field_id: field }, payload: { string_value } })
      )
    const values = async () => {
      const { items } = await Effect.runPromise(client["custom-fields"].listLicenseValues({ params, query: {} }))
      return Object.fromEntries(items.map(({ definition_id, string_value }) => [definition_id, string_value]))
    }
    await set(tier.id, "gold")
    await person.opens(`/licenses/${license.id}`, name)
    const edit = async (entries: Readonly<Record<string, string>>) => {
      await person.click("Edit custom fields")
      for (const [label, text] of Object.entries(entries))
        await dialog(person).getByLabel(label, { exact: true }).fill(text)
      await person.click("Save")
      await person.isDone()
    }
    await edit({ Tier: "silver", Note: "new" })
    assert.deepStrictEqual(await values(), { [tier.id]: "silver", [note.id]: "new" })
    await undo(person)
    assert.deepStrictEqual(await values(), { [tier.id]: "gold" })
    await edit({ Tier: "silver" })
    await set(tier.id, "theirs")
    await person.click("Undo")
    await person.sees("Not undone. Somebody has changed it again since")
    assert.deepStrictEqual(await values(), { [tier.id]: "theirs" })
    // The field must keep a value once it has one.
    await person.page.reload()
    await edit({ Must: "first" })
    assert.strictEqual(await person.page.getByRole("button", { name: "Undo" }).count(), 0)
    assert.strictEqual((await values())[must.id], "first")
  })

  it.effect(
    "a policy's reminders are changed, and maintenance is renewed",
    ({ skip }) =>
      Effect.gen(function* () {
        const maintenance_expires_at = Date.now() + 30 * day
        const { client, license, policy_id } = yield* issuePerpetual("maintained", { maintenance_expires_at })
        yield* withPerson(skip, async (person) => {
          await person.opens(`/policies/${policy_id}`, "P")
          await person.sees("7, 3, 1 days before")
          await person.click("Edit")
          await person.fill("Days of reminders", "30, soon")
          await person.press("Enter")
          await person.sees(/whole numbers with commas/)
          await person.fill("Days of reminders", "30, 5")
          await person.press("Enter")
          await person.isDone()
          await person.sees("30, 5 days before")
          await person.opens(`/licenses/${license.id}`, "Ida")
          await person.click("Renew maintenance")
          await person.page.getByRole("status", { name: "What changes" }).filter({ hasText: "Updates until" }).waitFor()
          assert.deepStrictEqual(await person.violations(), [])
          await person.click("Renew maintenance")
          await person.isDone()
        })
        const policy = yield* client.policies.get({ params: { id: policy_id } })
        assert.deepStrictEqual(policy.reminder_days, [30, 5])
        const renewed = yield* client.licenses.get({ params: { id: license.id } })
        const nextYear = new Date(maintenance_expires_at)
        nextYear.setUTCFullYear(nextYear.getUTCFullYear() + 1)
        assert.strictEqual(renewed.maintenance_expires_at, nextYear.getTime())
      }),
    minutes
  )

  it.effect(
    "a policy's new feature reaches a license that it is applied to",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client, license, policy_id, product } = yield* issuePerpetual("applied")
        const feature = yield* client.features.create({
          params: { id: product.id },
          payload: { name: "Night mode", code: "night-mode" }
        })
        yield* client.policies.setFeature({ params: { id: policy_id, feature_id: feature.id }, payload: {} })
        yield* withPerson(skip, async (person) => {
          await person.opens(`/licenses/${license.id}`, "Ida")
          await person.pick("More", "Apply policy")
          assert.deepStrictEqual(await person.violations(), [])
          await person.click("Apply policy")
          await person.isDone()
          await person.sees("Night mode")
        })
      }),
    minutes
  )

  it.effect(
    "what depends on a record is counted before it is deleted, and a transfer says what it changes",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client, license, product } = yield* issuePerpetual("depended")
        const params = { id: product.id }
        const assigned = yield* client.features.create({ params, payload: { name: "Night mode", code: "night" } })
        yield* client.features.create({ params, payload: { name: "Day mode", code: "day" } })
        yield* client.licenses.assignFeature({ params: { id: license.id }, payload: { feature_id: assigned.id } })
        yield* withPerson(skip, async (person) => {
          const says = (name: string, text: string) =>
            person.page.getByRole("status", { name }).filter({ hasText: text }).waitFor()
          await person.opens(`/products/${product.id}`, product.name)
          await person.pick("More", "Delete")
          await says("What depends on it", "Policies1Features2Licenses1")
          assert.deepStrictEqual(await person.violations(), [])
          await person.sees("It cannot be deleted while these exist.")
          await person.press("Escape")
          await person.pick("Actions for Night mode", "Delete Night mode")
          await says("What depends on it", "Licenses1It cannot be deleted while these exist.")
          await person.press("Escape")
          await person.pick("Actions for Day mode", "Delete Day mode")
          await says("What depends on it", "Nothing depends on it.")
          await person.click("Delete")
          await person.isDone()
          await person.page.getByText("Day mode").waitFor({ state: "detached" })
          assert.isTrue(await person.page.getByText("Night mode").isVisible())
          const policy = await Effect.runPromise(client.policies.get({ params: { id: license.policy_id } }))
          await person.opens(`/policies/${policy.id}`, policy.name)
          await person.click("Edit")
          await says("Licenses of the policy", "Licenses1Limits and rules hold for them at once")
          await person.opens(`/licenses/${license.id}`, "Ida")
          await person.pick("More", "Transfer")
          await person.fill("New owner’s name", "Anna")
          await says("What changes", "CustomerIda → Anna")
          await person.check("Replace the key")
          await person.sees(`…${license.license_key_last4}`)
          assert.deepStrictEqual(await person.violations(), [])
          await person.click("Transfer")
          await person.sees("this is its new key")
        })
        const after = yield* client.licenses.get({ params: { id: license.id } })
        assert.strictEqual(after.customer_name, "Anna")
      }),
    minutes
  )
})
