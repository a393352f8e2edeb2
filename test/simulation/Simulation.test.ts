/** A few seeds of the simulator with every run of the tests; the slow tests run more. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SimulationRuns } from "./SimulationRuns.ts"

const seeds = [1, 2]

layer(SimulationRuns.layer, { excludeTestServices: true })("Licenses under faults", (it) => {
  it.effect.each(seeds)("seed %i: every checker passes", (seed) =>
    Effect.gen(function* () {
      const { result } = yield* SimulationRuns
      assert.isUndefined((yield* result(seed)).failure)
    })
  )
})
