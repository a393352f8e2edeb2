import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Layer } from "effect"
import { TestConsole } from "effect/testing"
import { RequestContext } from "../../../src/contract/api/RequestContext.ts"
import { Settings } from "../../../src/platform/config/Config.ts"
import * as Logging from "../../../src/platform/telemetry/Logging.ts"

/** The records that an effect logs, each one line of JSON. */
const recordsOf = <A, E>(effect: Effect.Effect<A, E>, level: "Debug" | "Info" = "Info") =>
  Effect.gen(function* () {
    yield* Effect.exit(effect)
    const lines = (yield* TestConsole.logLines) as ReadonlyArray<string>
    return lines.map((line) => JSON.parse(line) as Record<string, unknown>)
  }).pipe(
    Effect.provide(Logging.layer("json").pipe(Layer.provide(Settings.layerTest({ logLevel: level })))),
    Effect.provide(TestConsole.layer)
  )

describe("Log records", () => {
  it.effect("have time, level, message and annotations as members", () =>
    Effect.gen(function* () {
      const [record] = yield* recordsOf(Effect.logInfo("Answered a request.", { route: "/health", status: 200 }))
      assert.deepStrictEqual(record, {
        time: "1970-01-01T00:00:00.000Z",
        level: "info",
        message: "Answered a request.",
        route: "/health",
        status: 200
      })
    })
  )

  it.effect("carry the id of their request", () =>
    Effect.gen(function* () {
      const within = Effect.logInfo("Within.").pipe(
        Effect.provideService(RequestContext, { requestId: "req_1", clientAddress: undefined })
      )
      const [outside, inside] = yield* recordsOf(Effect.andThen(Effect.logInfo("Outside."), within))
      assert.notProperty(outside, "request_id")
      assert.strictEqual(inside?.["request_id"], "req_1")
    })
  )

  it.effect("carry causes and annotations", () =>
    Effect.gen(function* () {
      const failing = Effect.logError("A request failed.", Cause.die(new Error("broken pipe"))).pipe(
        Effect.annotateLogs({ worker: "sweep" })
      )
      const [record] = yield* recordsOf(failing)
      assert.strictEqual(record?.["level"], "error")
      assert.strictEqual(record?.["worker"], "sweep")
      assert.include(String(record?.["cause"]), "broken pipe")
    })
  )

  for (const [level, count] of [
    ["Info", 1],
    ["Debug", 2]
  ] as const) {
    it.effect(`below the level ${level} of the settings are omitted`, () =>
      Effect.gen(function* () {
        const both = Effect.andThen(Effect.logDebug("Debug."), Effect.logInfo("Info."))
        assert.strictEqual((yield* recordsOf(both, level)).length, count)
      })
    )
  }
})
