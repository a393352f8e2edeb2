import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Array as Items, Logger, Queue, References } from "effect"
import { TestClock } from "effect/testing"
import { sendHeartbeat } from "../../../src/platform/workers/PassHeartbeat.ts"
import * as Worker from "../../../src/platform/workers/Worker.ts"

const started = Effect.fnUntraced(function* (pass: Effect.Effect<void, unknown>) {
  const worker = yield* Worker.make({ name: "test", every: "1 minute", pass })
  yield* Effect.forkScoped(worker.run)
  yield* Effect.yieldNow
  return worker
})

/** The log's messages, in order. */
const logged = <A, E, R>(effect: Effect.Effect<A, E, R>, messages: Array<string>) =>
  effect.pipe(
    Effect.provide(
      Logger.layer([
        Logger.make(({ message, logLevel }) => void messages.push(`${logLevel} ${Items.ensure(message)[0]}`))
      ])
    ),
    Effect.provideService(References.MinimumLogLevel, "Info")
  )

describe("a worker", () => {
  it.effect("runs a pass on start and one after each interval", () =>
    Effect.gen(function* () {
      let passes = 0
      const worker = yield* started(Effect.sync(() => void passes++))
      assert.strictEqual(passes, 1)
      yield* TestClock.adjust("59 seconds")
      assert.strictEqual(passes, 1)
      yield* TestClock.adjust("1 second")
      assert.strictEqual(passes, 2)
      yield* TestClock.adjust("3 minutes")
      assert.strictEqual(passes, 5)
      assert.deepStrictEqual(yield* worker.status, {
        name: "test",
        started_at: 0,
        last_success_at: 240_000,
        failures: 0,
        passes: 5,
        dead: false,
        deaths: 0
      })
    })
  )

  it.effect("wakes early on a signal, and runs once more for signals during a pass", () =>
    Effect.gen(function* () {
      const startedPasses = yield* Queue.unbounded<Deferred.Deferred<void>>()
      const pass = Effect.gen(function* () {
        const end = yield* Deferred.make<void>()
        yield* Queue.offer(startedPasses, end)
        yield* Deferred.await(end)
      })
      const worker = yield* started(pass)
      const finish = Effect.flatMap(Queue.take(startedPasses), (end) => Deferred.succeed(end, undefined))
      const first = yield* Queue.take(startedPasses)
      yield* worker.wake
      yield* worker.wake
      yield* Deferred.succeed(first, undefined)
      yield* finish
      assert.strictEqual(yield* Queue.size(startedPasses), 0)
      yield* worker.wake
      yield* finish
      yield* TestClock.adjust("1 minute")
      yield* finish
    })
  )

  it.effect("survives failures and defects, logs them once, and retries with growing delays", () => {
    const messages: Array<string> = []
    return Effect.gen(function* () {
      let [passes, broken] = [0, true]
      const worker = yield* started(
        Effect.suspend(() => {
          passes++
          if (!broken) return Effect.void
          return passes % 2 === 0 ? Effect.fail("no") : Effect.die(new Error("worse"))
        })
      )
      const counts: Array<number> = []
      for (const wait of [1, 1, 1, 3, 1, 8, 16, 32, 60, 60]) {
        yield* TestClock.adjust(wait * 1000)
        counts.push(passes)
      }
      assert.deepStrictEqual(counts, [2, 2, 3, 3, 4, 5, 6, 7, 8, 9])
      assert.deepInclude(yield* worker.status, { failures: 9, passes: 0, last_failure_at: 183_000 })
      assert.notProperty(yield* worker.status, "last_success_at")
      broken = false
      yield* TestClock.adjust("1 minute")
      assert.deepInclude(yield* worker.status, { failures: 0, passes: 1, last_success_at: 243_000 })
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(messages, ["Error A worker failed; retrying.", "Info A worker recovered."])
    }).pipe((test) => logged(test, messages))
  })

  it.effect("is restarted when its fiber is killed, and counts as dead until a pass completes", () => {
    const messages: Array<string> = []
    return Effect.gen(function* () {
      let [passes, broken] = [0, false]
      const fibers: Array<Fiber.Fiber<unknown, unknown>> = []
      const worker = yield* started(
        Effect.withFiber((fiber) => {
          fibers.push(fiber)
          passes++
          return broken ? Effect.fail("no") : Effect.void
        })
      )
      assert.deepInclude(yield* worker.status, { dead: false, deaths: 0, passes: 1 })
      broken = true
      yield* Fiber.interrupt(fibers.at(-1)!)
      yield* Effect.yieldNow
      assert.deepInclude(yield* worker.status, { dead: true, deaths: 1, passes: 1 })
      yield* TestClock.adjust("1 second")
      assert.strictEqual(passes, 2)
      assert.deepInclude(yield* worker.status, { dead: true, failures: 1 })
      broken = false
      yield* TestClock.adjust("1 second")
      assert.deepInclude(yield* worker.status, { dead: false, deaths: 1, failures: 0, passes: 2 })
      // During a pause too.
      yield* TestClock.adjust("30 seconds")
      yield* Fiber.interrupt(fibers.at(-1)!)
      yield* TestClock.adjust("1 second")
      assert.deepInclude(yield* worker.status, { dead: false, deaths: 2, passes: 3 })
      yield* worker.wake
      yield* TestClock.adjust(0)
      assert.strictEqual(passes, 5)
      assert.deepStrictEqual(messages, [
        "Error A worker crashed; restarting.",
        "Error A worker failed; retrying.",
        "Info A worker recovered.",
        "Error A worker crashed; restarting.",
        "Info A worker recovered."
      ])
    }).pipe((test) => logged(test, messages))
  })

  it.effect("that is stuck counts as dead after ten minutes, and is restarted", () => {
    const messages: Array<string> = []
    return Effect.gen(function* () {
      let [passes, stuck] = [0, true]
      const worker = yield* started(Effect.suspend(() => (++passes && stuck ? Effect.never : Effect.void)))
      yield* TestClock.adjust("599 seconds")
      assert.deepInclude(yield* worker.status, { dead: false, deaths: 0, passes: 0 })
      stuck = false
      yield* TestClock.adjust("1 second")
      assert.deepInclude(yield* worker.status, { dead: true, deaths: 1, passes: 0 })
      yield* TestClock.adjust("1 second")
      assert.strictEqual(passes, 2)
      assert.deepInclude(yield* worker.status, { dead: false, deaths: 1, passes: 1 })
      assert.deepStrictEqual(messages, [
        "Error A worker is stuck; its pass is aborted.",
        "Error A worker crashed; restarting.",
        "Info A worker recovered."
      ])
    }).pipe((test) => logged(test, messages))
  })

  it.effect("that is stuck uninterruptibly stays dead until that pass has ended", () =>
    Effect.gen(function* () {
      const end = yield* Deferred.make<void>()
      const worker = yield* started(Effect.uninterruptible(Deferred.await(end)))
      yield* TestClock.adjust("2 hours")
      assert.deepInclude(yield* worker.status, { dead: true, deaths: 0, passes: 0 })
      yield* Deferred.succeed(end, undefined)
      yield* TestClock.adjust("1 second")
      assert.deepInclude(yield* worker.status, { dead: false, deaths: 1, passes: 1 })
    })
  )

  it.effect("continues a long pass as long as the pass sends heartbeats", () =>
    Effect.gen(function* () {
      const steps = yield* Queue.unbounded<void>()
      const worker = yield* started(Effect.forever(Effect.andThen(Queue.take(steps), sendHeartbeat)))
      for (let sign = 0; sign < 10; sign++) {
        yield* TestClock.adjust("9 minutes")
        assert.deepInclude(yield* worker.status, { dead: false, deaths: 0 })
        yield* Queue.offer(steps, undefined)
        yield* Effect.yieldNow
      }
      yield* TestClock.adjust("9 minutes")
      assert.deepInclude(yield* worker.status, { dead: false, deaths: 0 })
      yield* TestClock.adjust("1 minute")
      assert.deepInclude(yield* worker.status, { dead: true })
    })
  )

  it.effect("stops with its owner during a pass", () =>
    Effect.gen(function* () {
      const startedPasses = yield* Deferred.make<void>()
      const ended = yield* Deferred.make<void>()
      const pass = Effect.andThen(Deferred.succeed(startedPasses, undefined), Effect.never).pipe(
        Effect.onInterrupt(() => Deferred.succeed(ended, undefined))
      )
      const worker = yield* Worker.make({ name: "test", every: "1 minute", pass })
      const owner = yield* Effect.forkChild(worker.run)
      yield* Deferred.await(startedPasses)
      yield* Fiber.interrupt(owner)
      assert.isTrue(yield* Deferred.isDone(ended))
      assert.deepInclude(yield* worker.status, { dead: false, deaths: 0 })
    })
  )
})
