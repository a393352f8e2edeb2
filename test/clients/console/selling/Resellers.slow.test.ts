/** A batch of licenses for a reseller: who it is for, its name, the file of its keys, and how it is found again. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestServer } from "../../../support/http/TestServer.ts"
import { consoleLayer, withPerson } from "../browser/Browser.ts"

const minutes = 5 * 60_000
const count = 50

const prepare = Effect.gen(function* () {
  const { client } = yield* TestServer
  const product = yield* client.products.create({ payload: { name: "Northlight Editor", code: "editor" } })
  const params = { id: product.id }
  const payload = { name: "Team", code: "team", license_type: "perpetual" } as const
  const policy = yield* client.policies.create({ params, payload })
  const feature = yield* client.features.create({ params, payload: { name: "Export", code: "export" } })
  const reseller = yield* client.customers.create({
    payload: { name: "Resale KK", code: "resale", email: "resale@example.com" }
  })
  const bought = { external_system: "erp", external_id: "R-1", status: "paid", customer_id: reseller.id } as const
  const order = yield* client.commerce.createOrder({ params, payload: bought })
  return { client, product, policy, feature, reseller, order }
})

const twoPolicies = Effect.fnUntraced(function* (name: string) {
  const { client } = yield* TestServer
  const product = yield* client.products.create({ payload: { name, code: name.toLowerCase() } })
  for (const team of [`Team of ${name}`, `Group of ${name}`])
    yield* client.policies.create({
      params: { id: product.id },
      payload: { name: team, code: team.toLowerCase().replaceAll(" ", "-"), license_type: "perpetual" }
    })
  return { client, product }
})

layer(consoleLayer, { timeout: minutes })("At the console", (it) => {
  it.effect(
    "50 licenses for a reseller are issued with a name, saved as CSV in 6 interactions, and found by the name",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client, feature, order, policy, reseller } = yield* prepare
        yield* withPerson(skip, async (person) => {
          await person.opens(`/customers/${reseller.id}`, "Resale KK")
          const before = person.interactions
          await person.click("Issue")
          await person.click("Issue a batch", "link")
          await person.seesHeading("Issue a batch")
          await person.choose("Policy", "Team")
          await person.fill("Number of licenses", String(count))
          await person.click("Issue the batch")
          await person.seesHeading(`${count} licenses issued`)
          const download = person.page.waitForEvent("download")
          await person.click("Save as CSV")
          assert.isAtMost(person.interactions - before, 6)
          const text = Buffer.concat(await (await (await download).createReadStream()).toArray()).toString()
          const [header, first, ...others] = text.trim().split("\r\n")
          assert.strictEqual(header, "id,license_key,customer_name,customer_email,product,policy,expires_at")
          assert.match(first ?? "", /^lic_\w+,LK-[^,]+,,,Northlight Editor,Team,/)
          assert.lengthOf(others, count - 1)

          await person.opens(`/licenses/batch?customer_id=${reseller.id}&order_id=${order.id}`, "Issue a batch")
          await person.choose("Policy", "Team")
          await person.fill("Number of licenses", "2")
          await person.fill("Name of the batch", "Spring fair, Tōkyō")
          await person.check("Export")
          await person.click("Issue the batch")
          await person.seesHeading("2 licenses issued")
          const named = person.page.waitForEvent("download")
          await person.click("Save as CSV")
          assert.strictEqual((await named).suggestedFilename(), "license-keys-Spring-fair-Tōkyō.csv")
          await person.click("Done", "link")
          await person.sees("2 licenses")
          await person.page.getByRole("row").nth(1).getByRole("link").first().click()
          await person.sees("Export")
          await person.click("Spring fair, Tōkyō", "link")
          await person.seesHeading("Licenses")
          await person.sees("2 licenses")
        })
        const query = { "metadata[batch]": "Spring fair, Tōkyō" }
        const { items } = yield* client.licenses.list({ query })
        assert.deepStrictEqual(
          items.map(({ customer_id, order_id, policy_id }) => [customer_id, order_id, policy_id]),
          Array.from({ length: 2 }, () => [reseller.id, order.id, policy.id])
        )
        const features = yield* client.licenses.listFeatures({ params: { id: items[0]!.id }, query: {} })
        assert.deepStrictEqual(
          features.items.map(({ feature_id }) => feature_id),
          [feature.id]
        )
      }),
    minutes
  )

  it.effect(
    "another product keeps what was typed for it, but for what belongs to the one before",
    ({ skip }) =>
      Effect.gen(function* () {
        const [one, other] = [yield* twoPolicies("One"), yield* twoPolicies("Other")]
        yield* withPerson(skip, async (person) => {
          const value = (label: string) => person.page.getByLabel(label).first().inputValue()
          for (const path of ["/licenses/new", "/licenses/batch"]) {
            await person.opens(`${path}?product_id=${one.product.id}`, /^Issue a/)
            await person.choose("Policy", "Team of One")
            await person.fill("Devices", "7")
            await person.click("Add an entry")
            await person.fill("Key of new entry", "contract")
            await person.fill("Value of contract", "C-17")
            await person.choose("Product", "Other")
            await person.choose("Policy", "Team of Other")
            assert.deepStrictEqual([await value("Devices"), await value("Value of contract")], ["7", "C-17"])
          }
          await person.fill("Number of licenses", "2")
          await person.click("Issue the batch")
          await person.seesHeading("2 licenses issued")
          await person.click("Save as CSV")
        })
        const { items } = yield* other.client.licenses.list({ query: { product_id: other.product.id } })
        assert.deepStrictEqual(
          items.map(({ max_activations, metadata }) => ({ max_activations, metadata })),
          [0, 1].map(() => ({ max_activations: 7, metadata: { contract: "C-17" } }))
        )
      }),
    minutes
  )
})
