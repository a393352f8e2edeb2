import { assert, it, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { pdfRowsMax } from "../../../../src/insight/reports/pdf/PdfModel.ts"
import { makePdfModelReader } from "../../../../src/insight/reports/pdf/PdfReports.ts"
import { sha256Hex } from "../../../../src/platform/signing/Digest.ts"
import {
  at,
  download,
  exportsPath,
  makeWorker,
  type PdfPage,
  readPdf,
  writeLedger
} from "../../../support/database/Exports.ts"
import { assertAnswered, assertRefused } from "../../../support/http/Http.ts"
import { makeMetered } from "../../../support/http/IssuedLicenses.ts"
import { TestServer } from "../../../support/http/TestServer.ts"

/** Creates a pdf over HTTP and reads its file. */
const printed = Effect.fnUntraced(function* (report_kind: string, filters: object) {
  const { send } = yield* TestServer
  const made = assertAnswered(
    yield* send({ method: "POST", path: exportsPath, body: { report_kind, format: "pdf", filters } }),
    201
  )
  const { id, status } = made as { readonly id: string; readonly status: string }
  assert.strictEqual(status, "completed")
  const file = yield* download(id)
  return { made: made as Record<string, unknown>, file, pages: readPdf(file.bytes) }
})

const allText = (pages: ReadonlyArray<PdfPage>) => pages.map(({ text }) => text).join("\n")

it("A pdf says until when usage was removed", () => {
  const { model, push } = makePdfModelReader("usage-ledger")
  const period = { removed_until: "2026-01-02T03:04:05.000Z", to: "2026-02-01T00:00:00.000Z" }
  const figures = { filters: {}, generated_at: period.to, period, report_kind: "usage-ledger", rows: [] }
  push(Buffer.from(JSON.stringify(figures)))
  assert.deepInclude(model().facts, ["Usage removed until", "2026-01-02 03:04:05 UTC"])
})

layer(TestServer.layer)("A pdf", (it) => {
  it.effect("of every kind names its content, and contains the digest of the figures on each page", () =>
    Effect.gen(function* () {
      const { consume, customer, license, product, subscription } = yield* makeMetered
      yield* consume("exports", 1_234_567 % 1_000, "one")
      const kinds = {
        "usage-summary": [{ product_id: product.id, bucket: "1d", tz: "Europe/Zurich" }, "Usage summary", product.id],
        "usage-ledger": [{ license_id: license.id }, "Usage ledger", license.id],
        "license-audit": [{ license_id: license.id }, "License audit", "license.created"],
        "customer-summary": [{ customer_id: customer.id }, "Customer summary", "Čustomer"],
        "subscription-settlement": [{ subscription_id: subscription.id }, "Subscription settlement", "billing"]
      } as const
      for (const [kind, [filters, title, content]] of Object.entries(kinds)) {
        const { made, pages } = yield* printed(kind, filters)
        const text = allText(pages)
        assert.isTrue(text.startsWith(`${title}\n`), kind)
        for (const part of ["Period", "Filters", "Generated at", "Consumed", "567", content]) {
          assert.include(text, part, `${kind}: ${part}`)
        }
        for (const [name, value] of Object.entries(filters)) assert.include(text, `${name} ${value}`)
        const generated = String(made["created_at"]).slice(0, 19).replace("T", " ")
        assert.include(text, `Generated at\n${generated} UTC`)
        for (const [index, page] of pages.entries()) {
          assert.include(page.text, `SHA-256 of the figures: ${made["digest"]}  ·  Export ${made["id"]}`)
          assert.include(page.text, `Page ${index + 1} of ${pages.length}`)
        }
      }
    })
  )

  it.effect("keeps the same bytes, and is served like any other file", () =>
    Effect.gen(function* () {
      const { consume, license } = yield* makeMetered
      yield* consume("exports", 3, "one")
      const { file, made } = yield* printed("usage-ledger", { license_id: license.id })
      const { advance } = yield* TestServer
      yield* consume("exports", 4, "two")
      yield* advance(3_600)
      const again = yield* download(String(made["id"]))
      assert.isTrue(Buffer.from(file.bytes).equals(Buffer.from(again.bytes)))
      assert.strictEqual(sha256Hex(file.bytes), made["artifact_digest"])
      assert.deepInclude(made, {
        content_type: "application/pdf",
        format: "pdf",
        size_bytes: file.bytes.length,
        rows: 1
      })
      assert.deepInclude(file.headers, {
        "content-type": "application/pdf",
        "content-length": String(file.bytes.length),
        etag: `"${made["artifact_digest"]}"`,
        "content-disposition": `attachment; filename="usage-ledger-${made["id"]}.pdf"`
      })
      const part = yield* download(String(made["id"]), { range: "bytes=100-199" })
      assert.strictEqual(part.status, 206)
      assert.isTrue(Buffer.from(part.bytes).equals(Buffer.from(file.bytes.subarray(100, 200))))
      assert.strictEqual((yield* download(String(made["id"]), { "if-none-match": file.headers["etag"] })).status, 304)
    })
  )

  it.effect("contains exact, aligned figures, also below zero, and names in many scripts", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { client } = yield* TestServer
      const metered = yield* makeMetered
      const { consume, customer, license } = metered
      yield* consume("exports", 20, "one")
      yield* consume("renders", 7, "two")
      yield* client.licenses.resetUsage({
        params: { id: license.id },
        payload: { feature_code: "renders", reset_consumed: true }
      })
      const huge = 9_007_199_254_740_971
      yield* sql`
        UPDATE usage_ledger SET amount = ${huge}, balance_after = ${huge} WHERE license_id = ${license.id} AND event_id = 'one'`
      const name = "Ελληνική Εταιρεία / ООО «Ромашка» / 株式会社"
      yield* client.customers.update({ params: { id: customer.id }, payload: { name } })
      const { pages } = yield* printed("customer-summary", { customer_id: customer.id })
      const text = allText(pages)
      // A replacement mark for each character that no font has, and an explanation.
      assert.include(text, "Ελληνική Εταιρεία / ООО «Ромашка» / \uFFFD\uFFFD\uFFFD\uFFFD  ·")
      assert.include(text, "\uFFFD stands for a character that the service's fonts lack")
      assert.include(text, "9,007,199,254,740,978")
      const figures = pages[0]!.written.filter(({ text }) =>
        ["9,007,199,254,740,971", "7", "9,007,199,254,740,978"].includes(text)
      )
      const column = figures.filter(({ x }) => x > 200).slice(-3)
      assert.strictEqual(new Set(column.map(({ right }) => right.toFixed(1))).size, 1)
      assert.include(text, "\n-7\n")
    })
  )

  it.effect("without rows is a valid document", () =>
    Effect.gen(function* () {
      const { product } = yield* makeMetered
      for (const kind of ["usage-summary", "usage-ledger"]) {
        const { pages } = yield* printed(kind, { product_id: product.id })
        assert.strictEqual(pages.length, 1)
        assert.include(pages[0]!.text, "No rows.")
        assert.include(pages[0]!.text, "Consumed\n0")
      }
    })
  )
})

