/**
 * The runtime operations on the fast path and on the framework path: two equal licenses run the same scenario, one on each path, and
 * their answers and everything stored are equal.
 */
import { assert, describe, layer, it as plainIt } from "@effect/vitest"
import { Effect } from "effect"
import { RuntimePaths } from "../../support/http/FastPath.ts"
import { refusalOrders } from "../../support/rules/RefusalOrder.ts"
import { runScenario, runtimeScenarios } from "./RuntimeScenarios.ts"

layer(RuntimePaths.layerWith(), { timeout: 60_000 })("Runtime operations on both paths", (it) => {
  for (const [index, [name, scenario]] of Object.entries(runtimeScenarios).entries()) {
    it.effect(`have equal answers and effects: ${name}`, () =>
      Effect.gen(function* () {
        const fast = yield* runScenario("fast", scenario, index)
        const framework = yield* runScenario("framework", scenario, index)
        const calls = scenario.steps.filter((step) => typeof step !== "function")
        assert.deepStrictEqual(
          fast.outcomes,
          calls.map(([, , outcome]) => String(outcome))
        )
        for (const [at, face] of fast.faces.entries()) {
          assert.deepStrictEqual(face, framework.faces[at], JSON.stringify(calls[at]))
        }
        assert.deepStrictEqual(fast.left, framework.left)
        assert.deepStrictEqual(fast.counts, framework.counts)
      })
    )
  }
})

describe("The runtimeScenarios of the twins", () => {
  plainIt("contain every refusal but that of a key, which has separate tests", () => {
    const covered = new Set(
      Object.values(runtimeScenarios).flatMap(({ steps }) =>
        steps.flatMap((step) => (typeof step === "function" || step[2] === 200 ? [] : [step[2]]))
      )
    )
    const codes = new Set(Object.values(refusalOrders).flatMap((ladder) => ladder.map(([code]) => code)))
    codes.delete("LICENSE_KEY_INVALID")
    assert.sameMembers([...covered], [...codes])
  })
})
