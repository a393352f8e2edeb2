/** Faults are looked for from the decoder's first one on: a list's valid items are not decoded twice. */
import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import { firstFaults, placeOf } from "../../../src/access/requests/BodyFaults.ts"

describe("the first faults of a body", () => {
  // The framework decodes a payload by a union of its schemas.
  for (const inUnion of [false, true]) {
    it(`begin where the decoder stopped${inUnion ? ", in a union of one" : ""}`, () => {
      let decoded = 0
      const Name = Schema.String.check(Schema.makeFilter((name: string) => ++decoded > 0 && name.length < 3))
      const struct = Schema.Struct({ records: Schema.Array(Schema.Struct({ name: Name })) })
      const body = { records: [...Array(50).fill({ name: "a" }), { name: "long" }, { name: "longer" }] }
      const result = Schema.decodeUnknownResult(inUnion ? Schema.Union([struct]) : struct)(body)
      assert(Result.isFailure(result))
      const place = placeOf(result.failure.issue)
      assert.deepStrictEqual(place, ["records", 50, "name"])
      decoded = 0
      const faults = firstFaults(struct.ast, body, place)
      assert.strictEqual(faults.length, 2)
      assert.isBelow(decoded, 10)
    })
  }
})
