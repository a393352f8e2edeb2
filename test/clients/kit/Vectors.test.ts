/** The kit gives every published vector its verdict. test/clients/kit/Platforms.slow.test.ts does the same on Deno and in a browser. */
import { assert, describe, it } from "@effect/vitest"
import { vectors, wantedVerdicts } from "./Vectors.ts"
import { verdictsOf } from "./Verdicts.ts"

describe("The application kit", () => {
  it("gives every published vector its verdict", async () => {
    const wanted = wantedVerdicts()
    assert.isAbove(wanted.length, 190)
    assert.deepStrictEqual((await verdictsOf(vectors)).toSorted(), wanted.toSorted())
  })
})