layer(TestServer.layer)("A long pdf", (it) => {
  it.effect("is truncated, states that, and sums all rows, whichever node created which piece", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const metered = yield* makeMetered
      yield* writeLedger(metered, 4_321, { amount: 3, from: "2026-01-01T00:00:00Z" })
      const filters = { license_id: metered.license.id }
      const waiting = yield* client.reports.createExport({
        payload: { report_kind: "usage-ledger", format: "pdf", filters }
      })
      assert.strictEqual(waiting.status, "pending")
      assertRefused(yield* download(waiting.id), 409, "EXPORT_NOT_READY", "pending")
      const failingWorker = yield* makeWorker
      assert.isTrue(yield* at(0)(failingWorker.step))
      assert.strictEqual((yield* client.reports.getExport({ params: { id: waiting.id } })).rows, 2_000)
      yield* at(61)((yield* makeWorker).pass)
      const done = yield* client.reports.getExport({ params: { id: waiting.id } })
      assert.deepInclude(done, { status: "completed", rows: 4_321 })
      const { bytes } = yield* download(done.id)
      const pages = readPdf(bytes)
      const text = allText(pages)
      assert.include(text, "The first 2,000 of 4,321 rows. Totals include all rows; csv and json contain all rows.")
      assert.include(text, "Rows\n4,321\nConsumed\n12,963\nConsumptions\n4,321")
      assert.include(text, "Consumed by day (UTC)")
      assert.include(text, "2026-01-01")
      const events = Array.from(text.matchAll(/^row-(\d+)$/gm), ([, number]) => Number(number))
      assert.deepStrictEqual(
        events,
        Array.from({ length: pdfRowsMax }, (_, index) => index + 1)
      )
      assert.isBelow(pages.length, 80)
      // Each page repeats the column headers.
      for (const page of pages) assert.include(page.text, "Balance after")
    })
  )
})
