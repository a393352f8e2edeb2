/** The end of a lease moves with each heartbeat without changing an index: indexes contain an earlier instant. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { currentNumbers } from "../../../src/insight/ops/Counts.ts"
import { checkout, heartbeat } from "../../../src/licensing/rules/Floating.ts"
import { Database } from "../../support/database/Database.ts"
import { fromNoon, twoNodes } from "../../support/database/LicenseNodes.ts"
import {
  checkoutOf,
  eventCounts,
  fillLeases,
  leaseCommandOf,
  leaseStates,
  storeOne
} from "../../support/database/StoredLicenses.ts"
import { minute, noon } from "../../support/rules/Licenses.ts"

/** When the leases of a license end, and the instant before which they need no check, in minutes from noon. */
const ends = Effect.fnUntraced(function* (licenseId: string) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ readonly expires_at: number; readonly sweep_at: number | null }>`
    SELECT expires_at, sweep_at FROM leases WHERE license_id = ${licenseId} ORDER BY id`
  return rows.map((row) => [(row.expires_at - noon) / minute, row.sweep_at && (row.sweep_at - noon) / minute])
})

layer(Database.layer, { timeout: 60_000, excludeTestServices: true })("the end of a lease", (it) => {
  it.effect("is moved by heartbeats only, until a sweep reaches the lease and postpones its check", () =>
    fromNoon(
      Effect.gen(function* () {
        const { nodes, sweeps } = yield* twoNodes
        const license = yield* storeOne({ policy: { max_floating_users: 1, floating_timeout_minutes: 30 } })
        const answer = yield* nodes[0].ask(license.license, checkout, checkoutOf(license, "a"))
        yield* TestClock.adjust("20 minutes")
        yield* nodes[0].ask(license.license, heartbeat, leaseCommandOf(license, answer))
        assert.deepStrictEqual(yield* ends(license.license), [[50, 30]])
        yield* sweeps[0].lease
        assert.deepStrictEqual(yield* ends(license.license), [[50, 30]])
        yield* TestClock.adjust("10 minutes")
        yield* sweeps[0].lease
        assert.deepStrictEqual(yield* ends(license.license), [[50, 50]])
        yield* TestClock.adjust("20 minutes")
        yield* sweeps[1].lease
        assert.deepStrictEqual(yield* leaseStates(license.license), { "expired expired": 1 })
        assert.deepStrictEqual(yield* eventCounts(license.license), { "lease.checked_out": 1, "lease.expired": 1 })
      })
    )
  )

  it.effect("may move earlier, and is swept then", () =>
    fromNoon(
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const { nodes, sweeps } = yield* twoNodes
        const license = yield* storeOne({ policy: { max_floating_users: 1, floating_timeout_minutes: 30 } })
        const answer = yield* nodes[0].ask(license.license, checkout, checkoutOf(license, "b"))
        yield* sql`
          UPDATE policies SET floating_timeout_minutes = 5, revision = revision + 1
          WHERE id = (SELECT policy_id FROM licenses WHERE id = ${license.license})`
        yield* TestClock.adjust("1 minute")
        yield* nodes[0].ask(license.license, heartbeat, leaseCommandOf(license, answer))
        assert.deepStrictEqual(yield* ends(license.license), [[6, 6]])
        yield* TestClock.adjust("5 minutes")
        yield* sweeps[0].lease
        assert.deepStrictEqual(yield* leaseStates(license.license), { "expired expired": 1 })
      })
    )
  )

  it.effect("is found if only the end was written, as by a node of the previous version", () =>
    fromNoon(
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const { sweeps } = yield* twoNodes
        const [lapsed, alive] = [yield* storeOne({}), yield* storeOne({})]
        yield* fillLeases(lapsed, 70, noon)
        yield* fillLeases(alive, 70, noon + minute)
        const [before] = yield* currentNumbers(sql, noon)
        yield* sweeps[0].lease
        const [after] = yield* currentNumbers(sql, noon)
        assert.deepStrictEqual([before!.leases_live, after!.leases_live], [70, 70])
        assert.deepStrictEqual(yield* leaseStates(lapsed.license), { "expired expired": 70 })
        assert.deepStrictEqual(yield* leaseStates(alive.license), { "live active": 70 })
        assert.deepStrictEqual(new Set((yield* ends(alive.license)).map(String)), new Set(["1,1"]))
      })
    )
  )
})

/**
 * Columns that commands change often: an index with such a column would be written each time, with all other indexes of
 * its table.
 */
const changing: ReadonlyArray<readonly [table: string, columns: ReadonlyArray<string>]> = [
  ["leases", ["heartbeat_at", "expires_at"]],
  ["devices", ["last_seen_at", "last_validated_at", "updated_at"]],
  [
    "licenses",
    [
      "active_device_count",
      "times_activated",
      "times_transferred",
      "total_consumptions",
      "entitlement_counter",
      "revision",
      "updated_at"
    ]
  ],
  ["license_features", ["total_consumptions", "updated_at"]],
  ["event_sequence", ["last", "ledger_last"]],
  ["journals", ["last_group", "written_at"]]
]

layer(Database.layer, { timeout: 60_000 })("columns written by each use", (it) => {
  it.effect.each(changing)("are in no index of %s", ([table, columns]) =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const rows = yield* sql<{ readonly text: string }>`
        SELECT indexdef AS text FROM pg_indexes WHERE schemaname = current_schema() AND tablename = ${table}`
      assert.isNotEmpty(rows)
      const named = rows.flatMap(({ text }) => columns.filter((column) => new RegExp(`\\b${column}\\b`).test(text)))
      assert.deepStrictEqual(named, [])
    })
  )
})
