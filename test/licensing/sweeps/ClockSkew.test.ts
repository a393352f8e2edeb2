/** Nodes whose clocks differ: what one has recorded, another with a slower clock does not take back or record again. */
import { assert, layer } from "@effect/vitest"
import { Clock, Effect, Result } from "effect"
import { TestClock } from "effect/testing"
import { renew } from "../../../src/licensing/changes/Renewal.ts"
import { update } from "../../../src/licensing/changes/Update.ts"
import { clockLagMillisMax } from "../../../src/licensing/model/ClockLag.ts"
import { activate, validate } from "../../../src/licensing/rules/Activation.ts"
import { checkout } from "../../../src/licensing/rules/Floating.ts"
import { Database } from "../../support/database/Database.ts"
import { fromNoon, makeNode, makeSweeps } from "../../support/database/LicenseNodes.ts"
import {
  checkoutOf,
  eventCounts,
  requestOf,
  type StoredLicense,
  stored,
  storeOne
} from "../../support/database/StoredLicenses.ts"
import { day, minute, noon } from "../../support/rules/Licenses.ts"

/** A node whose clock is ahead of the test's. */
const nodeAhead = Effect.fnUntraced(function* (millis: number) {
  const base = yield* Clock.Clock
  const now = () => base.currentTimeMillisUnsafe() + millis
  const clock: Clock.Clock = { ...base, currentTimeMillisUnsafe: now, currentTimeMillis: Effect.sync(now) }
  const within = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.provideService(effect, Clock.Clock, clock)
  const { ask } = yield* within(makeNode)
  const { expiry, lease, heartbeat } = yield* within(makeSweeps)
  return { ask, sweep: within(Effect.all([expiry, lease, heartbeat], { discard: true })) }
})

const skew = 30_000

type Node = Effect.Success<ReturnType<typeof nodeAhead>>

/** Sweeps, then uses the license, on one node after the other and again. Returns the results of the validations. */
const useOnAll = (nodes: ReadonlyArray<Node>, license: StoredLicense) =>
  Effect.forEach([...nodes, ...nodes], ({ ask, sweep }, index) =>
    Effect.gen(function* () {
      yield* sweep
      yield* Effect.exit(ask(license.license, update, { metadata: { index } }))
      const validated = yield* Effect.result(ask(license.license, validate, requestOf(license, "m")))
      return Result.isSuccess(validated) ? validated.success.status : validated.failure.code
    })
  )

layer(Database.layer, { timeout: 60_000, excludeTestServices: true })("nodes whose clocks differ", (it) => {
  it.effect("record each change of a license's state, and each notice, once", () =>
    fromNoon(
      Effect.gen(function* () {
        const nodes = [yield* nodeAhead(skew), yield* nodeAhead(0)]
        const end = noon + 10 * day
        const license = yield* storeOne({
          license: { expires_at: end, created_at: noon - day },
          policy: { grace_period_days: 1, max_activations: 1 }
        })
        yield* nodes[0]!.ask(license.license, activate, requestOf(license, "m"))
        const seen: Array<ReadonlyArray<string>> = []
        for (const days of [-7, -3, -1, 0, 1]) {
          // One clock has passed the instant and the other has not.
          yield* TestClock.setTime(end + days * day - skew / 2)
          seen.push(yield* useOnAll(nodes, license))
          yield* TestClock.setTime(end + days * day + skew)
          yield* useOnAll(nodes, license)
        }
        const all = (what: string) => [what, what, what, what]
        assert.deepStrictEqual(seen, ["active", "active", "active", "grace_period", "LICENSE_EXPIRED"].map(all))
        assert.deepInclude(yield* eventCounts(license.license), {
          "license.expiring": 3,
          "license.grace_period_started": 1,
          "license.expired": 1
        })
      })
    )
  )

  it.effect("record the end of a lease and of an activation once", () =>
    fromNoon(
      Effect.gen(function* () {
        const nodes = [yield* nodeAhead(skew), yield* nodeAhead(0)]
        const license = yield* storeOne({
          policy: {
            max_floating_users: 1,
            floating_timeout_minutes: 5,
            require_heartbeat: true,
            validation_interval_minutes: 10
          }
        })
        yield* nodes[1]!.ask(license.license, activate, requestOf(license, "m"))
        yield* nodes[1]!.ask(license.license, checkout, checkoutOf(license, "holder"))
        const endings = [noon + 5 * minute, noon + 10 * minute + 30_000]
        for (const at of endings.flatMap((end) => [end - skew / 2, end + skew])) {
          yield* TestClock.setTime(at)
          for (const { ask, sweep } of [...nodes, ...nodes]) {
            yield* sweep
            yield* ask(license.license, update, { metadata: { at } })
          }
        }
        assert.deepInclude(yield* eventCounts(license.license), { "lease.expired": 1, "device.expired": 1 })
      })
    )
  )

  it.effect("go back from a recorded state by a renewal on any node", () =>
    fromNoon(
      Effect.gen(function* () {
        const [fast, slow] = [yield* nodeAhead(skew), yield* nodeAhead(0)]
        const license = yield* storeOne({ license: { expires_at: noon + 10_000 } })
        yield* fast.sweep
        assert.strictEqual((yield* stored(license.license)).status, "expired")
        yield* slow.ask(license.license, renew, { extend_by_days: 1 })
        assert.strictEqual((yield* stored(license.license)).status, "active")
        assert.strictEqual((yield* eventCounts(license.license))["license.expired"], 1)
      })
    )
  )

  it.effect("take back what a clock recorded that is further ahead than clocks may be", () =>
    fromNoon(
      Effect.gen(function* () {
        const [wrong, right] = [yield* nodeAhead(clockLagMillisMax + minute), yield* nodeAhead(0)]
        const license = yield* storeOne({ license: { expires_at: noon + clockLagMillisMax + 1 } })
        yield* wrong.sweep
        assert.strictEqual((yield* stored(license.license)).status, "expired")
        yield* right.sweep
        assert.strictEqual((yield* stored(license.license)).status, "active")
      })
    )
  )
})
