import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { csvLine } from "../../../src/contract/api/Csv.ts"
import { character } from "../../support/rules/Characters.ts"

/** A reader of RFC 4180, independent of the writer. */
const read = (line: string): ReadonlyArray<string> => {
  assert.isTrue(line.endsWith("\r\n"))
  const cells: Array<string> = []
  let [cell, quoted] = ["", false]
  const text = line.slice(0, -2)
  for (let index = 0; index < text.length; index++) {
    const char = text[index]!
    if (quoted && char === '"' && text[index + 1] === '"') index++
    else if (char === '"') {
      quoted = !quoted
      continue
    } else if (char === "," && !quoted) {
      cells.push(cell)
      cell = ""
      continue
    } else if (!quoted) assert.notMatch(char, /[\r\n]/)
    cell += char
  }
  return [...cells, cell]
}

/** What a spreadsheet whose list separator is a semicolon, as in German, takes for the cells of a line. Quotes within a cell count as text. */
const readWithSemicolons = (line: string): ReadonlyArray<string> => line.split(/[;\t\r\n]/)

const dangerous = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", " =1", "＝1", '=HYPERLINK("http://x","y")']

describe("CSV", () => {
  it("is read back as it was written, except for texts that begin like a formula", () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof(fc.string({ unit: character }), fc.constantFrom(...dangerous)), { minLength: 2 }),
        (cells) => {
          const back = read(csvLine(cells))
          assert.strictEqual(back.length, cells.length)
          for (const [index, cell] of cells.entries()) {
            const withoutApostrophes = back[index]!.replaceAll(/(^|[;\t\r\n])'/g, "$1")
            assert.strictEqual(withoutApostrophes, cell.replaceAll(/(^|[;\t\r\n])'/g, "$1"))
          }
        }
      )
    )
  })

  it("writes no formula for spreadsheets with another list separator", () => {
    for (const text of [
      "a;=1+1",
      "a; =1+1",
      'a";=1+1;"',
      "a\t@b",
      'a;"=1&"',
      "\n=1",
      "a\n-1",
      "a\r\n+1",
      ";=1",
      "a;;＝1",
      "=1;=2"
    ]) {
      const cells = readWithSemicolons(csvLine(["b", text]))
      for (const cell of cells) assert.notMatch(cell.replaceAll('"', ""), /^\s*[=+\-@＝]/u, text)
    }
    assert.strictEqual(csvLine(["a; b", "a;b-1"]), "a; b,a;b-1\r\n")
  })

  it("writes no text that begins like a formula, and leaves numbers unchanged", () => {
    for (const text of dangerous)
      assert.strictEqual(read(csvLine([text, ""]))[0], `'${text.replace(/^[\t\r\n]/, "$&'")}`)
    assert.strictEqual(csvLine([-5, 0, true, null, undefined, "a b", "Ωж"]), "-5,0,true,,,a b,Ωж\r\n")
    assert.strictEqual(csvLine(['a"b', "c,d", { b: 1, a: "=x" }]), '"a""b","c,d","{""a"":""=x"",""b"":1}"\r\n')
  })
})
