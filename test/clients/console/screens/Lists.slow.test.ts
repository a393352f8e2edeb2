/** Lists: the keyboard, chosen rows and columns, filters that links set, views, and that nothing is cut off at any width. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { issue } from "../../../support/http/IssuedLicenses.ts"
import { TestServer } from "../../../support/http/TestServer.ts"
import { consoleLayer, looks, type Person, withPerson } from "../browser/Browser.ts"
import { recordPurchase } from "../browser/Purchase.ts"

const minutes = 5 * 60_000
const long = "Interplanetary Observatory for Very Long Names of Customers and Products, Dep. 80"
const word = "Donaudampfschifffahrtsgesellschaftskapitaensmuetzenverwaltungssoftware"
const listed = 24

const prepare = Effect.gen(function* () {
  const { client } = yield* TestServer
  const customer = yield* client.customers.create({
    payload: { name: long, code: "long-names", email: `office@${`${"b".repeat(60)}.`.repeat(3)}example` }
  })
  const first = yield* issue({}, { customer_id: customer.id, customer_name: long })
  yield* client.products.update({ params: { id: first.product_id }, payload: { name: long } })
  const { policy_id } = yield* client.licenses.get({ params: { id: first.id } })
  yield* client.policies.update({ params: { id: policy_id }, payload: { name: long } })
  yield* first.runtime.activate({
    payload: { fingerprint: "m-1", hostname: long.replaceAll(/\W+/g, "-").toLowerCase() }
  })
  yield* client.products.create({ payload: { name: word, code: "one-word" } })
  const feature = yield* client.features.create({
    params: { id: first.product_id },
    payload: { name: word, code: "one-word" }
  })
  const assigned = { feature_id: feature.id, max_consumptions: 10 }
  yield* client.licenses.assignFeature({ params: { id: first.id }, payload: assigned })
  const use = { fingerprint: "m-1", feature_code: "one-word" }
  for (const event_id of ["1", "2"]) yield* first.runtime.consume({ payload: { ...use, event_id, amount: 4 } })
  yield* Effect.flip(first.runtime.activate({ payload: { fingerprint: "m-2" } }))
  const purchase = yield* recordPurchase({ product: first.product_id, customer: customer.id })
  const licenses = Array.from({ length: listed }, (_, index) => ({
    product_id: first.product_id,
    policy_id,
    customer_name: `Customer ${index} ${long}`,
    expires_at: first.expires_at
  }))
  yield* client.licenses.createBatch({ payload: { licenses } })
  return { ...purchase, customer, license: first.id, policy: policy_id, product: first.product_id }
})

type Prepared = Effect.Success<typeof prepare>

/** The name of the row that has the focus. */
const rowFocused = (person: Person) =>
  person.page.evaluate("document.activeElement.matches('tbody > tr') ? document.activeElement.rowIndex : 0")

/** Rows that are wholly in sight. */
const rowsInSight = (person: Person) =>
  person.page.evaluate(
    "[...document.querySelectorAll('tbody > tr')].filter((row) => row.getBoundingClientRect().bottom <= innerHeight).length"
  )

/**
 * Controls that are partly outside of the page or of their cell, cells outside of their table, keys that wrap, and the last cells in a
 * card that are not 16 pixels from its edge. A text in a cell may be cut, and lines that scroll may hide their ends.
 */
const misplaced = `(() => {
  const scrolls = (node) => node.closest(".filters, .scrolling, .hidden, .skip, thead") !== null
  const isShown = (node) => node.checkVisibility({ visibilityProperty: true }) && node.getBoundingClientRect().width > 0
  const leaves = (node, left, right) => {
    const box = node.getBoundingClientRect()
    return box.left < left - 1 || box.right > right + 1
  }
  const controls = [...document.querySelectorAll("button, a, input, select, h1, h2")].filter((node) => {
    const cell = node.closest("th, td")
    if (scrolls(node) || !isShown(node)) return false
    if (cell === null) return leaves(node, 0, innerWidth)
    const { left, right } = cell.getBoundingClientRect()
    return node.tagName !== "A" && leaves(node, left, right)
  })
  const cells = [...document.querySelectorAll(".fitted tbody > tr > *")].filter((cell) => {
    const { left, right } = cell.closest(".listing").getBoundingClientRect()
    return cell.closest(".scrolling") === null && isShown(cell) && leaves(cell, left, right)
  })
  const keys = [...document.querySelectorAll("tbody code")].filter((node) => {
    const tops = [...node.getClientRects()].map(({ top }) => top)
    return Math.max(...tops) - Math.min(...tops) > 10
  })
  const ends = [...document.querySelectorAll(".split .fitted tr")].flatMap(({ cells }) => {
    const last = [...cells].findLast(isShown)
    const { display, paddingRight } = getComputedStyle(last)
    return display === "table-cell" && paddingRight !== "16px" ? [last] : []
  })
  return [...controls, ...cells, ...keys, ...ends].map((node) => node.outerHTML.slice(0, 120))
})()`

