/** Batches of background work and the pauses between them. */
import { assert, layer } from "@effect/vitest"
import { Clock, Duration, Effect, Option } from "effect"
import { SqlClient } from "effect/sql"
import { exclusively, makeThrottle } from "../../../src/platform/workers/Exclusive.ts"
import { Database } from "../../support/database/Database.ts"

/** A clock that only work advances, and the pauses taken on it, in milliseconds. */
const makeClock = Effect.gen(function* () {
  let nanos = 0n
  const pauses: Array<number> = []
  const clock: Clock.Clock = Object.assign(Object.create(yield* Clock.Clock), {
    monotonicTimeNanosUnsafe: () => nanos,
    sleep: (duration: Duration.Duration) => Effect.sync(() => void pauses.push(Duration.toMillis(duration)))
  })
  const work = (millis: number) =>
    Effect.sync(() => {
      nanos += BigInt(millis) * 1_000_000n
      return "done"
    })
  return { clock, rests: pauses, work }
})

layer(Database.layer, { timeout: 60_000 })("a batch", (it) => {
  it.effect("is followed by a pause as long as the work took", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { clock, rests: pauses, work } = yield* makeClock
      const result = yield* exclusively(sql, "a-batch")(work(30)).pipe(Effect.provideService(Clock.Clock, clock))
      assert.deepStrictEqual(result, Option.some("done"))
      assert.deepStrictEqual(pauses, [30])
    })
  )

  it.effect(
    "that takes longer than usual is followed by a longer pause, within limits, and repeated slow batches become the usual",
    () =>
      Effect.gen(function* () {
        const { clock, rests: pauses, work } = yield* makeClock
        const throttle = makeThrottle(2)
        const pauseAfter = (millis: number) =>
          Effect.map(Effect.provideService(throttle(work(millis)), Clock.Clock, clock), () => pauses.at(-1)!)
        assert.strictEqual(yield* pauseAfter(10), 20)
        assert.strictEqual(yield* pauseAfter(20), 80)
        const slow = yield* pauseAfter(50)
        assert.isAbove(slow, 350)
        assert.isAtMost(slow, 2 * 50 * 4)
        assert.strictEqual(yield* pauseAfter(5000), 500)
        for (let repetition = 0; repetition < 200; repetition++) yield* pauseAfter(50)
        assert.approximately(yield* pauseAfter(50), 100, 1)
        assert.strictEqual(yield* pauseAfter(10), 20)
      })
  )
})
