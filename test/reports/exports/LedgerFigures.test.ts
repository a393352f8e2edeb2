import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { figuresOfLine, LedgerFigures, ledgerTail } from "../../../src/reports/exports/LedgerFigures.ts"
import { type LedgerRow, ledgerCsv, ledgerFields, ledgerJson } from "../../../src/reports/exports/LedgerText.ts"
import { isPlain } from "../../../src/reports/exports/PlainText.ts"

const head = '{"filters":{},"rows":['
const text = fc
  .oneof(fc.string({ unit: "binary-ascii", minLength: 1 }), fc.constantFrom("=1", "'=1", "a,b", "-5", "a b", 'a"b', ""))
  .filter((text) => {
    const bytes = Buffer.from(text)
    return isPlain(bytes, 0, bytes.length)
  })
const optional = <A>(arbitrary: fc.Arbitrary<A>) => fc.option(arbitrary, { nil: null })

const row: fc.Arbitrary<LedgerRow> = fc.record({
  sequence: fc.nat(),
  occurred_at: fc.nat(),
  action: fc.constant("consume"),
  event_id: optional(text),
  license_id: text,
  product_id: text,
  customer_id: optional(text),
  order_id: optional(text),
  subscription_id: optional(text),
  feature_id: text,
  feature_code: optional(text),
  amount: fc.integer(),
  balance_before: fc.nat(),
  balance_after: fc.nat(),
  max_after: optional(fc.nat()),
  device_id: optional(text),
  actor_type: fc.constant("license"),
  actor_id: text,
  request_id: text
})

/** Rows of a piece, whether its figures are stored, and after how many bytes its file is cut into chunks. */
const piece = fc.record({
  rows: fc.array(row, { maxLength: 4 }),
  stored: fc.boolean(),
  chunkBytes: fc.integer({ min: 40, max: 2_000 })
})

describe("The figures of an export of the ledger", () => {
  it("are read back from lines with nothing to escape", () => {
    fc.assert(
      fc.property(row, (row) => {
        const line = ledgerCsv(row)
        assert.notMatch(line, /"/)
        assert.strictEqual(figuresOfLine(line.slice(0, -"\r\n".length)), ledgerJson(row))
      })
    )
  })

  it("are put together from what is stored and what the file tells, wherever pieces and chunks end", () => {
    fc.assert(
      fc.property(fc.array(piece, { minLength: 1, maxLength: 6 }), (pieces) => {
        const figures = new LedgerFigures(head)
        const all = pieces.flatMap(({ rows }) => rows.map(ledgerJson))
        let text = ""
        let before = 0
        const add = (bytes: Uint8Array) => (text += Buffer.from(bytes).toString())
        for (const [index, { chunkBytes, rows, stored }] of pieces.entries()) {
          const [first, last] = [index === 0, index === pieces.length - 1]
          const separator = before > 0 && rows.length > 0 ? "," : ""
          const json = `${first ? head : ""}${separator}${rows.map(ledgerJson).join(",")}${last ? ledgerTail : ""}`
          const csv = Buffer.from(`${first ? `${ledgerFields.join(",")}\r\n` : ""}${rows.map(ledgerCsv).join("")}`)
          before += rows.length
          // A piece without rows has no file to tell it.
          if (stored || rows.length === 0) add(figures.stored(Buffer.from(json)))
          else {
            for (let at = 0; at < csv.length; at += chunkBytes) add(figures.told(csv.subarray(at, at + chunkBytes)))
          }
        }
        add(figures.end())
        assert.strictEqual(text, `${head}${all.join(",")}${ledgerTail}`)
      })
    )
  })
})
