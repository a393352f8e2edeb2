/** A few seconds of `npm run soak`: the program works, and samples have each figure. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { runSoak } from "./Soak.ts"

describe("A soak", () => {
  it.live(
    "takes a sample of each minute, paces the load, and finds what callers were told",
    () =>
      Effect.gen(function* () {
        const rates: Array<number> = []
        const all = yield* runSoak({ samples: 2, seconds: 4, seed: 1 }, (_, rate) =>
          Effect.sync(() => void rates.push(rate))
        )
        assert.deepStrictEqual(
          all.flatMap(({ violations }) => violations),
          []
        )
        assert.strictEqual(all.length, 2)
        for (const { answers, sample } of all) {
          for (const [name, value] of Object.entries(sample)) assert.isTrue(Number.isFinite(value), name)
          assert.isAbove(answers, 0)
          assert.isAtMost(sample.requestsPerSecond, 1.1 * rates[0]!)
        }
      }).pipe(Effect.scoped),
    180_000
  )
})
