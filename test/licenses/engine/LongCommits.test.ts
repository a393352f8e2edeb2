/**
 * Commits that take longer than PostgreSQL gives to others, because they change all devices or leases of a license. A
 * trigger makes the database slow, in place of very many rows.
 */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { revoke, suspend } from "../../../src/licenses/rules/Lifecycle.ts"
import { openSession } from "../../../src/postgres/Postgres.ts"
import { Database } from "../../support/Database.ts"
import { fromNoon, makeNode, makeSweeps } from "../../support/LicenseNodes.ts"
import { day, minute, noon } from "../../support/Licenses.ts"
import {
  deviceStates,
  fillDevices,
  fillLeases,
  leaseStates,
  makeLicense,
  stored
} from "../../support/StoredLicenses.ts"

/** Rows that take 2.4 seconds, where other commits may take 2. */
const rows = 1_200

/** From here on each change of a row of the table takes two milliseconds. */
const slowDown = Effect.fnUntraced(function* (table: "devices" | "leases") {
  const session = yield* openSession((yield* Database).url)
  yield* session.values(`
    CREATE OR REPLACE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.002); RETURN NEW; END'`)
  yield* session.values(`CREATE TRIGGER slow BEFORE UPDATE ON ${table} FOR EACH ROW EXECUTE FUNCTION slow()`)
}, Effect.scoped)

layer(Database.layer, { timeout: 60_000, excludeTestServices: true })("a change of very many rows at once", (it) => {
  it.effect("is committed by a revocation", () =>
    fromNoon(
      Effect.gen(function* () {
        const { ask } = yield* makeNode
        const license = yield* makeLicense({ max_activations: 0 })
        yield* fillDevices(license, 5 * rows)
        yield* slowDown("devices")
        yield* ask(license.license, revoke, {})
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
        yield* ask(license.license, suspend, {})
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
        yield* expiry
        assert.strictEqual((yield* stored(license.license)).status, "expired")
        assert.deepStrictEqual(yield* leaseStates(license.license), { "ended deactivated": rows })
        assert.strictEqual((yield* sql`SELECT FROM leases WHERE status = 'live'`).length, 0)
      })
    )
  )
})