const widths = [360, 390, 600, 768, 1024, 1280, 1440, 2560]

const movesByKeyboard = async (person: Person) => {
  const { page } = person
  await person.opens("/licenses", "Licenses")
  await page.getByRole("row").nth(listed).waitFor()
  await person.press("ArrowDown")
  await person.press("ArrowDown")
  assert.strictEqual(await rowFocused(person), 2)
  await person.press("x")
  await person.sees("1 license chosen")
  for (const _ of [1, 2, 3]) await person.press("ArrowDown")
  await person.press("Shift+X")
  await person.sees("4 licenses chosen")
  await person.press("End")
  assert.strictEqual(await rowFocused(person), listed + 1)
  await person.press("ArrowDown")
  assert.strictEqual(await rowFocused(person), listed + 1)
  await person.press("Home")
  assert.strictEqual(await rowFocused(person), 1)
  // A field keeps its keys.
  await page.getByRole("searchbox", { name: "Customer" }).focus()
  await person.press("x")
  await person.press("ArrowDown")
  assert.strictEqual(await rowFocused(person), 0)
  await person.sees("4 licenses chosen")
  await person.opens("/licenses?sort=created_at", "Licenses")
  await page.getByRole("row").nth(listed).waitFor()
  await person.press("ArrowDown")
  await person.press("Enter")
  await person.seesHeading(long)
}

const keepsViews = async (person: Person, { customer, policy }: Prepared) => {
  const { page } = person
  await person.opens(`/licenses?policy_id=${policy}&customer_id=${customer.id}`, "Licenses")
  await page.locator(".chip strong", { hasText: long }).nth(1).waitFor()
  await person.click("Remove the filter Policy")
  assert.notInclude(page.url(), "policy_id")
  await person.pick("Views", "Save this view")
  await person.fill("Name", "Observatory")
  await person.press("Enter")
  await person.isDone()
  await page.getByRole("button", { name: "Views" }).and(page.locator(":focus")).waitFor()
  await person.click("Clear the filters", "link")
  await page.getByRole("row").nth(listed).waitFor()
  assert.strictEqual(await page.locator(".filters input:focus").count(), 1)
  await person.pick("Columns", "Policy")
  await page.getByRole("columnheader", { name: "Policy" }).waitFor({ state: "detached" })
  await person.press("Escape")
  await page.reload()
  await person.click("Observatory", "link")
  await page.getByRole("row").nth(2).waitFor({ state: "detached" })
  assert.strictEqual(await page.getByRole("columnheader", { name: "Policy" }).count(), 0)
  await person.pick("Views", "Rename this view")
  await person.fill("Name", "Stars")
  await person.press("Enter")
  await person.isDone()
  await page.getByRole("link", { name: "Stars", exact: true }).waitFor()
  await person.inLooks(looks, async () => assert.deepStrictEqual(await person.violations(), []))
  await person.pick("Views", "Delete this view")
  await page.getByRole("link", { name: "Stars", exact: true }).waitFor({ state: "detached" })
}

const hasRows = async (person: Person) => {
  const { page } = person
  await person.opens("/licenses", "Licenses")
  await page.getByRole("row").nth(listed).waitFor()
  await page.setViewportSize({ width: 1440, height: 900 })
  assert.isAtLeast((await rowsInSight(person)) as number, 18)
  await page.setViewportSize({ width: 390, height: 844 })
  assert.isAtLeast((await rowsInSight(person)) as number, 9)
}

/** A phone has no heading with a box for all rows: the bar of chosen rows has a button. */
const choosesOnPhone = async (person: Person) => {
  const { page } = person
  const all = page.getByRole("button", { name: "Choose all on this page" })
  await person.changesLook({})
  await person.opens("/licenses", "Licenses")
  await page.getByRole("row").nth(listed).waitFor()
  await page
    .getByRole("checkbox", { name: /^Choose Customer/ })
    .nth(1)
    .check()
  await person.sees("1 license chosen")
  assert.strictEqual(await all.count(), 0)
  await person.changesLook({ width: 390 })
  assert.deepStrictEqual(await page.evaluate(misplaced), [])
  await all.click()
  await person.sees(`${listed + 1} licenses chosen`)
  await all.waitFor({ state: "detached" })
  await person.inLooks([{ width: 390 }, { dark: true, width: 390 }], async () =>
    assert.deepStrictEqual(await person.violations(), [])
  )
  await person.changesLook({ width: 390 })
  await person.click("Choose none")
  await page.getByRole("button", { name: "Suspend" }).waitFor({ state: "detached" })
}

