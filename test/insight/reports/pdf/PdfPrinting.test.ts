import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Layer } from "effect"
import { TestClock } from "effect/testing"
import { canonicalize, type Json } from "../../../../src/contract/api/CanonicalJson.ts"
import { PdfPrinting } from "../../../../src/insight/reports/pdf/PdfPrinting.ts"
import { Settings } from "../../../../src/platform/config/Config.ts"
import { readPdf } from "../../../support/database/Exports.ts"

const fonts = fileURLToPath(new URL("../../../../node_modules/dejavu-fonts-ttf/ttf", import.meta.url))

/** The printing service with the operator's font. */
const printing = (reportsFont?: string) =>
  Effect.map(
    Layer.build(
      PdfPrinting.layer.pipe(Layer.provide(Settings.layerTest(reportsFont === undefined ? {} : { reportsFont })))
    ),
    (built) => Context.get(built, PdfPrinting)
  )

const totals = { consumed: 7, consumptions: 1, reversed: 0, reset: 0, topped_up: 0, credits_used: 0, overage: 0 }
const summaryOf = (rows: ReadonlyArray<object>, report: object = {}) => ({
  filters: {},
  generated_at: "2026-01-31T00:00:00.000Z",
  report_kind: "usage-summary",
  report: {
    period: { from: "2026-01-01T00:00:00.000Z", to: "2026-01-31T00:00:00.000Z" },
    group_by: ["feature_code"],
    tz: "UTC",
    rows: rows.map((row) => ({ ...totals, licenses: 1, ...row })),
    totals,
    ...report
  }
})

const print = Effect.fnUntraced(function* (service: PdfPrinting["Service"], figures: object) {
  const print = service.begin({ id: "rex_1", report_kind: "usage-summary", generated_at: Date.UTC(2026, 0, 31) })
  print.push(Buffer.from(canonicalize(figures as Json)))
  return yield* print.finish("d1".repeat(32))
})

const textOf = (bytes: Uint8Array) => readPdf(bytes).map(({ text }) => text)

describe("Printing", () => {
  it.effect("produces the same bytes from the same figures, at every time and on every node", () =>
    Effect.gen(function* () {
      const figures = summaryOf([{ feature_code: "exports" }, { feature_code: "Экспорт 漢字" }])
      const first = yield* print(yield* printing(), figures)
      yield* TestClock.adjust("1 day")
      const second = yield* print(yield* printing(), figures)
      assert.isTrue(Buffer.from(first).equals(Buffer.from(second)))
      assert.deepStrictEqual(
        Buffer.from(first)
          .toString("latin1")
          .match(/D:\d+Z/g),
        ["D:20260131000000Z"]
      )
      const third = yield* print(yield* printing(), summaryOf([{ feature_code: "exports" }]))
      assert.isFalse(Buffer.from(first).equals(Buffer.from(third)))
    })
  )

  it.effect("uses the operator's font for characters that the built-in fonts lack", () =>
    Effect.gen(function* () {
      // The mono-spaced font has the APL symbols, which the other fonts do not have.
      const figures = summaryOf([{ feature_code: "⌶ 漢" }])
      const [without] = textOf(yield* print(yield* printing(), figures))
      assert.include(without!, "\n\uFFFD \uFFFD\n")
      const [own] = textOf(yield* print(yield* printing(`${fonts}/DejaVuSansMono.ttf`), figures))
      assert.match(own!, /\n⌶\n \uFFFD\n/)
      const [lacking] = textOf(yield* print(yield* printing(), summaryOf([{ feature_code: "exports" }])))
      assert.notInclude(lacking!, "\uFFFD")
    })
  )

  it.effect("does not start with an invalid font", () =>
    Effect.gen(function* () {
      for (const file of [`${fonts}/none.ttf`, fileURLToPath(import.meta.url), `${fonts}/../LICENSE`]) {
        const exit = yield* Effect.exit(printing(file))
        assert.isTrue(Exit.isFailure(exit), file)
        assert.include(String(exit), "LICENSING_REPORTS_FONT must be a TrueType or OpenType font file")
      }
    })
  )

  it.effect("wraps long texts, truncates very long ones, and removes line breaks", () =>
    Effect.gen(function* () {
      const long = Array.from({ length: 200 }, (_, index) => `part-${index}`).join("-")
      const fields = { feature_code: long, customer_id: long, license_id: "a\nb\u0007c", order_id: long }
      const figures = summaryOf([fields], { group_by: Object.keys(fields) })
      const [page] = readPdf(yield* print(yield* printing(), figures))
      assert.include(page!.text, "\na b c\n")
      assert.match(page!.text, /part-0-.*\n.*part-.*\n.*…\n/)
      for (const { right, x } of page!.written) {
        assert.isAtLeast(x, 36)
        assert.isAtMost(right, 841.89 - 35)
      }
      const consumed = page!.written.filter(({ text }) => text === "7")
      assert.isNotEmpty(consumed)
    })
  )

  it.effect("labels days in the time zone, and draws usage over time if the rows have time", () =>
    Effect.gen(function* () {
      const rows = ["2026-01-01T23:00:00.000Z", "2026-01-02T23:00:00.000Z"].map((bucket_start) => ({ bucket_start }))
      const days = { bucket: "1d", tz: "Europe/Zurich", group_by: ["feature_code"] }
      const [page] = textOf(yield* print(yield* printing(), summaryOf(rows, days)))
      assert.include(page!, "Consumed by day (Europe/Zurich)")
      assert.match(page!, /\n2026-01-02\n–\n7\n/)
      assert.match(page!, /\n2026-01-03\n–\n7\n/)
      // A zone that only the database knows.
      const [withUnknownZone] = textOf(
        yield* print(yield* printing(), summaryOf(rows, { ...days, tz: "posix/Europe/Zurich" }))
      )
      assert.include(withUnknownZone!, "\n2026-01-01 UTC\n")
      const [one] = textOf(yield* print(yield* printing(), summaryOf(rows.slice(1), days)))
      assert.notInclude(one!, "Consumed by day")
    })
  )
})
