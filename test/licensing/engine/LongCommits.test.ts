/** Commits without the time limit that PostgreSQL sets to others, because they change all devices or leases of a license. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { revoke, suspend } from "../../../src/licensing/rules/Lifecycle.ts"
import { Database, recordSetting } from "../../support/database/Database.ts"
import { fromNoon, makeNode, makeSweeps } from "../../support/database/LicenseNodes.ts"
import {
  deviceStates,
  fillDevices,
  fillLeases,
  leaseStates,
  makeLicense,
  stored
} from "../../support/database/StoredLicenses.ts"
import { day, minute, noon } from "../../support/rules/Licenses.ts"

const rows = 1_200

/** Whether the commits that change the table from here on have a time limit: one value for all, or both. */
const recordLimits = Effect.fnUntraced(function* (table: "devices" | "leases") {
  const sql = yield* SqlClient.SqlClient
  const values = yield* recordSetting("transaction_timeout", `UPDATE ON ${table}`)
  // A server before version 17 has none.
  const [server] = yield* sql`SELECT current_setting('transaction_timeout', true) AS value`
  const isKnown = server?.["value"] !== null
  return Effect.map(values, (found) => found.map((value) => isKnown && value !== "0"))
})

layer(Database.layer, { timeout: 60_000, excludeTestServices: true })("a change of very many rows at once", (it) => {
  it.effect("is committed by a revocation", () =>
    fromNoon(
      Effect.gen(function* () {
        const { ask } = yield* makeNode
        const license = yield* makeLicense({ max_activations: 0 })
        yield* fillDevices(license, 5 * rows)
        const limited = yield* recordLimits("devices")
        yield* ask(license.license, revoke, {})
        assert.deepStrictEqual(yield* limited, [false])
        assert.strictEqual((yield* stored(license.license)).status, "revoked")
        assert.notProperty(yield* deviceStates(license.license), "active")
      })
    )
  )

  it.effect("is committed by a suspension", () =>
    fromNoon(
      Effect.gen(function* () {
        const { ask } = yield* makeNode
        const license = yield* makeLicense({ max_floating_users: rows })
        yield* fillLeases(license, rows, noon + 60 * minute)
        const limited = yield* recordLimits("leases")
        yield* ask(license.license, suspend, {})
        assert.deepStrictEqual(yield* limited, [false])
        assert.deepStrictEqual(yield* leaseStates(license.license), { "ended deactivated": rows })
      })
    )
  )

  it.effect("is committed by the sweep when access ends", () =>
    fromNoon(
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const { expiry } = yield* makeSweeps
        const end = noon + day
        const license = yield* makeLicense({
          license_type: "subscription",
          expires_at: end,
          max_floating_users: rows
        })
        yield* fillLeases(license, rows, end)
        yield* TestClock.setTime(end)
        const limited = yield* recordLimits("leases")
        yield* expiry
        assert.deepStrictEqual(yield* limited, [false])
        assert.strictEqual((yield* stored(license.license)).status, "expired")
        assert.deepStrictEqual(yield* leaseStates(license.license), { "ended deactivated": rows })
        assert.strictEqual((yield* sql`SELECT FROM leases WHERE status = 'live'`).length, 0)
      })
    )
  )
})
