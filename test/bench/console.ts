/**
 * The console in headless Chromium: how far screens move while they load, and how long interactions take in a list of 500 rows.
 *
 *   npm run bench:console -- [--licenses 5000] [--json] [--assert]
 *
 * Each screen is opened in three sizes; its shift is the sum of the browser's layout shifts until it has been still for half a second.
 * A list has 100 rows a page, so the 500 are five of its pages in one response. An interaction lasts until its frame is drawn (Event
 * Timing, in steps of 8 ms). cpu_ms is what one takes of the browser's main thread, which other work beside it hardly lengthens.
 * --assert exits with 1 if a shift exceeds 0.05 or an interaction 100 ms.
 */
import assert from "node:assert/strict"
import { parseArgs } from "node:util"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Effect } from "effect"
import { chromium, type Page } from "playwright-core"
import { wholeChromium } from "../support/processes/Chromium.ts"
import { table } from "./load/Report.ts"
import { say, startOn } from "./load/Service.ts"
import { folder, startPostgres } from "./load/Sides.ts"

const { values: flags } = parseArgs({
  options: {
    licenses: { type: "string", default: "5000" },
    json: { type: "boolean", default: false },
    assert: { type: "boolean", default: false }
  }
})

const shiftMax = 0.05
const millisMax = 100
const stillMillis = 500
const batchMax = 1_000
const sizes = ["1440x900", "1024x768", "390x844"] as const

interface Service {
  readonly base: string
  readonly token: string
}

interface Made {
  readonly id: string
}

const callOf =
  ({ base, token }: Service) =>
  async <A = Made>(path: string, body: object, authorization = `Bearer ${token}`): Promise<A> => {
    const headers = { authorization, "content-type": "application/json" }
    const response = await fetch(`${base}/api/v1${path}`, { method: "POST", headers, body: JSON.stringify(body) })
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
    return ((await response.json()) as { readonly data: A }).data
  }

/** Licenses of one customer, the first of them with a quota, devices and refusals; an order, and a webhook. */
const fill = async (service: Service) => {
  const call = callOf(service)
  const product = await call("/products", { name: "Northlight Editor", code: "editor" })
  const policy = await call(`/products/${product.id}/policies`, {
    name: "Team",
    code: "team",
    license_type: "subscription",
    max_activations: 5,
    max_floating_users: 3
  })
  const feature = await call(`/products/${product.id}/features`, { name: "Renders", code: "renders" })
  const customer = await call("/customers", { name: "Interplanetary Observatory for Long Names", code: "long" })
  const expires_at = new Date(Date.now() + 20 * 86_400_000).toISOString()
  const made = { product_id: product.id, policy_id: policy.id, expires_at }
  const own = { ...made, customer_id: customer.id, features: [{ feature_id: feature.id, max_consumptions: 10 }] }
  const first = await call<{ readonly license: Made; readonly license_key: string }>("/licenses", own)
  for (const fingerprint of ["one", "two", "three", "four", "five"])
    await call("/license/activate", { fingerprint, hostname: `desk-${fingerprint}` }, `License ${first.license_key}`)
  const use = { fingerprint: "one", feature_code: "renders", event_id: "one", amount: 9 }
  await call("/license/consume", use, `License ${first.license_key}`)
  for (let refused = 0; refused < 4; refused++)
    await call("/license/validate", { fingerprint: "none" }, `License ${first.license_key}`).catch(() => {})
  for (let left = Number(flags.licenses); left > 0; left -= batchMax) {
    const licenses = Array.from({ length: Math.min(left, batchMax) }, (_, index) => ({
      ...made,
      customer_name: `Customer ${left - index}`,
      customer_email: `office-${left - index}@example.com`
    }))
    await call("/licenses/batch", { licenses })
  }
  await call("/webhooks", { name: "Billing", url: "https://hooks.example.com/billing", is_active: false })
  return { product: product.id, policy: policy.id, customer: customer.id, license: first.license.id }
}

type Filled = Awaited<ReturnType<typeof fill>>

const screensOf = ({ customer, license, policy, product }: Filled): ReadonlyArray<readonly [string, string]> => [
  ["overview", ""],
  ["licenses", "/licenses"],
  ["license", `/licenses/${license}`],
  ["issue", "/licenses/new"],
  ["customers", "/customers"],
  ["customer", `/customers/${customer}`],
  ["product", `/products/${product}`],
  ["policy", `/policies/${policy}`],
  ["devices", "/devices"],
  ["orders", `/orders?product_id=${product}`],
  ["usage", "/reports"],
  ["activity", "/activity"],
  ["operations", "/operations"],
  ["webhooks", "/webhooks"],
  ["bulk jobs", "/bulk-jobs"]
]

/** Runs in the page before the console: notes shifts and interactions. */
const observe = `
  globalThis.shifts = { sum: 0, last: performance.now() }
  globalThis.slowest = 0
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      if (entry.hadRecentInput) continue
      shifts.sum += entry.value
      shifts.last = performance.now()
    }
  }).observe({ type: "layout-shift", buffered: true })
  new PerformanceObserver((list) => {
    for (const { duration, interactionId } of list.getEntries()) if (interactionId) slowest = Math.max(slowest, duration)
  }).observe({ type: "event", durationThreshold: 16, buffered: true })`

