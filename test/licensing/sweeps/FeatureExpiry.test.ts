/** The expiry of features in the database: every read counts it at its instant, and it is recorded once, by the first node. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { assign } from "../../../src/licensing/changes/Assignments.ts"
import { validate } from "../../../src/licensing/rules/Activation.ts"
import { consume } from "../../../src/licensing/rules/Consumption.ts"
import { revoke } from "../../../src/licensing/rules/Lifecycle.ts"
import { Database } from "../../support/database/Database.ts"
import { fromNoon, twoNodes } from "../../support/database/LicenseNodes.ts"
import {
  assertEachOnce,
  eventsAbout,
  requestOf,
  stored,
  storeMany,
  storeOne
} from "../../support/database/StoredLicenses.ts"
import { assignmentOf, day, deviceOf, hardware, minute, noon } from "../../support/rules/Licenses.ts"

const machine = deviceOf(hardware("machine"))
const expiring = (...codes: ReadonlyArray<string>) =>
  codes.map((code) => assignmentOf(code, { expires_at: noon + 10 * minute }))

const recorded = (license: string) =>
  Effect.map(eventsAbout(license, "license.feature_expired"), (events) =>
    events.map(({ metadata }) => metadata["feature_code"])
  )

/** Expiries that are due in the sweep's index. */
const due = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.map(
    sql<{ count: number }>`
      SELECT count(*) AS count FROM license_features
      WHERE enabled AND NOT expiry_recorded AND expires_at <= ${"2030-01-16T00:00:00Z"}`,
    ([row]) => row!.count
  )
)

layer(Database.layer, { timeout: 60_000, excludeTestServices: true })("expired features", (it) => {
  it.effect("are recorded once for each license, whichever comes first: two sweeps, two nodes, or a client", () =>
    fromNoon(
      Effect.gen(function* () {
        const { nodes, sweeps } = yield* twoNodes
        const licenses = yield* storeMany(200, {
          assignments: [...expiring("api", "export"), assignmentOf("lasting")],
          devices: [machine]
        })
        const uses = Effect.forEach(
          licenses,
          (license, index) => {
            const use = { ...requestOf(license, "machine"), feature_code: "lasting", event_id: "e", amount: 1 }
            return nodes[index % 2]!.ask(license.license, consume, use)
          },
          { concurrency: "unbounded" }
        )
        yield* TestClock.adjust("10 minutes")
        const passes = sweeps.map(({ feature }) => feature)
        yield* Effect.all([uses, ...passes], { concurrency: "unbounded" })
        yield* Effect.all(passes, { concurrency: "unbounded" })
        for (const { license } of licenses) {
          assert.deepStrictEqual(yield* recorded(license), ["api", "export"])
          assert.strictEqual((yield* stored(license)).version, 3)
        }
        assert.strictEqual(yield* due, 0)
        yield* assertEachOnce([])
      })
    )
  )

  it.effect("raise the version in responses before a late sweep, which then changes nothing shown", () =>
    fromNoon(
      Effect.gen(function* () {
        const { nodes, sweeps } = yield* twoNodes
        const license = yield* storeOne({ assignments: expiring("api"), devices: [machine] })
        const versionAt = (node: 0 | 1) =>
          Effect.map(
            nodes[node].ask(license.license, validate, requestOf(license, "machine")),
            ({ entitlement_version }) => entitlement_version
          )
        assert.strictEqual(yield* versionAt(0), 1)
        yield* TestClock.adjust("10 minutes")
        assert.deepStrictEqual([yield* versionAt(0), yield* versionAt(1)], [2, 2])
        // A look does not write.
        assert.deepStrictEqual(yield* recorded(license.license), [])
        yield* TestClock.adjust("1 hour")
        yield* sweeps[0].feature
        assert.deepStrictEqual([yield* versionAt(0), yield* versionAt(1)], [2, 2])
        assert.deepStrictEqual(yield* recorded(license.license), ["api"])
        yield* sweeps[1].feature
        assert.deepStrictEqual(yield* recorded(license.license), ["api"])
      })
    )
  )

  it.effect("are recorded by a use, and again for a later date", () =>
    fromNoon(
      Effect.gen(function* () {
        const { nodes, sweeps } = yield* twoNodes
        const license = yield* storeOne({ assignments: expiring("api"), devices: [machine] })
        const sql = yield* SqlClient.SqlClient
        const [row] = yield* sql<{ feature_id: string }>`
          SELECT feature_id FROM license_features WHERE license_id = ${license.license}`
        const { feature_id } = row!
        yield* TestClock.adjust("11 minutes")
        yield* nodes[0].ask(license.license, assign, { feature_id, expires_at: noon + day })
        assert.deepStrictEqual(yield* recorded(license.license), ["api"])
        assert.strictEqual((yield* stored(license.license)).version, 3)
        yield* sweeps[0].feature
        assert.deepStrictEqual(yield* recorded(license.license), ["api"])
        yield* TestClock.adjust("1 day")
        yield* sweeps[0].feature
        assert.deepStrictEqual(yield* recorded(license.license), ["api", "api"])
        assert.strictEqual((yield* stored(license.license)).version, 4)
      })
    )
  )

  it.effect("of a revoked license leave no event, and do not stay due", () =>
    fromNoon(
      Effect.gen(function* () {
        const { nodes, sweeps } = yield* twoNodes
        const license = yield* storeOne({ assignments: expiring("api") })
        yield* nodes[0].ask(license.license, revoke, undefined)
        const { version } = yield* stored(license.license)
        yield* TestClock.adjust("11 minutes")
        assert.strictEqual(yield* due, 1)
        yield* sweeps[0].feature
        assert.strictEqual(yield* due, 0)
        assert.deepStrictEqual(yield* recorded(license.license), [])
        assert.strictEqual((yield* stored(license.license)).version, version)
      })
    )
  )

  it.effect("may be very many of one license: one pass records them all", () =>
    fromNoon(
      Effect.gen(function* () {
        const { sweeps } = yield* twoNodes
        const codes = Array.from({ length: 450 }, (_, index) => `f${String(index).padStart(3, "0")}`)
        const license = yield* storeOne({ assignments: expiring(...codes) })
        yield* TestClock.adjust("11 minutes")
        yield* sweeps[0].feature
        assert.deepStrictEqual(yield* recorded(license.license), codes)
        assert.strictEqual((yield* stored(license.license)).version, 451)
      })
    )
  )
})
