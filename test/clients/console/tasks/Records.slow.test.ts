/** What vendors add to records, at the console: custom fields with their values, and metadata. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { consoleLayer, looks, type Person, withPerson } from "../browser/Browser.ts"
import { prepareOrder, withOrder } from "../browser/Purchase.ts"

const minutes = 5 * 60_000

const openDialog = (person: Person) => person.page.locator("dialog[open]")

/** What is said beside the inputs that are marked. */
const faultsOf = async (person: Person) => {
  await openDialog(person).locator("[aria-invalid]").first().waitFor()
  return openDialog(person).locator(".fault").allTextContents()
}

layer(consoleLayer, { timeout: minutes })("At the console", (it) => {
  const test = (name: string, ...story: Parameters<typeof withOrder>) => it.effect(name, withOrder(...story), minutes)

  test("custom fields of every type are defined, and their options are for one type", async (person, prepared) => {
    const { client, product } = prepared
    await person.opens(`/products/${product.id}`, product.name)
    const define = async (name: string, type: string, fill: () => Promise<void> = async () => {}) => {
      await person.click("New custom field")
      await person.fill("Name", name)
      await person.fill("Code", name.toLowerCase())
      await person.choose("For", "Licenses")
      await person.choose("Type", type)
      await fill()
      await person.click("Create custom field")
    }
    await define("Note", "Text", async () => {
      assert.isFalse(await openDialog(person).getByLabel("Options").isVisible())
    })
    await person.isDone()
    for (const [name, type] of [
      ["Seats", "Whole number"],
      ["Vip", "Yes or no"],
      ["Renewal", "Date and time"]
    ] as const) {
      await define(name, type)
      await person.isDone()
    }
    await define("Tier", "Choice")
    assert.deepStrictEqual(await faultsOf(person), ["Give at least one option."])
    assert.deepStrictEqual(await person.violations(), [])
    await person.fill("Options", "gold\nsilver")
    await person.click("Create custom field")
    await person.isDone()
    await person.pick("Actions for Tier", "Edit Tier")
    await person.fill("Options", "gold\nsilver\nbronze")
    await person.click("Save")
    await person.isDone()
    await person.sees("gold, silver, bronze")
    await person.pick("Actions for Note", "Delete Note")
    await person.click("Delete")
    await person.isDone()
    const params = { id: product.id }
    const { items } = await Effect.runPromise(client["custom-fields"].list({ params, query: {} }))
    assert.deepStrictEqual(
      items.map(({ enum_options, name, value_type }) => [name, value_type, ...enum_options]).toReversed(),
      [
        ["Seats", "integer"],
        ["Vip", "boolean"],
        ["Renewal", "datetime"],
        ["Tier", "enum", "gold", "silver", "bronze"]
      ]
    )
  })

  test("values of a license's custom fields are set and cleared with inputs of their type", async (person, prepared) => {
    const { client, license, name, product } = prepared
    const define = (code: string, value_type: "string" | "integer" | "boolean" | "datetime" | "enum", more = {}) =>
      Effect.runPromise(
        client["custom-fields"].create({
          params: { id: product.id },
          payload: { resource_type: "license", code, name: code, value_type, ...more }
        })
      )
    await define("note", "string")
    await define("seats", "integer", { is_required: true })
    await define("vip", "boolean")
    await define("renewal", "datetime")
    await define("tier", "enum", { enum_options: ["gold", "silver"] })
    const values = async () => {
      const request = client["custom-fields"].listLicenseValues({ params: { id: license.id }, query: {} })
      const { items } = await Effect.runPromise(request)
      return Object.fromEntries(
        items.map((value) => [
          value.code,
          value.string_value ?? value.integer_value ?? value.boolean_value ?? value.datetime_value ?? value.enum_value
        ])
      )
    }
    await person.opens(`/licenses/${license.id}`, name)
    await person.click("Edit custom fields")
    await person.fill("note", "from the fair")
    await person.fill("seats", "1.5")
    await person.press("Enter")
    assert.deepStrictEqual(await faultsOf(person), ["This is no whole number, or too large a one."])
    assert.deepStrictEqual(await values(), {})
    await person.fill("seats", "-3")
    await person.choose("vip", "No")
    await person.fill("renewal", "2027-01-02T03:04")
    await person.choose("tier", "silver")
    await person.click("Save")
    await person.isDone()
    const renewal = Date.parse("2027-01-02T08:04:00Z")
    assert.deepStrictEqual(await values(), { note: "from the fair", seats: -3, vip: false, renewal, tier: "silver" })
    await person.sees("2 Jan 2027, 03:04")
    await person.click("Edit custom fields")
    await person.choose("vip", "Choose…")
    await person.fill("seats", "")
    await person.click("Save")
    assert.deepStrictEqual(await faultsOf(person), ["The field is required: set another value instead of clearing it."])
    person.problems.length = 0
    await person.fill("seats", "4")
    await person.click("Save")
    await person.isDone()
    assert.deepStrictEqual(await values(), { note: "from the fair", seats: 4, renewal, tier: "silver" })
  })

  test("values of a customer's custom fields are set by product, and two people see each other's", async (person, p) => {
    const { client, customer, name, product } = p
    const { id: field_id } = await Effect.runPromise(
      client["custom-fields"].create({
        params: { id: product.id },
        payload: { resource_type: "customer", code: "region", name: "Region", value_type: "string" }
      })
    )
    const params = { id: customer.id, field_id }
    const set = (string_value: string) =>
      Effect.runPromise(client["custom-fields"].setCustomerValue({ params, payload: { string_value } }))
    await person.opens(`/customers/${customer.id}`, name)
    await person.click(`Edit custom fields of ${product.name.toLowerCase()}`)
    await set("north")
    await person.fill("Region", "south")
    await person.press("Enter")
    assert.deepStrictEqual(await faultsOf(person), [
      "Somebody else changed this meanwhile: it is now north. “Save” again replaces that."
    ])
    await person.press("Enter")
    await person.isDone()
    await person.sees("south")
  })

  test("metadata is edited by entries of a type, and what is wrong is said beside its entry", async (person, prepared) => {
    const { client, customer, name } = prepared
    const params = { id: customer.id }
    const nested = { a: [1, null] }
    await Effect.runPromise(client.customers.update({ params, payload: { metadata: { crm: "4711", nested } } }))
    await person.opens(`/customers/${customer.id}`, name)
    await person.click("Edit")
    const add = async (key: string, type: string) => {
      await person.click("Add an entry")
      await person.page.keyboard.type(key)
      await person.choose(`Type of ${key}`, type)
    }
    await person.click("Add an entry")
    await person.page.keyboard.type("crm")
    assert.deepStrictEqual(await faultsOf(person), ["Another entry has this key already."])
    await person.press("Enter")
    await openDialog(person).getByText("Correct the entries that are marked.").waitFor()
    assert.deepStrictEqual(await person.violations(), [])
    await openDialog(person).getByLabel("Key of crm").last().fill("seats")
    await person.choose("Type of seats", "Number")
    await person.fill("Value of seats", "many")
    assert.include(await faultsOf(person), "This is no number.")
    await person.fill("Value of seats", "2.5")
    await add("vip", "Yes or no")
    await person.choose("Value of vip", "Yes")
    await add("left", "Nothing")
    await add("tags", "JSON")
    await person.fill("Value of tags", `["a",`)
    assert.include((await faultsOf(person)).join(" "), "This is no JSON")
    await person.fill("Value of tags", `["a", 1]`)
    await person.click("Remove crm")
    assert.strictEqual(await person.page.evaluate("document.activeElement.textContent"), "Add an entry")
    await person.click("Save")
    await person.isDone()
    const { metadata } = await Effect.runPromise(client.customers.get({ params }))
    assert.deepStrictEqual(metadata, { nested, seats: 2.5, vip: true, left: null, tags: ["a", 1] })
    await person.sees(`["a",1]`)
  })

  test("metadata beyond its limits is refused beside it", async (person, { client, customer, name }) => {
    const params = { id: customer.id }
    const metadata = Object.fromEntries(Array.from({ length: 63 }, (_, index) => [`key-${index}`, index]))
    await Effect.runPromise(client.customers.update({ params, payload: { metadata } }))
    await person.opens(`/customers/${customer.id}`, name)
    await person.click("Edit")
    await person.click("Add an entry")
    await person.page.keyboard.type("long")
    // With 64 entries there is no further one to add.
    assert.strictEqual(await openDialog(person).getByRole("button", { name: "Add an entry" }).count(), 0)
    await person.fill("Value of long", "x".repeat(17_000))
    await person.press("Enter")
    await openDialog(person).getByText("Expected metadata with at most 16384 bytes of JSON").waitFor()
    await person.fill("Value of long", "short")
    await person.press("Enter")
    await person.isDone()
  })

  it.effect(
    "no dialog has what axe finds fault with: light, dark, and on a phone",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client, customer, license, number, order, product } = yield* prepareOrder
        const params = { id: product.id }
        const payload = { resource_type: "license", code: "tier", name: "Tier", value_type: "enum" } as const
        yield* client["custom-fields"].create({ params, payload: { ...payload, enum_options: ["gold"] } })
        const metadata = { crm: "4711", vip: true, left: null, seats: 3 }
        yield* client.commerce.updateOrder({ params: { id: order.id }, payload: { metadata } })
        const dialogs = [
          [`/orders/${order.id}`, `Order ${number}`, `Refund order ${number}`],
          [`/orders/${order.id}`, `Order ${number}`, "Change status"],
          [`/orders/${order.id}`, `Order ${number}`, "Edit", "More"],
          [`/subscriptions?product_id=${product.id}`, "Subscriptions", "New subscription"],
          [`/products/${product.id}/versions`, "Versions", "New version"],
          [`/products/${product.id}`, product.name, "New custom field"],
          [`/licenses/${license.id}`, customer.name, "Edit custom fields"]
        ] as const
        const overflow = "document.querySelector('dialog').scrollWidth - document.querySelector('dialog').clientWidth"
        yield* withPerson(skip, async (person) => {
          for (const [path, heading, button, menu] of dialogs) {
            await person.opens(path, heading)
            if (menu !== undefined) await person.click(menu)
            await person.click(button)
            await person.inLooks(looks, async (look) => {
              const where = `${button}, ${JSON.stringify(look)}`
              assert.deepStrictEqual(await person.violations(), [], where)
              assert.isAtMost(Number(await person.page.evaluate(overflow)), 0, where)
            })
          }
        })
      }),
    minutes
  )
})
