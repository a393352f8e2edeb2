/** The licenses that a bulk job of the console reaches, by the filters of the list. */
import { assert, describe, it } from "@effect/vitest"
import { targetOf } from "../../../../src/clients/console/bulk/Target.ts"

describe("A bulk job of a filtered list", () => {
  it("reaches what the filters match, and every license only with a confirmation", () => {
    assert.deepStrictEqual(targetOf({ filters: { q: "ada", limit: 50 } }), { filter: { q: "ada" } })
    for (const filters of [{}, { q: "" }, { q: " " }])
      assert.deepStrictEqual(targetOf({ filters }), { filter: {}, confirm_all: true })
  })
})
