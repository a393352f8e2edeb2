import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Layer, Logger, References } from "effect"
import { TestClock } from "effect/testing"
import * as Logging from "../../../src/platform/telemetry/Logging.ts"

interface Written {
  readonly message: string
  readonly repeated: number | undefined
  readonly cause: string
}

/** Runs an effect whose log records are collected as they are written. */
const collecting = Effect.fnUntraced(function* <A, E>(run: (written: ReadonlyArray<Written>) => Effect.Effect<A, E>) {
  const written: Array<Written> = []
  const logger = Logger.make(({ cause, message }) => {
    const [text, ...members] = message as ReadonlyArray<unknown>
    const { repeated } = Object.assign({}, ...members) as { readonly repeated?: number }
    written.push({ message: String(text), repeated, cause: Cause.pretty(cause) })
  })
  yield* run(written).pipe(
    Effect.provide(Layer.merge(Logging.layerOf(logger), Layer.succeed(References.MinimumLogLevel, "Info")))
  )
  return written
})

/** What a request logs that finds the disk full. */
const fails = (code: string, waited_ms = 0) =>
  Effect.logError(
    "A request failed.",
    { route: "/api/v1/license/consume", waited_ms, license: `lic_${waited_ms}` },
    Cause.die(new Error("Statement failed", { cause: Object.assign(new Error("No space left on device"), { code }) }))
  )

describe("A failure that repeats", () => {
  it.effect("is written once with its cause, then counted once a second", () =>
    Effect.gen(function* () {
      const written = yield* collecting(() =>
        Effect.forEach(Array.from({ length: 50 }), () =>
          Effect.andThen(Effect.forEach(Array(200).fill("53100"), fails), TestClock.adjust("100 millis"))
        )
      )
      const [first, ...counts] = written
      assert.include(first?.cause, "No space left on device")
      assert.isAtMost(counts.length, 6)
      assert.isTrue(counts.every(({ cause }) => cause === ""))
      assert.strictEqual(
        counts.reduce((sum, { repeated = 0 }) => sum + repeated, 1),
        10_000
      )
    })
  )

  it.effect("is told from another failure", () =>
    Effect.gen(function* () {
      const written = yield* collecting(() => Effect.andThen(fails("53100"), fails("53200")))
      assert.deepStrictEqual(
        written.map(({ repeated }) => repeated),
        [undefined, undefined]
      )
    })
  )

  it.effect("is written with its cause again after a minute without it", () =>
    Effect.gen(function* () {
      const written = yield* collecting(() =>
        Effect.gen(function* () {
          yield* fails("53100")
          yield* TestClock.adjust("62 seconds")
          yield* fails("53100")
        })
      )
      assert.strictEqual(written.filter(({ cause }) => cause !== "").length, 2)
    })
  )

  it.effect("does not hold back other records", () =>
    Effect.gen(function* () {
      const written = yield* collecting(() =>
        Effect.forEach(Array(100).fill("Answered a request."), (text) => Effect.logInfo(text))
      )
      assert.strictEqual(written.length, 100)
    })
  )
})
