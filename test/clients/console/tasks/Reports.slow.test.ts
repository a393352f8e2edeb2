/** The console's overview, reports, feeds and operations: they show what was done through the API. */
import { createHash } from "node:crypto"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Refusals } from "../../../../src/insight/activities/Refusals.ts"
import { Validations } from "../../../../src/licensing/runtime/Validations.ts"
import { codeOf, issue } from "../../../support/http/IssuedLicenses.ts"
import { TestServer } from "../../../support/http/TestServer.ts"
import { atConsole, consoleLayer, type Person, withPerson } from "../browser/Browser.ts"

const minutes = 5 * 60_000

/** The refusals of a test's calls are written when it says so. */
const layerReports = Refusals.layer.pipe(Layer.provideMerge(Validations.layer), Layer.provideMerge(consoleLayer))

/** Two licenses of a product: activations, a refused one, a seat, and uses of a feature. */
const prepare = Effect.gen(function* () {
  const { client } = yield* TestServer
  const license = yield* issue({ max_activations: 1, max_floating_users: 2 }, { customer_name: "Ada" })
  const params = { id: license.id }
  const { policy_id } = yield* client.licenses.get({ params })
  const other = yield* client.licenses.create({
    payload: { product_id: license.product_id, policy_id, expires_at: license.expires_at, customer_name: "Bob" }
  })
  yield* client.licenses.suspend({ params: { id: other.license.id } })
  const feature = yield* client.features.create({
    params: { id: license.product_id },
    payload: { name: "Renders", code: "renders" }
  })
  yield* client.licenses.assignFeature({ params, payload: { feature_id: feature.id, max_consumptions: 2_000 } })
  const device = { fingerprint: "m-1" }
  yield* license.runtime.activate({ payload: device })
  for (const [event_id, amount] of [
    ["1", 1_200],
    ["2", 34]
  ] as const)
    yield* license.runtime.consume({ payload: { ...device, feature_code: "renders", event_id, amount } })
  yield* license.runtime.checkout({ payload: { fingerprint: "m-2" } })
  yield* codeOf(license.runtime.activate({ payload: { fingerprint: "m-3" } }))
  yield* codeOf(license.runtime.validate({ payload: { fingerprint: "m-4" } }))
  yield* (yield* Refusals).pass
  return license
})

const chart = (person: Person, name: string) => person.page.getByRole("figure", { name: new RegExp(name) })

