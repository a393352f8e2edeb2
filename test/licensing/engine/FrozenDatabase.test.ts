/** Commands while the database is frozen: each is answered in time, also one whose commit was sent, however the time of day is set. */
import { assert, layer } from "@effect/vitest"
import { Duration, Effect, Fiber } from "effect"
import { activate, check } from "../../../src/licensing/rules/Activation.ts"
import { consume } from "../../../src/licensing/rules/Consumption.ts"
import { RequestTimeout } from "../../../src/platform/postgres/driver/Deadline.ts"
import * as RehearsalClock from "../../../src/platform/telemetry/RehearsalClock.ts"
import { DatabaseProxy } from "../../support/database/Database.ts"
import { makeNode } from "../../support/database/LicenseNodes.ts"
import {
  deviceIdOf,
  makeLicense,
  requestOf,
  type StoredLicense,
  stored
} from "../../support/database/StoredLicenses.ts"
import { day } from "../../support/rules/Licenses.ts"

const timeoutMillis = 1_000

const consumption = (license: StoredLicense, event_id: string) => ({
  ...requestOf(license, "m"),
  feature_code: "export",
  event_id,
  amount: 1
})

layer(DatabaseProxy.layerClients, { timeout: 60_000, excludeTestServices: true })(
  "While the database is frozen",
  (it) => {
    it.effect("a command is refused at its deadline, and a commit that was sent is waited for as long again", () =>
      Effect.gen(function* () {
        const { freeze, thaw } = yield* DatabaseProxy
        let offsetMillis = 0
        const { ask } = yield* makeNode.pipe(
          Effect.provideService(RequestTimeout, timeoutMillis),
          Effect.provide(RehearsalClock.layer(() => offsetMillis))
        )
        const [license, cold] = [yield* makeLicense(), yield* makeLicense()]
        yield* ask(license.license, activate, { ...requestOf(license, "m"), newDeviceId: deviceIdOf(license, "m") })
        yield* Effect.addFinalizer(() => thaw)
        yield* freeze
        const refused = <A>(asked: Effect.Effect<unknown, A>) =>
          Effect.forkChild(Effect.timed(Effect.flip(asked)), { startImmediately: true })
        const sent = yield* refused(ask(license.license, consume, consumption(license, "sent")))
        const unread = yield* refused(ask(cold.license, check, requestOf(cold, "m")))
        offsetMillis = day
        const [[sentTook, unknown], [unreadTook, late]] = [yield* Fiber.join(sent), yield* Fiber.join(unread)]
        assert.deepStrictEqual([unknown.code, late.code], ["NOT_READY", "NOT_READY"])
        assert.include(unknown.message, "it is not known whether the request was carried out")
        assert.isAtLeast(Duration.toMillis(sentTook), 2 * timeoutMillis)
        assert.include(late.message, "nothing was changed")
        assert.isAtLeast(Duration.toMillis(unreadTook), timeoutMillis)
        const again = yield* refused(ask(cold.license, check, requestOf(cold, "m")))
        offsetMillis = -day
        assert.include((yield* Fiber.join(again))[1].message, "nothing was changed")
        yield* thaw
        yield* ask(license.license, consume, consumption(license, "sent"))
        assert.strictEqual((yield* stored(license.license)).total, 1)
      })
    )
  }
)
