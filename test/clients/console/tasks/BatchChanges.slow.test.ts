/** Many licenses at once: chosen in the list, checked and changed by a job, with what was refused and why; and issued in a batch. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestServer } from "../../../support/http/TestServer.ts"
import { type Person, withPerson } from "../browser/Browser.ts"
import { bulkLayer } from "../browser/BulkWorker.ts"

const minutes = 5 * 60_000

let products = 0

/** A product with so many licenses. */
const prepare = Effect.fnUntraced(function* (count: number) {
  const { client } = yield* TestServer
  const name = `Batch ${++products}`
  const product = yield* client.products.create({ payload: { name, code: `batch-${products}` } })
  const policy = yield* client.policies.create({
    params: { id: product.id },
    payload: { name: `Team ${products}`, code: "team", license_type: "subscription", duration_days: 30 }
  })
  const batch = Array.from({ length: count }, (_, index) => ({
    product_id: product.id,
    policy_id: policy.id,
    customer_name: `${name} customer ${index + 1}`
  }))
  const issued = count === 0 ? { licenses: [] } : yield* client.licenses.createBatch({ payload: { licenses: batch } })
  const all = client.licenses.list({ query: { product_id: product.id, limit: 200 } })
  const revoke = (id: string) => client.licenses.revoke({ params: { id } })
  return { name, policy, product, ids: issued.licenses.map(({ license }) => license.id), all, revoke }
})

const countBy = <A extends { readonly status: string }>(items: ReadonlyArray<A>, status: string) =>
  items.filter((each) => each.status === status).length

const downloaded = async (person: Person, click: () => Promise<void>) => {
  const download = person.page.waitForEvent("download")
  await click()
  return Buffer.concat(await (await (await download).createReadStream()).toArray()).toString()
}

/** The browser reports refused requests itself. */
const forgive = (person: Person) => {
  person.problems.splice(0, person.problems.length, ...person.problems.filter((text) => !text.includes("status of 4")))
}

