/** The instant before which no device of a license is due (`heartbeat_from`), when the end of access moves. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { renew } from "../../../src/licensing/changes/Renewal.ts"
import { update } from "../../../src/licensing/changes/Update.ts"
import { activate, check, validate } from "../../../src/licensing/rules/Activation.ts"
import { Database } from "../../support/database/Database.ts"
import { fromNoon, makeNode, makeSweeps } from "../../support/database/LicenseNodes.ts"
import { deviceStates, requestOf, stored, storeOne } from "../../support/database/StoredLicenses.ts"
import { day, minute, noon, second } from "../../support/rules/Licenses.ts"

const hour = 60 * minute

layer(Database.layer, { timeout: 60_000, excludeTestServices: true })("the bound of a license's due instants", (it) => {
  it.effect("covers devices that were due only after the end of access, because a renewal may move the end", () =>
    fromNoon(
      Effect.gen(function* () {
        const { ask } = yield* makeNode
        const { heartbeat } = yield* makeSweeps
        const license = yield* storeOne({
          license: { expires_at: noon + 30 * minute },
          policy: { require_heartbeat: true, validation_interval_minutes: 60, license_type: "subscription" }
        })
        yield* ask(license.license, activate, requestOf(license, "m"))
        const due = noon + 60 * minute + 30 * second
        yield* TestClock.setTime(noon + 20 * minute)
        yield* heartbeat
        yield* ask(license.license, renew, { extend_by_days: 30 })
        yield* TestClock.setTime(due)
        yield* heartbeat
        assert.deepStrictEqual(yield* deviceStates(license.license), { active: [1, 1] })
        yield* TestClock.setTime(due + 1)
        yield* heartbeat
        assert.deepStrictEqual(yield* deviceStates(license.license), { expired: [1, 0] })
      })
    )
  )

  it.effect("follows the policy's interval at a start that was moved ahead, and a shorter one after it", () =>
    fromNoon(
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const { ask } = yield* makeNode
        const { heartbeat } = yield* makeSweeps
        const license = yield* storeOne({
          license: { expires_at: undefined },
          policy: { require_heartbeat: true, validation_interval_minutes: 60, license_type: "consumption" }
        })
        const { license: id } = license
        const editPolicy = (minutes: number) => sql`
          UPDATE policies SET validation_interval_minutes = ${minutes}, revision = revision + 1
          WHERE id = (SELECT policy_id FROM licenses WHERE id = ${id})`
        /** The device has its slot until the instant, in the sweep and in rules. */
        const isDueAt = Effect.fnUntraced(function* (due: number, then: string) {
          yield* TestClock.setTime(due)
          yield* heartbeat
          assert.strictEqual((yield* ask(id, check, requestOf(license, "m"))).status, "active")
          yield* TestClock.setTime(due + 1)
          if (then === "the sweep") yield* heartbeat
          const refused = yield* Effect.flip(ask(id, validate, requestOf(license, "m")))
          assert.strictEqual(refused.code, "HEARTBEAT_OVERDUE")
        })
        yield* ask(id, activate, requestOf(license, "m"))
        const start = noon + 5 * hour
        yield* ask(id, update, { starts_at: start })
        yield* editPolicy(240)
        yield* TestClock.setTime(start + 61 * minute)
        yield* heartbeat
        assert.deepStrictEqual(yield* deviceStates(id), { active: [1, 1] })
        yield* editPolicy(120)
        yield* isDueAt(start + 2 * hour + 30 * second, "the sweep")
        assert.deepStrictEqual(yield* deviceStates(id), { expired: [1, 0] })
        yield* ask(id, activate, requestOf(license, "m"))
        const again = start + day
        yield* ask(id, update, { starts_at: again })
        yield* editPolicy(240)
        yield* isDueAt(again + 4 * hour + 30 * second, "a rule")
      })
    )
  )

  it.effect("is checked once an interval after the end of access", () =>
    fromNoon(
      Effect.gen(function* () {
        const { ask } = yield* makeNode
        const { heartbeat } = yield* makeSweeps
        const license = yield* storeOne({
          license: { expires_at: noon + 30 * minute },
          policy: { require_heartbeat: true, validation_interval_minutes: 60, grace_period_days: 0 }
        })
        yield* ask(license.license, activate, requestOf(license, "m"))
        yield* TestClock.setTime(noon + day)
        yield* heartbeat
        const { revision } = yield* stored(license.license)
        yield* heartbeat
        assert.strictEqual((yield* stored(license.license)).revision, revision)
        assert.deepStrictEqual(yield* deviceStates(license.license), { active: [1, 1] })
      })
    )
  )
})