/** Names wrap in rows with sentences, and so does what happened in a feed; elsewhere cut text is shown on hover and focus. */
const tellsWholeNames = async (person: Person) => {
  const { page } = person
  await person.changesLook({ width: 1024 })
  await person.opens("/operations", "Operations")
  await page.getByRole("rowheader", { name: "All device slots are taken" }).waitFor()
  const cut =
    "[...document.querySelectorAll('.telling th')].filter((cell) => cell.scrollWidth > cell.clientWidth).length"
  assert.strictEqual(await page.evaluate(cut), 0)
  await person.opens("/activity?feed=events", "Activity")
  const row = page.getByRole("row", { name: "License activation limit reached" })
  await row.getByRole("link").waitFor()
  for (const width of widths) {
    await person.changesLook({ width })
    assert.deepStrictEqual(await page.evaluate(cutEvents), [], String(width))
  }
  await person.changesLook({ width: 1024 })
  await row.getByRole("link").focus()
  assert.include(await row.getByRole("cell").nth(1).getAttribute("title"), long)
}

const cutEvents = `[...document.querySelectorAll(".feed tbody th, .opener")]
  .filter(({ clientWidth, scrollWidth }) => scrollWidth > clientWidth).map(({ textContent }) => textContent)`

/** The days of a period stay beside each other. */
const keepsPeriods = async (person: Person) => {
  for (const [path, heading] of [
    ["/activity", "Activity"],
    ["/reports", "Usage"]
  ] as const) {
    await person.opens(path, heading)
    await person.isLoaded()
    for (const width of widths) {
      await person.changesLook({ width })
      const topOf = async (day: string) => (await person.page.getByLabel(day, { exact: true }).first().boundingBox())!.y
      assert.strictEqual(await topOf("From"), await topOf("To"), `${path} at ${width}`)
    }
  }
}

/** What is cut off at any width, of lists and of records with long names. */
const misplacedOn = async (person: Person, made: Prepared) => {
  const { customer, license, order, policy, product, subscription } = made
  const { page } = person
  const found: Array<string> = []
  for (const [path, heading] of [
    ["", "Overview"],
    ["/licenses", "Licenses"],
    ["/devices", "Devices"],
    ["/customers", "Customers"],
    ["/products", "Products"],
    [`/orders?product_id=${product}&customer_id=${customer.id}`, "Orders"],
    [`/subscriptions?product_id=${product}`, "Subscriptions"],
    [`/licenses/${license}`, long],
    [`/customers/${customer.id}`, long],
    [`/products/${product}`, long],
    [`/policies/${policy}`, long],
    [`/orders/${order}`, "Order A-1001"],
    [`/subscriptions/${subscription}`, "Subscription S-77"]
  ] as const) {
    await person.opens(path, heading)
    await person.isLoaded()
    for (const width of widths) {
      await person.changesLook({ width })
      if ((await person.overflow()) > 0) found.push(`${path} at ${width} is too wide`)
      for (const node of (await page.evaluate(misplaced)) as ReadonlyArray<string>)
        found.push(`${path} at ${width}: ${node}`)
    }
  }
  return found
}

/** No word is so long that a dialog with it scrolls sideways, which hides the edge of its fields. */
const fitsDialogs = async (person: Person) => {
  await person.opens("/api-keys", "API keys")
  for (const width of [390, 1440]) {
    await person.changesLook({ width })
    await person.click("New API key")
    await person.sees(word)
    assert.isTrue(
      await person.page.evaluate(`(({ clientWidth, scrollWidth }) => scrollWidth <= clientWidth)(
      document.querySelector("dialog"))`)
    )
    await person.press("Escape")
    await person.isDone()
  }
}

layer(consoleLayer, { timeout: minutes })("A list", (it) => {
  it.effect(
    "is used with the keyboard, by links and views, and has room for its rows at every width",
    ({ skip }) =>
      Effect.gen(function* () {
        const made = yield* prepare
        yield* withPerson(skip, async (person) => {
          await movesByKeyboard(person)
          await keepsViews(person, made)
          await hasRows(person)
          await choosesOnPhone(person)
          await tellsWholeNames(person)
          await keepsPeriods(person)
          assert.deepStrictEqual(await misplacedOn(person, made), [])
          await fitsDialogs(person)
        })
      }),
    minutes
  )
})
