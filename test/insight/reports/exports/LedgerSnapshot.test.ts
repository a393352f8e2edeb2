import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { formatTimestamp } from "../../../../src/contract/api/Timestamp.ts"
import { LedgerSnapshot, ledgerTail, snapshotRowOf } from "../../../../src/insight/reports/exports/LedgerSnapshot.ts"
import {
  isPlainRow,
  type LedgerRow,
  ledgerCsv,
  ledgerFields,
  ledgerJson
} from "../../../../src/insight/reports/exports/LedgerText.ts"

const head = '{"filters":{},"rows":['
const plain = fc.stringMatching(/^[a-z0-9_][a-z0-9_ .:/]{0,19}$/)
const awkward = fc.oneof(
  fc.string({ unit: "binary-ascii" }),
  fc.constantFrom("=1", "'=1", "a,b", "-5", 'a"b', "a\\b", "a\tb", "one\r\ntwo", "Ωμέγα", "漢字", "")
)
const optional = <A>(arbitrary: fc.Arbitrary<A>) => fc.option(arbitrary, { nil: null })

/** Callers choose the event id, the device, the actor, its name and the request id; all other texts are plain. */
const rowOf = (text: fc.Arbitrary<string>): fc.Arbitrary<LedgerRow> =>
  fc.tuple(
    fc.nat(),
    fc.nat().map(formatTimestamp),
    fc.constant("consume"),
    optional(text),
    plain,
    plain,
    optional(plain),
    optional(plain),
    optional(plain),
    plain,
    optional(plain),
    fc.integer(),
    fc.nat(),
    fc.nat(),
    optional(fc.nat()),
    optional(text),
    fc.constant("license"),
    text,
    text,
    optional(text),
    optional(fc.integer()),
    optional(fc.integer()),
    optional(text)
  )
const row = rowOf(plain)
const oneJson = (row: LedgerRow) => ledgerJson([row])

/** The rows of a piece, whether its figures are stored, and the size in bytes of the chunks of its file. */
const piece = fc.record({
  rows: fc.array(row, { maxLength: 4 }),
  stored: fc.boolean(),
  chunkBytes: fc.integer({ min: 40, max: 2_000 })
})

describe("The figures of an export of the ledger", () => {
  it("are read back from lines without escapes", () => {
    fc.assert(
      fc.property(row, (row) => {
        const line = ledgerCsv([row])
        assert.isTrue(isPlainRow(row))
        assert.strictEqual(snapshotRowOf(line.slice(0, -"\r\n".length)), oneJson(row))
      })
    )
  })

  it("are never read back wrongly from a line that counts as readable", () => {
    let unreadable = 0
    fc.assert(
      fc.property(rowOf(fc.oneof({ weight: 9, arbitrary: plain }, awkward)), (row) => {
        const line = ledgerCsv([row])
        if (!isPlainRow(row)) unreadable++
        else assert.strictEqual(snapshotRowOf(line.slice(0, -"\r\n".length)), oneJson(row))
      }),
      { numRuns: 1_000 }
    )
    assert.isAbove(unreadable, 0)
  })

  it("are combined from stored ones and those in the file, for all piece and chunk sizes", () => {
    fc.assert(
      fc.property(fc.array(piece, { minLength: 1, maxLength: 6 }), (pieces) => {
        const figures = new LedgerSnapshot(head)
        const all = pieces.flatMap(({ rows }) => rows.map(oneJson))
        let text = ""
        let before = 0
        const add = (bytes: Uint8Array) => (text += Buffer.from(bytes).toString())
        for (const [index, { chunkBytes, rows, stored }] of pieces.entries()) {
          const [first, last] = [index === 0, index === pieces.length - 1]
          const separator = before > 0 && rows.length > 0 ? "," : ""
          const json = `${first ? head : ""}${separator}${rows.map(oneJson).join(",")}${last ? ledgerTail : ""}`
          const csv = Buffer.from(`${first ? `${ledgerFields.join(",")}\r\n` : ""}${ledgerCsv(rows)}`)
          before += rows.length
          // A piece without rows writes nothing to its file.
          if (stored || rows.length === 0) add(figures.fromSnapshot(Buffer.from(json)))
          else {
            for (let at = 0; at < csv.length; at += chunkBytes) add(figures.fromCsv(csv.subarray(at, at + chunkBytes)))
          }
        }
        add(figures.end())
        assert.strictEqual(text, `${head}${all.join(",")}${ledgerTail}`)
      })
    )
  })
})
