/** The published scenarios of decisions: clients in other languages replay the same file. */
import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { decisionFiles } from "../../../infra/scripts/decisions/Decisions.ts"
import { replay, type Scenario, type Shared } from "../../../infra/scripts/decisions/Replay.ts"

const path = "schema/vectors/decisions.json"
const text = readFileSync(new URL(`../../../${path}`, import.meta.url), "utf8")
const file = JSON.parse(text) as Shared & { readonly scenarios: ReadonlyArray<Scenario> }

describe("The application kit", () => {
  for (const scenario of file.scenarios) {
    it(`decides as published: ${scenario.name}`, async () => {
      const expected: ReadonlyArray<unknown> = scenario.steps.map((step) => step.expected)
      assert.deepStrictEqual(await replay(file, scenario), expected)
    })
  }

  it("has decisions that are up to date (otherwise run npm run generate)", async () => {
    assert.deepStrictEqual(await decisionFiles(), { [path]: text })
  })
})