layer(bulkLayer, { timeout: minutes })("Of many licenses", (it) => {
  it.effect(
    "110 are checked and then suspended by a job, whose page lists what was refused and why",
    ({ skip }) =>
      Effect.gen(function* () {
        const { all, ids, name, product, revoke } = yield* prepare(110)
        for (const id of ids.slice(0, 3)) yield* revoke(id)
        yield* withPerson(skip, async (person) => {
          await person.opens(`/licenses?product_id=${product.id}&expires=next_30_days`, "Licenses")
          await person.page.getByLabel("Choose all on this page").check()
          await person.sees("100 licenses chosen")
          await person.click("Choose all 110 that match")
          await person.sees("110 licenses chosen")
          await person.click("Suspend")
          await person.sees("All licenses that match the filters")
          await person.fill("Reason", "Not paid.")
          await person.click("Check")
          await person.sees("107 of 110 licenses would change. Nothing is changed yet.")
          await person.sees(`${name} customer 2`)
          assert.strictEqual(countBy((await Effect.runPromise(all)).items, "active"), 107)
          await person.click("Suspend 107 licenses")
          await person.seesHeading("Suspend 110 licenses")
          await person.sees("107 licenses changed.")
          await person.sees("Not paid.")
          await person.page.getByRole("link", { name: `${name} customer 2` }).waitFor()
          assert.match((await person.page.locator("tbody td").first().textContent()) ?? "", /revoked/)
          const file = await downloaded(person, () => person.click("Refusals as CSV"))
          assert.strictEqual(file.trim().split("\r\n").length, 4)
          assert.include(file, ids[0]!)
          assert.strictEqual(await person.page.getByRole("progressbar").count(), 0)
          await person.click("All bulk jobs", "link")
          await person.seesHeading("Bulk jobs")
          await person.page.locator(".navigation a[aria-current]", { hasText: "Licenses" }).waitFor()
          await person.page.getByRole("row", { name: /^Suspend ?Not paid. Completed 110 107 3/ }).waitFor()
          await person.page.getByRole("row", { name: /^Check: suspend ?Not paid. Completed 110 – 3/ }).waitFor()
          await person.choose("Change", "Reinstate")
          await person.sees("No bulk job matches")
        })
        const { items } = yield* all
        assert.deepStrictEqual([countBy(items, "suspended"), countBy(items, "revoked")], [107, 3])
      }),
    minutes
  )

  it.effect(
    "of a customer are suspended and reinstated in 7 interactions, and the overview leads to updates that end in one",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client } = yield* TestServer
        const { policy, product } = yield* prepare(0)
        const name = `Owner of ${product.code}`
        const customer = yield* client.customers.create({ payload: { name, code: product.code } })
        const licensed = { product_id: product.id, policy_id: policy.id, customer_id: customer.id }
        yield* client.licenses.createBatch({ payload: { licenses: [licensed, licensed, licensed] } })
        const list = client.licenses.list({ query: { customer_id: customer.id } })
        const suspended = () => Effect.runPromise(list).then(({ items }) => countBy(items, "suspended"))
        const forever = { name: "Forever", code: "forever", license_type: "perpetual" } as const
        const { id } = yield* client.policies.create({ params: { id: product.id }, payload: forever })
        const maintenance_expires_at = Date.now() + 10 * 86_400_000
        const ending = { product_id: product.id, policy_id: id, customer_name: "Soon without updates" }
        yield* client.licenses.create({ payload: { ...ending, maintenance_expires_at } })
        yield* withPerson(skip, async (person) => {
          await person.opens(`/customers/${customer.id}`, name)
          await person.click("All in the list", "link")
          await person.check("Choose all on this page")
          await person.click("Suspend")
          await person.click("Check")
          await person.click("Suspend 3 licenses")
          await person.sees("3 licenses changed.")
          assert.strictEqual(await suspended(), 3)
          await person.click("Reinstate them")
          await person.click("Reinstate 3 licenses")
          await person.seesHeading("Reinstate 3 licenses")
          await person.sees("3 licenses changed.")
          assert.isAtMost(person.interactions, 7)
          assert.strictEqual(await suspended(), 0)
          await person.opens("", "Overview")
          await person.click("The updates of 1 license end in 30 days", "link")
          await person.seesHeading("Licenses")
          await person.sees("1 license")
          await person.page.getByRole("columnheader", { name: "Updates until" }).waitFor()
          await person.click("Soon without updates", "link")
          await person.sees(/^updates until \d/)
        })
      }),
    minutes
  )

  it.effect(
    "chosen rows stay chosen on the next page, and are extended and exported",
    ({ skip }) =>
      Effect.gen(function* () {
        const { all, product } = yield* prepare(102)
        const before = yield* all
        const sumOf = ({ items }: typeof before) => items.reduce((sum, { expires_at = 0 }) => sum + expires_at, 0)
        yield* withPerson(skip, async (person) => {
          await person.opens(`/licenses?product_id=${product.id}`, "Licenses")
          await person.page.locator("tbody input[type=checkbox]").first().check()
          await person.click("Next page", "link")
          await person.page.locator("tbody tr").nth(2).waitFor({ state: "detached" })
          await person.page.locator("tbody input[type=checkbox]").first().check()
          await person.sees("2 licenses chosen")
          const file = await downloaded(person, () => person.pick("Other actions", "Export chosen as CSV"))
          assert.strictEqual(file.trim().split("\r\n").length, 3)
          await person.click("Extend")
          await person.fill("Days to add", "")
          await person.click("Check")
          await person.sees(/Expected exactly one of/)
          await person.fill("Days to add", "9")
          await person.click("Check")
          await person.sees("2 of 2 licenses would change.")
          await person.click("Back")
          await person.fill("Days to add", "10")
          await person.click("Check")
          await person.click("Extend 2 licenses")
          await person.sees("2 licenses changed.")
        })
        assert.strictEqual(sumOf(yield* all) - sumOf(before), 2 * 10 * 86_400_000)
      }),
    minutes
  )

  it.effect(
    "a job whose response is lost is not created twice",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client } = yield* TestServer
        const { policy, product } = yield* prepare(2)
        yield* withPerson(skip, async (person) => {
          let isLost = true
          await person.page.route("**/bulk-jobs", async (route) => {
            const isChange = route.request().method() === "POST" && !route.request().postDataJSON().dry_run
            if (!isChange || !isLost) return route.continue()
            await route.fetch()
            return route.abort()
          })
          await person.opens(`/licenses?product_id=${product.id}`, "Licenses")
          await person.page.getByLabel("Choose all on this page").check()
          await person.pick("Other actions", "Move to a policy")
          await person.choose("New policy", policy.name)
          await person.page.getByLabel("Keep the features").check()
          await person.click("Check")
          await person.sees("There is nothing to do: no license would change.")
          await person.click("Close")
          await person.pick("Other actions", "Change limits and metadata")
          await person.fill("Floating seats", "7")
          await person.click("Check")
          await person.click("Change 2 licenses")
          await person.sees("The service cannot be reached")
          isLost = false
          await person.click("Change 2 licenses")
          await person.sees("2 licenses changed.")
          person.problems.length = 0
        })
        const { items } = yield* client.bulkJobs.list({ query: { action: "update" } })
        assert.deepStrictEqual(
          items.map(({ dry_run }) => dry_run),
          [false, true]
        )
      }),
    minutes
  )

  it.effect(
    "axe finds no fault with choosing, asking, checking and results: light, dark, and on a phone",
    ({ skip }) =>
      Effect.gen(function* () {
        const { ids, product, revoke } = yield* prepare(3)
        yield* revoke(ids[0]!)
        yield* withPerson(skip, async (person) => {
          await person.opens(`/licenses?product_id=${product.id}`, "Licenses")
          await person.page.getByLabel("Choose all on this page").check()
          await person.sees("3 licenses chosen")
          await person.isFaultless()
          await person.click("Extend")
          await person.isFaultless()
          await person.click("Check")
          await person.sees("2 of 3 licenses would change.")
          await person.isFaultless()
        })
      }),
    minutes
  )

  it.effect(
    "a batch is issued for a list of customers: a wrong line is named, the keys are saved, and nobody leaves without them by mistake",
    ({ skip }) =>
      Effect.gen(function* () {
        const { all, name, policy } = yield* prepare(0)
        const ownKey = `OWN-KEY-${products}-000000000001`
        yield* withPerson(skip, async (person) => {
          await person.opens("/licenses/batch", "Issue a batch")
          await person.choose("Product", name)
          await person.choose("Policy", policy.name)
          await person.click("Issue the batch")
          await person.sees("It is not said how many licenses to issue: give a number, or the customers.")
          const good = ["Ada Lovelace, ada@example.com", `"Babbage, Charles",charles@example.com,${ownKey}`]
          await person.fill("Customers", [good[0], "Grace, no address"].join("\n"))
          await person.click("Issue the batch")
          await person.sees(/^Line 2: /)
          assert.deepStrictEqual(await person.violations(), [])
          await person.fill("Customers", good.join("\n"))
          await person.click("Issue the batch")
          await person.seesHeading("2 licenses issued")
          await person.sees(ownKey)
          assert.deepStrictEqual(await person.violations(), [])
          await person.click("Devices", "link")
          await person.sees("Leave without the keys?")
          assert.deepStrictEqual(await person.violations(), [])
          await person.click("Stay")
          const file = await downloaded(person, () => person.click("Save as CSV"))
          assert.include(file, `${ownKey},"Babbage, Charles",charles@example.com`)
          assert.match(file, /LK-[0-9A-Z-]+,Ada Lovelace,ada@example.com/)
          await person.click("Done", "link")
          await person.seesHeading("Licenses")
          assert.notInclude(await person.page.content(), ownKey)
          forgive(person)
        })
        const { items } = yield* all
        assert.deepStrictEqual(items.map(({ customer_name }) => customer_name).toSorted(), [
          "Ada Lovelace",
          "Babbage, Charles"
        ])
      }),
    minutes
  )

  it.effect(
    "a batch whose response is lost is not issued twice",
    ({ skip }) =>
      Effect.gen(function* () {
        const { all, name, policy } = yield* prepare(0)
        yield* withPerson(skip, async (person) => {
          let isLost = true
          await person.page.route("**/licenses/batch", async (route) => {
            if (route.request().method() !== "POST" || !isLost) return route.continue()
            await route.fetch()
            return route.abort()
          })
          await person.opens("/licenses/batch", "Issue a batch")
          await person.choose("Product", name)
          await person.choose("Policy", policy.name)
          await person.fill("Number of licenses", "5")
          await person.click("Issue the batch")
          await person.sees("The service cannot be reached")
          isLost = false
          await person.click("Issue the batch")
          await person.seesHeading("5 licenses issued")
          person.problems.length = 0
        })
        assert.strictEqual((yield* all).items.length, 5)
      }),
    minutes
  )
})
