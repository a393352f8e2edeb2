import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { syntaxFaultAt } from "../../../src/contract/api/json/JsonSyntax.ts"

/** Each `|` stands before the first character that JSON does not allow. */
const faulty = [
  "|",
  "{|",
  '{"a"|',
  '{"a":|',
  '{"a":1|',
  '{"a":1,|}',
  '{"a":[1,|]}',
  "{|'a':1}",
  '{"a":|x}',
  '{"a":0|1}',
  '{"a":1.|}',
  '{"a":|tru}',
  '{"a":"b|\n"}',
  '{"a":"b|\\x"}',
  '{"a":"|\\u12g4"}',
  '{"a":"open|',
  '{"a":1} |{"b":2}',
  ' {"a" |1}',
  '{"a":[1 |2]}',
  '{"a":1|]',
  "[|}"
]

describe("The place of a syntax fault", () => {
  for (const marked of faulty) {
    it(`of ${JSON.stringify(marked)}`, () => {
      const text = marked.replace("|", "")
      assert.throws(() => JSON.parse(text))
      const at = syntaxFaultAt(text)
      // Within a number the digits before the fault are a number of their own.
      assert.strictEqual(at, marked === '{"a":1.|}' ? 6 : marked.indexOf("|"))
    })
  }

  it("is the end of any valid text", () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom(undefined, 2, "\t"), (value, indent) => {
        const text = ` ${JSON.stringify(value, undefined, indent)}\n`
        assert.strictEqual(syntaxFaultAt(text), text.length)
      })
    )
  })

  it("is never beyond the first character that was spoilt", () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.nat(), (value, index) => {
        const text = JSON.stringify(value)
        const place = index % (text.length + 1)
        assert.isAtMost(syntaxFaultAt(`${text.slice(0, place)}\u0001${text.slice(place)}`), place)
      })
    )
  })

  it("is found in a long text, too", () => {
    const text = `{"a":"${"é\\n".repeat(60_000)}","b":x}`
    assert.strictEqual(syntaxFaultAt(text), text.length - 2)
  })
})
