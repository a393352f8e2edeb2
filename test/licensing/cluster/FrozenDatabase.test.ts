/** Commands that were handed over when the database freezes are answered in time, and carried out once. */
import { assert, layer } from "@effect/vitest"
import { Cause, Effect, Exit, Option } from "effect"
import { activate } from "../../../src/licensing/rules/Activation.ts"
import { consume } from "../../../src/licensing/rules/Consumption.ts"
import { checkout } from "../../../src/licensing/rules/Floating.ts"
import { RequestTimeout } from "../../../src/platform/postgres/driver/Deadline.ts"
import * as RehearsalClock from "../../../src/platform/telemetry/RehearsalClock.ts"
import { DatabaseProxy } from "../../support/database/Database.ts"
import { makeHandingOver } from "../../support/database/HandingOver.ts"
import {
  checkoutOf,
  deviceIdOf,
  eventCounts,
  leaseStates,
  makeLicense,
  requestOf,
  stored
} from "../../support/database/StoredLicenses.ts"
import { day } from "../../support/rules/Licenses.ts"

layer(DatabaseProxy.layerClients, { timeout: 60_000, excludeTestServices: true })(
  "While the database is frozen",
  (it) => {
    it.effect(
      "a consumption and a checkout at another node are refused in time, and done once when they are repeated",
      () =>
        Effect.gen(function* () {
          const { freeze, thaw } = yield* DatabaseProxy
          let offsetMillis = 0
          const { asker, handOver } = yield* makeHandingOver.pipe(
            Effect.provideService(RequestTimeout, 1_000),
            Effect.provide(RehearsalClock.layer(() => offsetMillis))
          )
          const [used, seated] = [yield* makeLicense(), yield* makeLicense({ max_floating_users: 1 })]
          // Afterwards the owner has both licenses in memory, so that it decides without the database.
          yield* handOver(seated.license, checkout, checkoutOf(seated, "m"))
          yield* handOver(used.license, activate, { ...requestOf(used, "m"), newDeviceId: deviceIdOf(used, "m") })
          const consumption = { ...requestOf(used, "m"), feature_code: "export", event_id: "e", amount: 1 }
          const seat = checkoutOf(seated, "m")
          const both = Effect.all(
            [handOver(used.license, consume, consumption), handOver(seated.license, checkout, seat)],
            {
              concurrency: 2
            }
          )
          yield* Effect.addFinalizer(() => thaw)
          yield* freeze
          offsetMillis = -day
          for (const exit of yield* both) {
            const refusal = Exit.isFailure(exit) ? Option.getOrUndefined(Cause.findErrorOption(exit.cause)) : undefined
            assert.strictEqual(refusal?.code, "NOT_READY")
            assert.include(refusal?.message, "it is not known whether the request was carried out")
          }
          offsetMillis = 0
          yield* thaw
          yield* asker.ask(used.license, consume, consumption)
          yield* asker.ask(seated.license, checkout, { ...seat, isRepeated: true })
          assert.strictEqual((yield* stored(used.license)).total, 1)
          assert.deepStrictEqual(yield* leaseStates(seated.license), { "live active": 1, "superseded active": 1 })
          assert.deepStrictEqual(yield* eventCounts(seated.license), { "lease.checked_out": 2 })
        })
    )
  }
)
