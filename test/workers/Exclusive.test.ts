/** Batches of background work and the rests between them. */
import { assert, layer } from "@effect/vitest"
import { Clock, Duration, Effect, Option } from "effect"
import { SqlClient } from "effect/sql"
import { exclusively, makeThrottle } from "../../src/workers/Exclusive.ts"
import { Database } from "../support/Database.ts"

/** A clock that only work moves on, and what was rested by it, in milliseconds. */
const makeClock = Effect.gen(function* () {
  let nanos = 0n
  const rests: Array<number> = []
  const clock: Clock.Clock = Object.assign(Object.create(yield* Clock.Clock), {
    monotonicTimeNanosUnsafe: () => nanos,
    sleep: (duration: Duration.Duration) => Effect.sync(() => void rests.push(Duration.toMillis(duration)))
  })
  const work = (millis: number) =>
    Effect.sync(() => {
      nanos += BigInt(millis) * 1_000_000n
      return "done"
    })
  return { clock, rests, work }
})

layer(Database.layer, { timeout: 60_000 })("a batch", (it) => {
  it.effect("is followed by a rest as long as it took", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { clock, rests, work } = yield* makeClock
      const result = yield* exclusively(sql, "a-batch")(work(30)).pipe(Effect.provideService(Clock.Clock, clock))
      assert.deepStrictEqual(result, Option.some("done"))
      assert.deepStrictEqual(rests, [30])
    })
  )

  it.effect(
    "that takes longer than usual is followed by a longer rest, within limits, and usual is what comes again",
    () =>
      Effect.gen(function* () {
        const { clock, rests, work } = yield* makeClock
        const throttle = makeThrottle(2)
        const restAfter = (millis: number) =>
          Effect.map(Effect.provideService(throttle(work(millis)), Clock.Clock, clock), () => rests.at(-1)!)
        assert.strictEqual(yield* restAfter(10), 20)
        assert.strictEqual(yield* restAfter(20), 80)
        const slow = yield* restAfter(50)
        assert.isAbove(slow, 350)
        assert.isAtMost(slow, 2 * 50 * 4)
        assert.strictEqual(yield* restAfter(5000), 500)
        for (let turn = 0; turn < 200; turn++) yield* restAfter(50)
        assert.approximately(yield* restAfter(50), 100, 1)
        assert.strictEqual(yield* restAfter(10), 20)
      })
  )
})