layer(layerReports, { timeout: minutes })("The console", (it) => {
  it.effect(
    "shows in its overview what was done with a product's licenses, as charts and as tables",
    ({ skip }) =>
      Effect.gen(function* () {
        const { product_id } = yield* prepare
        yield* issue()
        yield* withPerson(skip, async (person) => {
          await person.opens(`/?product_id=${product_id}`, "Overview")
          const told = async (name: string, text: string) =>
            await chart(person, name).getByText(text, { exact: true }).waitFor()
          await told("Licenses created", "2 created, 0 ended")
          await told("Active licenses", "1 active, 1 of them expire in 30 days")
          await told("Activations", "1 activations of devices")
          await told("Floating seats", "1 taken at the peak")
          await told("Consumption", "1,234 units of features")
          await told("Refused calls", "2 calls of applications")
          for (const [status, count] of [
            ["Active", 1],
            ["Suspended", 1],
            ["Revoked", 0]
          ] as const)
            await person.page.getByRole("link", { name: new RegExp(`^${status} ?${count}$`) }).waitFor()
          const consumption = chart(person, "Consumption")
          // Screen readers have the table, whether or not it is shown.
          await consumption.getByRole("columnheader", { name: "Renders" }).waitFor()
          await consumption.getByRole("button", { name: "Table" }).click()
          assert.strictEqual(await consumption.locator("tbody td").first().textContent(), "1,234")
          await person.choose("Period", "4 weeks")
          await person.choose("By", "Day")
          await person.sees(/Days begin at midnight in America\/New_York\. The last day goes on/)
          assert.include(person.page.url(), "span=4_weeks&by=day")
          assert.isAtLeast(await consumption.locator("tbody tr").count(), 22)
        })
      }),
    minutes
  )

  it.effect(
    "names features of any product that was used, also where the service has many products",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client } = yield* TestServer
        yield* Effect.forEach(
          Array.from({ length: 10 }, (_, index) => `first-${index}`),
          (code) => client.products.create({ payload: { name: code, code } })
        )
        const license = yield* issue()
        const { id } = yield* client.features.create({
          params: { id: license.product_id },
          payload: { name: "Frames of films", code: "frames" }
        })
        yield* client.licenses.assignFeature({ params: { id: license.id }, payload: { feature_id: id } })
        const use = { feature_code: "frames", event_id: "1", amount: 90_000 }
        yield* license.runtime.activate({ payload: { fingerprint: "m-1" } })
        yield* license.runtime.consume({ payload: { fingerprint: "m-1", ...use } })
        yield* atConsole(skip, async (person) => {
          const named = (role: "cell" | "columnheader" | "rowheader") =>
            person.page.getByRole(role, { name: "Frames of films", exact: true }).first().waitFor()
          await named("columnheader")
          await person.opens("/reports", "Usage")
          await named("rowheader")
          await named("columnheader")
          await person.choose("Feature", "Frames of films")
          await person.page.locator(".chip.set", { hasText: "Frames of films" }).waitFor()
          await person.opens("/reports/ledger", "Ledger")
          await person.page.getByText("Frames of films").filter({ visible: true }).first().waitFor()
        })
      }),
    minutes
  )

  it.effect(
    "sums usage by what the reader chooses, and leads to the ledger's rows",
    ({ skip }) =>
      Effect.gen(function* () {
        const { id, product_id } = yield* prepare
        yield* atConsole(skip, async (person) => {
          await person.click("Reports", "link")
          await person.seesHeading("Usage")
          await person.opens(`/reports?product_id=${product_id}`, "Usage")
          await person.choose("By", "License")
          const row = person.page.getByRole("row").filter({ has: person.page.locator(`a[href$="${id}"]`) })
          await row.getByRole("cell", { name: "1,234", exact: true }).waitFor()
          await row.getByRole("cell", { name: "2", exact: true }).waitFor()
          await person.page.goto(`${person.home}/reports/ledger?license_id=${id}`)
          await person.page.getByRole("cell", { name: "1,200 → 1,234", exact: true }).waitFor()
          await person.choose("What", "Reset by hand")
          await person.sees("No change of a counter matches.")
          await person.choose("What", "Used")
          await person.page.locator("tbody tr").nth(1).waitFor()
          assert.strictEqual(await person.page.locator("tbody tr").count(), 2)
        })
      }),
    minutes
  )

  it.effect(
    "exports what is shown, and downloads the very bytes of the file",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client } = yield* TestServer
        const { id } = yield* prepare
        for (const format of ["CSV", "JSON", "PDF"]) {
          const saved = { id: "", digest: "" }
          yield* withPerson(skip, async (person) => {
            await person.opens(`/reports/ledger?license_id=${id}`, "Ledger")
            await person.click("Export")
            await person.choose(
              "Format",
              `${format}, for ${{ CSV: "spreadsheets", JSON: "programs", PDF: "people" }[format]}`
            )
            await person.click("Export")
            await person.seesHeading("Export: usage ledger")
            await person.sees("The file is ready, and stays as it is.")
            const download = person.page.waitForEvent("download")
            await person.click("Download")
            const file = await download
            saved.id = new URL(person.page.url()).pathname.split("/").at(-1)!
            assert.strictEqual(file.suggestedFilename(), `usage-ledger-${saved.id}.${format.toLowerCase()}`)
            const bytes = Buffer.concat(await (await file.createReadStream()).toArray())
            saved.digest = createHash("sha256").update(bytes).digest("hex")
            await person.opens("/reports/exports", "Exports")
            await person.page
              .getByRole("row", { name: new RegExp(`usage ledger completed ${format}`, "i") })
              .first()
              .waitFor()
          })
          if (saved.id === "") return
          const made = yield* client.reports.getExport({ params: { id: saved.id } })
          assert.strictEqual(made.artifact_digest, saved.digest)
          assert.deepStrictEqual(made.filters, { license_id: id })
        }
      }),
    minutes
  )

  it.effect(
    "frees the memory of a file a minute after it was saved, and lists its export with the others",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client } = yield* TestServer
        const { id } = yield* client.reports.createExport({ payload: { report_kind: "usage-summary", format: "csv" } })
        yield* withPerson(
          skip,
          async (person) => {
            await person.page.clock.install()
            await person.page.addInitScript(`
            window.addresses = { made: [], revoked: [] }
            const { createObjectURL, revokeObjectURL } = URL
            URL.createObjectURL = (blob) => (addresses.made.push(createObjectURL.call(URL, blob)), addresses.made.at(-1))
            URL.revokeObjectURL = (address) => (addresses.revoked.push(address), revokeObjectURL.call(URL, address))`)
            await person.opens("/reports/exports", "Exports")
            const row = person.page.getByRole("row", { name: /^Usage summary/ }).first()
            await row.getByText("Completed", { exact: true }).waitFor()
            await row.getByRole("link").click()
            await person.page.waitForURL(new RegExp(`/reports/exports/${id}$`))
            const saved = person.page.waitForEvent("download")
            await person.click("Download")
            await saved
            const addresses = () =>
              person.page.evaluate("addresses") as Promise<{
                readonly made: Array<string>
                readonly revoked: Array<string>
              }>
            await person.page.getByRole("button", { name: "Download", exact: true }).waitFor()
            await person.page.clock.fastForward(50_000)
            const { made, revoked } = await addresses()
            assert.deepStrictEqual([made.length, revoked], [1, []])
            await person.page.clock.fastForward(15_000)
            await person.page.waitForFunction("addresses.revoked.length > 0")
            assert.deepStrictEqual((await addresses()).revoked, made)
          },
          { movesClock: true }
        )
      }),
    minutes
  )

  it.effect(
    "shows how far an export is, until it is done",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client } = yield* TestServer
        const made = yield* client.reports.createExport({ payload: { report_kind: "usage-summary" } })
        yield* withPerson(skip, async (person) => {
          const state = { status: "processing" }
          await person.page.route(`**/reports/exports/${made.id}`, async (route) => {
            if (route.request().resourceType() === "document") return await route.continue()
            const response = await route.fetch()
            const { data, meta } = (await response.json()) as { readonly data: object; readonly meta: object }
            const shown = state.status === "processing" ? { ...data, ...state, rows: 1_500 } : data
            await route.fulfill({ response, json: { data: shown, meta } })
          })
          await person.opens(`/reports/exports/${made.id}`, "Export: usage summary")
          await person.sees("The export is being written: 1,500 rows so far.")
          assert.strictEqual(await person.page.getByRole("button", { name: "Download" }).count(), 0)
          state.status = "completed"
          await person.sees("The file is ready, and stays as it is.")
        })
      }),
    minutes
  )

  it.effect(
    "says beside its field what is wrong with an export",
    ({ skip }) =>
      withPerson(skip, async (person) => {
        await person.opens("/reports/exports?kind=license-audit", "Exports")
        await person.click("Export")
        await person.sees("License is needed.")
        await person.fill(/^License$/, "Nobody at all")
        await person.click("Export")
        await person.sees(/^No license is chosen|^The license is still looked for/)
        assert.deepStrictEqual(await person.violations(), [])
        person.problems.length = 0
      }),
    minutes
  )

  it.effect(
    "shows operators what a node refused, with what to do about it",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client } = yield* TestServer
        yield* Effect.ignore(client.licenses.get({ params: { id: "none" } }))
        yield* atConsole(skip, async (person) => {
          await person.click("Operations", "link")
          await person.seesHeading("Operations")
          await person.sees(/^The service is ready/)
          const row = person.page.getByRole("row", { name: /^What the request named does not exist/ })
          await row.getByText("NOT_FOUND", { exact: true }).waitFor()
          await row.getByText(/Check the path and the ids/).waitFor()
          // The second reading of the counters gives the rates.
          await person.page
            .getByText("Requests a second")
            .locator("xpath=following-sibling::dd[text() != '…']")
            .waitFor()
        })
      }),
    minutes
  )
})
