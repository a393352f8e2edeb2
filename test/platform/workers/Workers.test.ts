import { assert, layer } from "@effect/vitest"
import { Context, Effect, Exit, Layer, Scope } from "effect"
import { TestClock } from "effect/testing"
import { Workers } from "../../../src/platform/workers/Workers.ts"
import { Database } from "../../support/database/Database.ts"
import { fromNoon, makeSweeps } from "../../support/database/LicenseNodes.ts"
import { stored, storeOne } from "../../support/database/StoredLicenses.ts"
import { minute, noon } from "../../support/rules/Licenses.ts"

/** A node that runs the sweeps. */
const node = Effect.gen(function* () {
  const workers = Context.get(yield* Layer.build(Layer.fresh(Workers.layer)), Workers)
  const every = "20 seconds"
  for (const [name, pass] of Object.entries(yield* makeSweeps)) yield* workers.supervise({ name, every, pass })
  return workers
})

/** Polls until the condition is true: each poll queries the database, so real time passes. */
const untilTrue = Effect.fnUntraced(function* <E, R>(condition: Effect.Effect<boolean, E, R>) {
  for (let attempts = 0; attempts < 10_000; attempts++) if (yield* condition) return
  assert.fail("the condition never became true")
})

const untilStatus = (license: string, status: string) =>
  untilTrue(Effect.map(stored(license), (row) => row.status === status))

layer(Database.layer, { timeout: 60_000, excludeTestServices: true })("the workers of a node", (it) => {
  it.effect("run on start, on their schedule, and on a signal, and report their status", () =>
    fromNoon(
      Effect.gen(function* () {
        const { license: first } = yield* storeOne({ license: { expires_at: noon } })
        const { statuses, wake } = yield* node
        yield* untilStatus(first, "expired")
        const untilPasses = (passes: number) =>
          untilTrue(Effect.zipWith(statuses, stored(first), (all) => all.every((status) => status.passes === passes)))
        yield* untilPasses(1)
        assert.deepStrictEqual(
          (yield* statuses).map(({ name, failures, last_success_at }) => [name, failures, last_success_at]),
          ["expiry", "feature", "period", "lease", "heartbeat"].map((name) => [name, 0, noon])
        )
        const { license: second } = yield* storeOne({ license: { expires_at: noon + 20_000 } })
        yield* TestClock.adjust("20 seconds")
        yield* untilStatus(second, "expired")
        yield* untilPasses(2)
        const { license: third } = yield* storeOne({
          license: { expires_at: noon + 2 * minute, status: "grace_period" }
        })
        yield* wake("expiry")
        yield* untilStatus(third, "active")
        yield* wake("nobody")
      })
    )
  )

  it.effect("stop with their node", () =>
    fromNoon(
      Effect.gen(function* () {
        const scope = yield* Scope.make()
        const { statuses } = yield* Effect.provideService(node, Scope.Scope, scope)
        assert.lengthOf(yield* statuses, 5)
        yield* Scope.close(scope, Exit.void)
        assert.deepStrictEqual(yield* statuses, [])
      })
    )
  )
})
