/** Whom the scheduler wakes: sleeps end in the order of their ends, also when the clock is set back. */
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Fiber } from "effect"
import { type FaultPlan, Scheduler } from "./nodes/Scheduler.ts"
import { RandomSource } from "./requests/RandomSource.ts"

describe("A short sleep", () => {
  it.effect("ends before a later one, although the clock was set back in between", () =>
    Effect.gen(function* () {
      const plan: FaultPlan = { verdictOn: () => "pass", isHeld: () => false }
      const scheduler = new Scheduler(yield* Effect.scope, new RandomSource(1), plan, () => {})
      scheduler.setTime(3_600_000)
      const woken: Array<string> = []
      const sleep = (name: string) =>
        Effect.forkChild(
          Effect.andThen(
            scheduler.clockOf(0).sleep(Duration.millis(100)),
            Effect.sync(() => woken.push(name))
          ),
          { startImmediately: true }
        )
      const first = yield* sleep("first")
      scheduler.setTime(0)
      const second = yield* sleep("second")
      assert.isTrue(scheduler.wakeShort())
      yield* scheduler.calm
      assert.deepStrictEqual(woken, ["first"])
      assert.isTrue(scheduler.wakeShort())
      yield* Effect.all([Fiber.join(first), Fiber.join(second)])
      assert.deepStrictEqual(woken, ["first", "second"])
    })
  )
})
