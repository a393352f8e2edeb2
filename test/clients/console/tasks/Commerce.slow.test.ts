/** What is sold, at the console: orders, subscriptions and their settlement, versions. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { makeMetered } from "../../../support/http/IssuedLicenses.ts"
import { consoleLayer, withPerson } from "../browser/Browser.ts"
import { become, withOrder } from "../browser/Purchase.ts"

const minutes = 5 * 60_000

layer(consoleLayer, { timeout: minutes })("At the console", (it) => {
  const test = (name: string, ...story: Parameters<typeof withOrder>) => it.effect(name, withOrder(...story), minutes)

  test("an order is edited by two people, and neither overwrites the other silently", async (person, {
    client,
    number,
    order: { id }
  }) => {
    const params = { id }
    await person.opens(`/orders/${id}`, `Order ${number}`)
    await person.pick("More", "Edit")
    const theirs = { external_system: "paddle", metadata: { note: "theirs" } }
    await Effect.runPromise(client.commerce.updateOrder({ params, payload: theirs }))
    await person.fill("System", "stripe_eu.1")
    await person.press("Enter")
    await person.sees("Somebody else changed this meanwhile: it is now paddle.")
    await person.press("Enter")
    await person.isDone()
    const stored = await Effect.runPromise(client.commerce.getOrder({ params }))
    assert.strictEqual(stored.external_system, "stripe_eu.1")
    assert.deepStrictEqual(stored.metadata, { note: "theirs" })
    await person.sees("System: paddle → stripe_eu.1")
    await person.page.route("**/api/v1/events?*", (route) =>
      route.request().url().includes("cursor=")
        ? route.continue()
        : route.fulfill({
            json: {
              data: [],
              page_info: { next_cursor: 999_999 },
              meta: { request_id: "req_empty000", timestamp: "2026-01-01T00:00:00.000Z" }
            }
          })
    )
    await person.page.reload()
    await person.sees("Nothing is found among the latest events: look at earlier ones.")
  })

  test(
    "an order's status changes together with its licenses, with the keyboard alone",
    async (person, { number, order }) => {
      await person.opens(`/orders/${order.id}`, `Order ${number}`)
      await person.page.getByRole("button", { name: "Change status" }).focus()
      await person.press("Enter")
      await person.sees("The status is a record: by itself it changes no license.")
      // The first field has the focus; a letter chooses the option that begins with it.
      await person.press("c")
      await person.press("Tab")
      await person.press("ArrowDown")
      await person.press("Tab")
      await person.press("Tab")
      await person.press("Enter")
      await person.isDone()
      assert.strictEqual(await person.page.evaluate("document.activeElement.textContent"), "Change status")
      await person.sees("Status: paid → canceled")
    },
    become("canceled", "suspended")
  )

  test("a customer's orders are found also behind many other products", async (person, {
    client,
    customer,
    name,
    number
  }) => {
    const codes = Array.from({ length: 11 }, (_, index) => `a-product-${index}`)
    for (const code of codes) await Effect.runPromise(client.products.create({ payload: { name: code, code } }))
    await person.opens(`/customers/${customer.id}`, name)
    await person.sees("Only 10 products are shown here")
    await person.page.getByRole("link", { name: number }).waitFor()
  })

  test("a refused order is told beside its field, and a period has both ends", async (person, {
    client,
    customer,
    email,
    number,
    order,
    product
  }) => {
    await person.opens(`/orders?product_id=${product.id}`, "Orders")
    await person.sees("1 order")
    await person.click("New order")
    await person.fill("Number", number)
    await person.fill("System", "stripe")
    await person.fill("Customer", email)
    await person.page.locator(`[name="customer_id"][value="${customer.id}"]`).waitFor({ state: "attached" })
    await person.press("Enter")
    const dialog = person.page.locator("dialog[open]")
    await dialog.getByLabel("Number").and(person.page.locator("[aria-invalid]")).waitFor()
    const fault = (await dialog.locator(".fault").textContent()) ?? ""
    assert.notMatch(fault, /_/)
    assert.include(fault, "“Number”")
    assert.deepStrictEqual(await person.violations(), [])
    person.problems.length = 0
    await person.fill("Number", `${number}-b`)
    await person.press("Enter")
    await person.seesHeading(`Order ${number}-b`)
    await person.opens(`/orders?product_id=${product.id}&customer_id=${customer.id}`, "Orders")
    await person.sees("2 orders")
    // A change of one end sends the other one, too.
    const params = { id: order.id }
    const period = {
      period_start: Date.parse("2026-01-01T05:00:00.123Z"),
      period_end: Date.parse("2026-02-01T05:00:00Z")
    }
    await Effect.runPromise(client.commerce.updateOrder({ params, payload: period }))
    await person.opens(`/orders/${order.id}`, `Order ${number}`)
    await person.pick("More", "Edit")
    await person.fill("Period ends", "2026-03-01T00:00")
    // Meanwhile somebody else moves the other end: first before the form reads it again, then right after.
    const begins = [Date.parse("2026-01-02T05:00:00Z"), Date.parse("2026-01-03T05:00:00Z")] as const
    const move = (period_start: number) =>
      Effect.runPromise(client.commerce.updateOrder({ params, payload: { ...period, period_start } }))
    await move(begins[0])
    let isFirst = true
    await person.page.route(`**/api/v1/orders/${order.id}`, async (route) => {
      if (route.request().method() === "PATCH" && isFirst) {
        isFirst = false
        await move(begins[1])
      }
      await route.continue()
    })
    await person.press("Enter")
    await person.isDone()
    const { period_end, period_start } = await Effect.runPromise(client.commerce.getOrder({ params }))
    assert.deepStrictEqual([period_start, period_end], [begins[1], Date.parse("2026-03-01T05:00:00Z")])
    assert.isFalse(isFirst)
    // The browser itself reports the refused request.
    person.problems.length = 0
  })

  it.effect(
    "a subscription is settled for the period that is chosen, which is in the address",
    ({ skip }) =>
      Effect.gen(function* () {
        const { consume, customer, license, subscription } = yield* makeMetered
        yield* consume("renders", 41, "event-1")
        yield* withPerson(skip, async (person) => {
          await person.opens(`/subscriptions/${subscription.id}`, `Subscription ${subscription.external_id}`)
          const byFeature = person.page.getByRole("table", { name: "Usage by feature" })
          await byFeature.getByRole("cell", { name: "41", exact: true }).waitFor()
          const byLicense = person.page.getByRole("table", { name: "Usage by license" })
          await byLicense.getByRole("link", { name: customer.name }).waitFor()
          await person.fill("To the end of", "2020-01-05")
          await person.press("Enter")
          await person.page.waitForURL(/to=.*2020-01-05/)
          await person.fill("From", "2020-01-01")
          await person.press("Enter")
          await person.page.waitForURL(/from=.*2020-01-01/)
          // A year has four digits: each of the first three makes another day.
          await person.page.getByLabel("To the end of").focus()
          await person.page.keyboard.type("02022020")
          await person.press("Enter")
          await person.page.waitForURL(/to=.*2020-02-02/)
          await person.sees("Nothing was used in this period.")
          assert.match(person.page.url(), /from=.*2020-01-01.*&to=.*2020-02-02/)
          await person.page.reload()
          await person.sees("Nothing was used in this period.")
          await person.click("The usual period", "link")
          await byFeature.waitFor()
          assert.deepStrictEqual(await person.violations(), [])
          await person.page.getByRole("link", { name: customer.name }).first().waitFor()
        })
        assert.strictEqual(license.subscription_id, subscription.id)
      }),
    minutes
  )

  it.effect(
    "a settlement keeps its days and names where it cannot be read again",
    ({ skip }) =>
      Effect.gen(function* () {
        const { consume, customer, subscription } = yield* makeMetered
        yield* consume("renders", 41, "event-1")
        yield* withPerson(skip, async (person) => {
          await person.opens(`/subscriptions/${subscription.id}`, `Subscription ${subscription.external_id}`)
          const settlement = person.page.getByRole("region", { name: "Settlement" })
          const named = settlement.getByRole("link", { name: customer.name })
          await named.waitFor()
          const days = () =>
            Promise.all(["From", "To the end of"].map((day) => settlement.getByLabel(day).inputValue()))
          const before = await days()
          await person.page.route(/settlement\?|\/licenses\?.*limit=200/, (route) => route.abort())
          await person.click("Edit")
          await person.fill("System", "paddle")
          await person.click("Save")
          await person.isDone()
          await settlement.getByText("The service cannot be reached").waitFor()
          assert.deepStrictEqual(await days(), before)
          assert.strictEqual(await named.count(), 1)
          person.problems.length = 0
        })
      }),
    minutes
  )

  test("a subscription is recorded, and canceled with its license", async (person, {
    client,
    customer,
    email,
    product
  }) => {
    const params = { id: product.id }
    await person.opens(`/subscriptions?product_id=${product.id}`, "Subscriptions")
    await person.sees("This product has no subscriptions yet")
    await person.click("New subscription")
    await person.fill("Number", "sub-1")
    await person.fill("System", "stripe")
    await person.fill("Customer", email)
    await person.page.locator(`[name="customer_id"][value="${customer.id}"]`).waitFor({ state: "attached" })
    await person.fill("Current period ends", "2020-01-01T00:00")
    await person.press("Enter")
    const fault = await person.page.locator("dialog .fault").textContent()
    assert.include(fault ?? "", "“Current period ends”")
    person.problems.length = 0
    await person.fill("Current period ends", "2099-01-01T00:00")
    await person.press("Enter")
    await person.seesHeading("Subscription sub-1")
    const { items } = await Effect.runPromise(client.commerce.listSubscriptions({ params, query: {} }))
    assert.deepStrictEqual(
      items.map(({ customer_id, status }) => [customer_id, status]),
      [[customer.id, "active"]]
    )
    await person.click("Change status")
    await person.choose("Status", "Canceled")
    await person.choose("Its licenses", "Suspend")
    await person.click("Change status")
    await person.isDone()
    await person.sees("Status: active → canceled")
    await person.sees("No license is linked to it.")
  })

  test("a version is recorded once, corrected by deleting it, and opens its own screen", async (person, {
    client,
    product
  }) => {
    const params = { id: product.id }
    await person.opens(`/products/${product.id}`, product.name)
    await person.click("Versions", "link")
    await person.seesHeading("Versions")
    for (const [version, released] of [
      ["2.0", "2026-02-01T10:00"],
      ["1.0", "2026-01-01T10:00"]
    ] as const) {
      await person.click("New version")
      await person.fill("Version", version)
      await person.fill("Released at", released)
      await person.press("Enter")
      await person.isDone()
    }
    await person.click("New version")
    await person.fill("Version", "2.0")
    await person.press("Enter")
    await person.page.locator("dialog").getByLabel("Version").and(person.page.locator("[aria-invalid]")).waitFor()
    person.problems.length = 0
    await person.press("Escape")
    await person.click(/^Released/, "link")
    await person.page.waitForURL(/released_at/)
    await person.page.getByRole("rowheader").first().filter({ hasText: "2.0" }).waitFor()
    await person.click("1.0", "link")
    await person.seesHeading("Version 1.0")
    await person.click("Delete 1.0")
    await person.click("Delete")
    await person.seesHeading("Versions")
    await person.sees("1 version")
    const { items } = await Effect.runPromise(client.versions.list({ params, query: {} }))
    assert.deepStrictEqual(
      items.map(({ released_at, version }) => [version, released_at]),
      [["2.0", Date.parse("2026-02-01T15:00:00Z")]]
    )
  })

  test("a license is issued for an order, to the order's customer", async (person, prepared) => {
    const { client, customer, number, order } = prepared
    await person.opens(`/orders/${order.id}`, `Order ${number}`)
    await person.click("Issue a license", "link")
    await person.seesHeading("Issue a license")
    await person.page.waitForFunction(`document.querySelector('[name="order_id"]')?.value === "${order.id}"`)
    const shown = person.page.getByRole("combobox", { name: "Order" })
    await shown.and(person.page.locator(`[value="${number} · stripe"]`)).waitFor()
    await person.choose("Policy", "Pro")
    await person.click("Issue")
    await person.seesHeading("The license is issued")
    const { items } = await Effect.runPromise(client.licenses.list({ query: { order_id: order.id } }))
    assert.deepStrictEqual(
      items.map(({ customer_id }) => customer_id),
      [customer.id, customer.id]
    )
  })
})