const settle = async (page: Page) => {
  await page.locator("h1").first().waitFor()
  await page.locator(".waiting, [aria-busy=true]").first().waitFor({ state: "hidden" })
  // The page's policy forbids what the driver's own waiting would evaluate there.
  const isStill = `performance.now() - shifts.last > ${stillMillis} && performance.now() > ${2 * stillMillis}`
  while (!(await page.evaluate(isStill))) await page.waitForTimeout(100)
}

const shifts = async (page: Page, home: string, filled: Filled) => {
  const rows = []
  for (const [screen, path] of screensOf(filled)) {
    const measured: { [size: string]: number } = {}
    for (const size of sizes) {
      const [width = 0, height = 0] = size.split("x").map(Number)
      await page.setViewportSize({ width, height })
      await page.goto(`${home}${path}`)
      await settle(page)
      measured[size] = Math.round(1_000 * ((await page.evaluate("shifts.sum")) as number)) / 1_000
    }
    rows.push({ screen, ...measured, holds: Object.values(measured).every((shift) => shift <= shiftMax) })
  }
  return rows
}

const repeated = 5

/** Five pages of licenses in place of one. */
const lengthen = (page: Page) =>
  page.route(/\/api\/v1\/licenses\?/, async (route) => {
    const response = await route.fetch()
    const { data, ...rest } = (await response.json()) as { readonly data: ReadonlyArray<Made> }
    const times = Array.from({ length: repeated }, (_, time) =>
      data.map((row) => ({ ...row, id: `${row.id}-${time}` }))
    )
    await route.fulfill({ response, json: { ...rest, data: times.flat() } })
  })

/** The CPU time of the page's main thread so far. */
const cpuOf = async (page: Page) => {
  const client = await page.context().newCDPSession(page)
  await client.send("Performance.enable", { timeDomain: "threadTicks" })
  return async () => {
    const { metrics } = await client.send("Performance.getMetrics")
    return 1_000 * (metrics.find(({ name }) => name === "TaskDuration")?.value ?? Number.NaN)
  }
}

const repetitions = 10

const interactions = async (page: Page, home: string) => {
  await page.setViewportSize({ width: 1440, height: 900 })
  await lengthen(page)
  await page.goto(`${home}/licenses`)
  await settle(page)
  const cpu = await cpuOf(page)
  const rows: Array<{ interaction: string; rows: number; slowest_ms: number; cpu_ms: number; holds: boolean }> = []
  const length = await page.locator("tbody > tr").count()
  const time = async (interaction: string, act: (index: number) => Promise<unknown>, count = 1) => {
    await page.evaluate("slowest = 0")
    const before = await cpu()
    for (let index = 0; index < count; index++) await act(index)
    // The entry of an interaction comes after its frame.
    await page.waitForTimeout(stillMillis)
    const millis = (await page.evaluate("slowest")) as number
    const cpu_ms = Math.round(((await cpu()) - before) / count)
    rows.push({ interaction, rows: length, slowest_ms: millis, cpu_ms, holds: millis <= millisMax })
  }
  const box = (row: number) => page.locator("tbody > tr").nth(row).getByRole("checkbox")
  await time("choose a row", (index) => box(index).click(), repetitions)
  await time("arrow keys", () => page.keyboard.press("ArrowDown"), repetitions)
  await time("x", () => page.keyboard.press("x"), repetitions)
  await time("choose to row 400 with Shift", () => box(400).click({ modifiers: ["Shift"] }))
  await time("choose all", () => page.locator("thead").getByRole("checkbox").click())
  await time("choose none", () => page.locator("thead").getByRole("checkbox").click())
  await time("open and close the columns", async () => {
    await page.getByRole("button", { name: "Columns" }).click()
    await page.keyboard.press("Escape")
  })
  await time("search", async () => {
    await page.keyboard.press("Control+k")
    await page.keyboard.type("customer 12")
    await page.keyboard.press("Escape")
  })
  return rows
}

const browser = Effect.acquireRelease(
  Effect.promise(async () => {
    const executablePath = (await wholeChromium()) ?? assert.fail("This machine has no Chromium")
    return chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage"] })
  }),
  (browser) => Effect.promise(() => browser.close())
)

const program = Effect.gen(function* () {
  const directory = yield* folder
  const { url } = yield* startPostgres(directory)
  const service = yield* startOn(url, directory)
  yield* say(`entering ${flags.licenses} licenses`)
  const filled = yield* Effect.promise(() => fill(service))
  const launched = yield* browser
  const measured = yield* Effect.promise(async () => {
    const page = await launched.newPage()
    await page.addInitScript(`sessionStorage.setItem("licensing.token", ${JSON.stringify(service.token)}); ${observe}`)
    const home = `${service.base}/console`
    return { shifts: await shifts(page, home, filled), interactions: await interactions(page, home) }
  })
  yield* Effect.sync(() => {
    if (flags.json) return console.log(JSON.stringify(measured))
    console.log(table(measured.shifts))
    console.log(table(measured.interactions))
  })
  const holds = [...measured.shifts, ...measured.interactions].every((row) => row.holds)
  if (flags.assert && !holds) yield* Effect.sync(() => (process.exitCode = 1))
})

NodeRuntime.runMain(Effect.scoped(program))
