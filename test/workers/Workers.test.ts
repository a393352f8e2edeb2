import { assert, layer } from "@effect/vitest"
import { Context, Effect, Exit, Layer, Scope } from "effect"
import { TestClock } from "effect/testing"
import { Workers } from "../../src/workers/Workers.ts"
import { Database } from "../support/Database.ts"
import { fromNoon, makeSweeps } from "../support/LicenseNodes.ts"
import { minute, noon } from "../support/Licenses.ts"
import { stored, storeOne } from "../support/StoredLicenses.ts"

/** A node with the sweeps at work. */
const node = Effect.gen(function* () {
  const workers = Context.get(yield* Layer.build(Layer.fresh(Workers.layer)), Workers)
  const every = "20 seconds"
  for (const [name, pass] of Object.entries(yield* makeSweeps)) yield* workers.supervise({ name, every, pass })
  return workers
})

/** Asks until it holds: each time the database is asked, so the machine's own time passes. */
const comesAbout = Effect.fnUntraced(function* <E, R>(holds: Effect.Effect<boolean, E, R>) {
  for (let asked = 0; asked < 10_000; asked++) if (yield* holds) return
  assert.fail("it never came about")
})

const becomes = (license: string, status: string) =>
  comesAbout(Effect.map(stored(license), (row) => row.status === status))

layer(Database.layer, { timeout: 60_000, excludeTestServices: true })("the workers of a node", (it) => {
  it.effect("work at once, on their schedule, and at a signal, and say how they stand", () =>
    fromNoon(
      Effect.gen(function* () {
        const { license: first } = yield* storeOne({ license: { expires_at: noon } })
        const { statuses, wake } = yield* node
        yield* becomes(first, "expired")
        const passed = (passes: number) =>
          comesAbout(Effect.zipWith(statuses, stored(first), (all) => all.every((status) => status.passes === passes)))
        yield* passed(1)
        assert.deepStrictEqual(
          (yield* statuses).map(({ name, failures, last_success_at }) => [name, failures, last_success_at]),
          ["expiry", "lease", "heartbeat"].map((name) => [name, 0, noon])
        )
        const { license: second } = yield* storeOne({ license: { expires_at: noon + 20_000 } })
        yield* TestClock.adjust("20 seconds")
        yield* becomes(second, "expired")
        yield* passed(2)
        const { license: third } = yield* storeOne({ license: { expires_at: noon + minute, status: "grace_period" } })
        yield* wake("expiry")
        yield* becomes(third, "active")
        yield* wake("nobody")
      })
    )
  )

  it.effect("stop with their node", () =>
    fromNoon(
      Effect.gen(function* () {
        const scope = yield* Scope.make()
        const { statuses } = yield* Effect.provideService(node, Scope.Scope, scope)
        assert.lengthOf(yield* statuses, 3)
        yield* Scope.close(scope, Exit.void)
        assert.deepStrictEqual(yield* statuses, [])
      })
    )
  )
})
