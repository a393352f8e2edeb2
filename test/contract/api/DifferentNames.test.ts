/** A body may repeat a name as often as its other limits allow, and have a limited number of different names. */
import { assert, describe, it } from "@effect/vitest"
import { differentNamesMax } from "../../../src/contract/api/json/JsonLimits.ts"
import { bodyFault } from "../../../src/contract/api/json/JsonText.ts"

/** Records with 50 members each; `nameOf` names the nth member of the whole body. */
const records = (members: number, nameOf: (index: number) => string): Buffer => {
  const list = Array.from({ length: members / 50 }, (_, record) => {
    const own = Array.from({ length: 50 }, (_, member) => `"${nameOf(record * 50 + member)}" : "a\\"b:{"`)
    return `{${own.join(" ,")}}`
  })
  return Buffer.from(`{"a":[${list.join(",")}]}`)
}

describe("the different names of a body", () => {
  it(`are at most ${differentNamesMax}`, () => {
    // The list's own name is one of them.
    const isNew = (index: number) => (index === 0 ? "a" : `n${index}`)
    assert.isUndefined(bodyFault(records(differentNamesMax, isNew)))
    const fault = bodyFault(records(differentNamesMax + 50, isNew))
    assert.strictEqual(fault?.message, `The body has more than ${differentNamesMax} different field names: use fewer.`)
  })

  it("may be repeated, and texts are no names", () => {
    assert.isUndefined(bodyFault(records(8_000, (index) => `n${index % 50}`)))
    const texts = Array.from({ length: 5_000 }, (_, index) => `"text ${index}"`)
    assert.isUndefined(bodyFault(Buffer.from(`{"a":[${texts.join(",")}]}`)))
  })
})
