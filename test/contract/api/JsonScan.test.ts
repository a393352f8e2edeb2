import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { depthMax, namesMax, valuesMaxDefault } from "../../../src/contract/api/json/JsonLimits.ts"
import { scanJson } from "../../../src/contract/api/json/JsonScan.ts"

const limitOf = (text: string, valuesMax = valuesMaxDefault) => scanJson(Buffer.from(text), valuesMax).exceeded

const nested = (levels: number) => `${'{"a":['.repeat(levels / 2)}${"]}".repeat(levels / 2)}`

/** Members and list elements; an empty object or list counts once more. */
const valuesOf = (value: unknown): number => {
  if (typeof value !== "object" || value === null) return 0
  const inner = Object.values(value)
  return (inner.length === 0 ? 1 : 0) + inner.reduce<number>((sum, item) => sum + 1 + valuesOf(item), 0)
}

describe("the limits of a JSON text", () => {
  it("count the members and list elements of any JSON, and nothing within its texts", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 8 }), fc.nat(3), (value, indent) => {
        const count = valuesOf(value)
        const text = JSON.stringify(value, null, indent)
        assert.isUndefined(limitOf(text, count))
        if (count > 0) assert.strictEqual(limitOf(text, count - 1), "values")
      })
    )
  })

  it("count quotes and brackets in texts as text", () => {
    for (const text of ['"', "\\", '\\"', '\\\\"{', "[".repeat(20), '{"a":{'])
      assert.isUndefined(limitOf(JSON.stringify({ [text]: text, [`${text}2`]: [text] }), 4), text)
  })

  it(`are ${depthMax} levels`, () => {
    assert.isUndefined(limitOf(nested(depthMax)))
    assert.strictEqual(limitOf(nested(depthMax + 2)), "depth")
    assert.strictEqual(limitOf(`]]]}}}${"[".repeat(depthMax + 1)}`), "depth")
  })

  it(`are ${namesMax} names of one object, at any level`, () => {
    const object = (count: number) => `{${Array.from({ length: count }, (_, index) => `"k${index}" : 1`).join()}}`
    const deep = (inner: string) => `{"a":[1,${inner},${inner}],"b":${inner}}`
    assert.isUndefined(limitOf(deep(object(namesMax))))
    assert.strictEqual(limitOf(deep(object(namesMax + 1))), "names")
  })

  it("end at any text that is no JSON", () => {
    for (const text of ["", '"', '"\\', '{"', "\\", "::::", ",,,", '"metadata"', '{"metadata"'])
      assert.isUndefined(limitOf(text))
  })
})
