/**
 * The runtime operations on the direct way and on the general one: twins of a license live the same life, one on each way, and
 * neither an answer nor anything that is left behind tells them apart.
 */
import { assert, describe, layer, it as plainIt } from "@effect/vitest"
import { Effect } from "effect"
import { RuntimePaths } from "../support/FastPath.ts"
import { refusalOrders } from "../support/RefusalOrder.ts"
import { runScenario, runtimeScenarios } from "./RuntimeScenarios.ts"

layer(RuntimePaths.layerWith(), { timeout: 60_000 })("Twins of a license", (it) => {
  for (const [index, [name, life]] of Object.entries(runtimeScenarios).entries()) {
    it.effect(`are told apart by nothing: ${name}`, () =>
      Effect.gen(function* () {
        const direct = yield* runScenario("direct", life, index)
        const general = yield* runScenario("general", life, index)
        const calls = life.steps.filter((step) => typeof step !== "function")
        assert.deepStrictEqual(
          direct.outcomes,
          calls.map(([, , outcome]) => String(outcome))
        )
        for (const [at, face] of direct.faces.entries()) {
          assert.deepStrictEqual(face, general.faces[at], JSON.stringify(calls[at]))
        }
        assert.deepStrictEqual(direct.left, general.left)
        assert.deepStrictEqual(direct.counts, general.counts)
      })
    )
  }
})

describe("The runtimeScenarios of the twins", () => {
  plainIt("have every refusal of the ladder but that of a key, which has its own tests", () => {
    const lived = new Set(
      Object.values(runtimeScenarios).flatMap(({ steps }) =>
        steps.flatMap((step) => (typeof step === "function" || step[2] === 200 ? [] : [step[2]]))
      )
    )
    const rungs = new Set(Object.values(refusalOrders).flatMap((ladder) => ladder.map(([code]) => code)))
    rungs.delete("LICENSE_KEY_INVALID")
    assert.sameMembers([...lived], [...rungs])
  })
})
