import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { canonicalize, type Json } from "../../../../src/contract/api/CanonicalJson.ts"
import { makeSnapshotReader } from "../../../../src/insight/reports/usage/SnapshotReader.ts"
import { character } from "../../../support/rules/Characters.ts"

const read = (bytes: Uint8Array, path: ReadonlyArray<string>, pieceBytes: number) => {
  const rows: Array<Json> = []
  const reader = makeSnapshotReader(path, (row) => rows.push(row))
  for (let at = 0; at < bytes.length; at += pieceBytes) reader.push(bytes.subarray(at, at + pieceBytes))
  return { rows, rest: reader.rest() }
}

// Texts that look like the surrounding structure.
const text = fc.oneof(
  fc.string({ unit: character }),
  fc.constantFrom('"rows":[', '},{"', "\\", '"', "]}", "Ωμέγα", "漢字")
)
// JSON.parse of V8 13.6 misreads a name with an escape as the name "\\" after it has read one, so names here have no
// escapes.
const name = fc.oneof(fc.string(), fc.constantFrom("rows", "report", "],{:", "Ωμέγα")).filter((it) => !/["\\]/.test(it))
const value = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    text,
    fc.maxSafeInteger(),
    fc.constant(null),
    fc.array(tie("value"), { maxLength: 3 }),
    fc.dictionary(name, tie("value"), { maxKeys: 3 })
  )
})).value
const row = fc.dictionary(name, value, { minKeys: 1, maxKeys: 4 })
const rows = fc.array(row, { maxLength: 5 })

describe("Stored figures", () => {
  it("are read row by row, for all chunk sizes", () => {
    fc.assert(
      fc.property(rows, value, value, fc.integer({ min: 1, max: 50 }), (rows, before, after, pieceBytes) => {
        const whole = { filters: { a: before }, report: { a: before, rows, zone: after }, z: after }
        const found = read(Buffer.from(canonicalize(whole)), ["report", "rows"], pieceBytes)
        assert.strictEqual(canonicalize(found.rows), canonicalize(rows))
        assert.strictEqual(canonicalize(found.rest), canonicalize({ ...whole, report: { ...whole.report, rows: [] } }))
      })
    )
  })

  it("are read if the list is at the top level", () => {
    const figures = { filters: { rows: "x" }, rows: [{ a: 1 }, { a: [{ b: 2 }] }] }
    const found = read(Buffer.from(canonicalize(figures)), ["rows"], 7)
    assert.deepStrictEqual(found, { rows: figures.rows, rest: { filters: { rows: "x" }, rows: [] } })
  })
})
