import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { IdTable } from "../../../src/reports/exports/IdTable.ts"

const bytesOf = (text: string) => new Uint8Array(Buffer.from(text))

const entry = fc.record({
  id: fc.oneof(
    fc.string({ unit: "grapheme", maxLength: 20 }),
    fc.nat({ max: 200 }).map((n) => `lic_${n}`)
  ),
  mark: fc.nat({ max: 255 }),
  other: fc.option(fc.string({ unit: "grapheme", maxLength: 300 }), { nil: null })
})

describe("A table of ids", () => {
  it("finds what was added, by bytes anywhere, and nothing else", () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(entry, { selector: ({ id }) => id, maxLength: 400 }),
        fc.string(),
        (entries, stranger) => {
          const table = new IdTable(400)
          for (const { id, mark, other } of entries) {
            table.add(mark, [bytesOf(id), other === null ? undefined : bytesOf(other)])
          }
          assert.strictEqual(table.count, entries.length)
          for (const { id, mark, other } of entries) {
            const bytes = bytesOf(`>${id}<`)
            const found = table.find(bytes, 1, bytes.length - 2)
            assert.deepStrictEqual([table.mark(found), table.texts(found, 2)], [mark, [id, other]])
            assert.strictEqual(table.isText(found, 1, bytesOf("another")), other === "another")
            assert.strictEqual(other === null || table.isText(found, 1, bytesOf(other)), true)
          }
          const known = entries.some(({ id }) => id === stranger)
          assert.strictEqual(table.find(bytesOf(stranger), 0, bytesOf(stranger).length) >= 0, known)
        }
      )
    )
  })

  it("takes no more than its bound, and as many again when it is emptied", () => {
    const table = new IdTable(3)
    for (const round of [1, 2]) {
      for (const id of ["a", "b", "c"]) {
        assert.isTrue(table.hasRoom(1))
        table.add(round, [bytesOf(id)])
      }
      assert.isFalse(table.hasRoom(1))
      assert.throws(() => table.add(0, [bytesOf("d")]), RangeError)
      assert.strictEqual(table.mark(table.find(bytesOf("b"), 0, 1)), round)
      table.clear()
      assert.strictEqual(table.find(bytesOf("b"), 0, 1), -1)
    }
  })
})
