/** Sweeps concurrent with actors and with each other: nothing is done twice or missed, and no other work is delayed. */
import { assert, layer } from "@effect/vitest"
import { Effect, Result } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { TestClock } from "effect/testing"
import { formatTimestamp } from "../../../src/contract/api/Timestamp.ts"
import { renew } from "../../../src/licensing/changes/Renewal.ts"
import { activate, check, validate } from "../../../src/licensing/rules/Activation.ts"
import { checkout } from "../../../src/licensing/rules/Floating.ts"
import { Database, holdLock } from "../../support/database/Database.ts"
import { fromNoon, twoNodes } from "../../support/database/LicenseNodes.ts"
import {
  assertEachOnce,
  checkoutOf,
  eventCounts,
  fillLeases,
  leaseStates,
  requestOf,
  stored,
  storeMany,
  storeOne
} from "../../support/database/StoredLicenses.ts"
import { day, deviceOf, dueAfter, hardware, leaseOf, minute, noon } from "../../support/rules/Licenses.ts"

/** Runs an effect while another connection has the lock that a statement takes. */
const whileLocked = Effect.fnUntraced(function* <A, E, R>(
  lock: Effect.Effect<unknown, SqlError.SqlError>,
  self: Effect.Effect<A, E, R>
) {
  const { release } = yield* holdLock(() => lock)
  const answer = yield* self
  yield* release
  return answer
})

layer(Database.layer, { timeout: 60_000, excludeTestServices: true })("sweeps among nodes", (it) => {
  it.effect("record each change once, whichever comes first: two sweeps, two nodes, or a client", () =>
    fromNoon(
      Effect.gen(function* () {
        const { nodes, sweeps } = yield* twoNodes
        const machine = deviceOf(hardware("machine"), { activated_at: noon, last_validated_at: noon })
        const holder = deviceOf(hardware("holder"), { holds_slot: false, activated_at: undefined })
        const licenses = yield* storeMany(300, {
          license: { expires_at: noon + 10 * minute },
          policy: { grace_period_days: 1, require_heartbeat: true, validation_interval_minutes: 20 },
          devices: [machine, holder],
          leases: [leaseOf(holder)]
        })
        const uses = Effect.forEach(
          licenses,
          (license, index) =>
            Effect.result(
              nodes[index % 2]!.ask(
                license.license,
                index % 3 === 0 ? activate : validate,
                requestOf(license, "machine")
              )
            ),
          { concurrency: "unbounded" }
        )
        for (const wait of ["10 minutes", "11 minutes", "1 day"] as const) {
          yield* TestClock.adjust(wait)
          const passes = sweeps.flatMap(({ expiry, lease, heartbeat }) => [expiry, lease, heartbeat])
          yield* Effect.all([uses, ...passes], { concurrency: "unbounded" })
          yield* Effect.all(passes, { concurrency: "unbounded" })
        }
        yield* assertEachOnce(["license.grace_period_started", "license.expired", "lease.expired"])
        for (const { license } of [licenses[0]!, licenses[1]!, licenses[299]!]) {
          const counts = yield* eventCounts(license)
          assert.deepInclude(counts, {
            "license.grace_period_started": 1,
            "license.expired": 1,
            "lease.expired": 1
          })
          assert.isAtLeast(counts["device.expired"] ?? 0, 1)
          assert.deepInclude(yield* stored(license), { status: "expired", active: 0 })
          assert.deepStrictEqual(yield* leaseStates(license), { "expired expired": 1 })
        }
      })
    )
  )

  it.effect("are seen by actors that cache the license", () =>
    fromNoon(
      Effect.gen(function* () {
        const { nodes, sweeps } = yield* twoNodes
        const license = yield* storeOne({ license: { expires_at: noon + minute } })
        yield* nodes[0].ask(license.license, activate, requestOf(license, "m"))
        yield* nodes[1].ask(license.license, check, requestOf(license, "m"))
        yield* TestClock.adjust("1 minute")
        yield* sweeps[0].expiry
        const { revision } = yield* stored(license.license)
        const refused = yield* Effect.flip(nodes[1].ask(license.license, validate, requestOf(license, "m")))
        assert.strictEqual(refused.code, "LICENSE_EXPIRED")
        yield* nodes[0].ask(license.license, renew, { extend_by_days: 1 })
        assert.notStrictEqual((yield* stored(license.license)).revision, revision)
        yield* nodes[1].ask(license.license, validate, requestOf(license, "m"))
        assert.strictEqual((yield* eventCounts(license.license))["license.expired"], 1)
      })
    )
  )

  it.effect("skip locked rows, process the rest, and return to the skipped ones", () =>
    fromNoon(
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const { sweeps } = yield* twoNodes
        const [{ expiry, lease, heartbeat }] = sweeps
        const machine = deviceOf(hardware("machine"), { due_at: dueAfter(noon, 5) })
        const holder = deviceOf(hardware("holder"), { holds_slot: false, activated_at: undefined })
        const licenses = yield* storeMany(3, {
          license: { expires_at: noon + day },
          policy: { grace_period_days: 9, require_heartbeat: true, validation_interval_minutes: 5 },
          devices: [machine, holder],
          leases: [leaseOf(holder)]
        })
        yield* TestClock.adjust("1 day")
        const locked = licenses[1]!.license
        const all = Effect.all([expiry, lease, heartbeat], { discard: true })
        yield* whileLocked(sql`SELECT id FROM licenses WHERE id = ${locked} FOR UPDATE`, all)
        const done = { "license.grace_period_started": 1, "lease.expired": 1, "device.expired": 1 }
        assert.deepStrictEqual(yield* eventCounts(locked), {})
        assert.deepStrictEqual(yield* eventCounts(licenses[0]!.license), done)
        assert.deepStrictEqual(yield* eventCounts(licenses[2]!.license), done)
        yield* all
        assert.deepStrictEqual(yield* eventCounts(locked), done)
      })
    )
  )

  it.effect("skip work that another node is doing", () =>
    fromNoon(
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const { sweeps } = yield* twoNodes
        const license = yield* storeOne({ license: { expires_at: noon } })
        const [{ expiry }] = sweeps
        yield* whileLocked(sql`SELECT pg_advisory_xact_lock(hashtextextended('licensing/expiry-sweep', 0))`, expiry)
        assert.strictEqual((yield* stored(license.license)).status, "active")
        yield* expiry
        assert.strictEqual((yield* stored(license.license)).status, "expired")
      })
    )
  )

  it.effect("process in one pass rows that fill many batches", () =>
    fromNoon(
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const { sweeps } = yield* twoNodes
        const [{ expiry, lease, heartbeat }] = sweeps
        const machine = deviceOf(hardware("machine"), { activated_at: noon - day })
        const licenses = yield* storeMany(1200, { license: { expires_at: noon }, devices: [machine] })
        const floating = yield* storeOne({})
        yield* fillLeases(floating, 1300, noon)
        const crowded = yield* storeOne({ policy: { require_heartbeat: true, validation_interval_minutes: 1 } })
        yield* sql`
          INSERT INTO devices (id, license_id, binding_kind, binding_key, is_vm, is_container, status, holds_slot, activated_at,
            due_at, first_seen_at, last_seen_at, metadata, created_at, updated_at)
          SELECT ${crowded.license} || n, ${crowded.license}, 'hardware', n, false, false, 'active', true, at, at, at, at, '{}', at, at
          FROM generate_series(1, 4100) AS n, (SELECT ${formatTimestamp(noon - day)}::timestamptz AS at) AS made`
        yield* sql`UPDATE licenses SET active_device_count = 4100 WHERE id = ${crowded.license}`
        yield* Effect.all([expiry, lease, heartbeat])
        const [remaining] = yield* sql<{ active: number; live: number; slots: number }>`
          SELECT (SELECT count(*) FROM licenses WHERE id LIKE ${licenses[0]!.license.replace(/_0$/, "\\_%")} AND status = 'active') AS active,
            (SELECT count(*) FROM leases WHERE license_id = ${floating.license} AND status = 'live') AS live,
            (SELECT count(*) FROM devices WHERE license_id = ${crowded.license} AND holds_slot) AS slots`
        assert.deepStrictEqual(remaining, { active: 0, live: 0, slots: 0 })
        assert.strictEqual((yield* stored(crowded.license)).active, 0)
        assert.deepStrictEqual(yield* eventCounts(crowded.license), { "device.expired": 4100 })
        assert.deepStrictEqual(yield* eventCounts(floating.license), { "lease.expired": 1300 })
        yield* assertEachOnce(["lease.expired", "license.expired"])
      })
    )
  )

  it.effect("release a seat whose device was removed, so that the next pass has nothing to do", () =>
    fromNoon(
      Effect.gen(function* () {
        const { nodes, sweeps } = yield* twoNodes
        const license = yield* storeOne({ policy: { max_floating_users: 1 } })
        yield* nodes[0].ask(license.license, checkout, checkoutOf(license, "gone"))
        yield* TestClock.adjust("30 minutes")
        yield* sweeps[1].lease
        assert.deepStrictEqual(yield* leaseStates(license.license), { "expired expired": 1 })
        const results = yield* Effect.forEach(
          nodes,
          (node, index) => Effect.result(node.ask(license.license, checkout, checkoutOf(license, `next ${index}`))),
          { concurrency: "unbounded" }
        )
        assert.lengthOf(results.filter(Result.isSuccess), 1)
        assert.deepStrictEqual(yield* eventCounts(license.license), { "lease.checked_out": 2, "lease.expired": 1 })
      })
    )
  )

  it.effect("check a license for heartbeats only when one may be missing", () =>
    fromNoon(
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const { nodes, sweeps } = yield* twoNodes
        const license = yield* storeOne({
          license: { expires_at: undefined },
          policy: { require_heartbeat: true, validation_interval_minutes: 60 }
        })
        const from = Effect.map(
          sql<{ heartbeat_from: number | null }>`SELECT heartbeat_from FROM licenses WHERE id = ${license.license}`,
          ([row]) => row!.heartbeat_from
        )
        yield* nodes[0].ask(license.license, activate, requestOf(license, "m"))
        yield* sweeps[0].heartbeat
        assert.strictEqual(yield* from, dueAfter(noon, 60))
        yield* TestClock.adjust("50 minutes")
        yield* nodes[1].ask(license.license, validate, requestOf(license, "m"))
        const { revision } = yield* stored(license.license)
        yield* sweeps[0].heartbeat
        assert.strictEqual(yield* from, dueAfter(noon, 60))
        assert.strictEqual((yield* stored(license.license)).revision, revision)
        yield* TestClock.adjust("11 minutes")
        yield* sweeps[1].heartbeat
        assert.strictEqual(yield* from, dueAfter(noon, 110))
        const checked = yield* stored(license.license)
        assert.notStrictEqual(checked.revision, revision)
        yield* TestClock.adjust("50 minutes")
        yield* sweeps[0].heartbeat
        const silent = yield* stored(license.license)
        assert.strictEqual(silent.active, 0)
        assert.notStrictEqual(silent.revision, checked.revision)
        const refused = yield* Effect.flip(nodes[0].ask(license.license, validate, requestOf(license, "m")))
        assert.strictEqual(refused.code, "HEARTBEAT_OVERDUE")
        yield* nodes[1].ask(license.license, activate, requestOf(license, "m"))
        yield* sweeps[0].heartbeat
        yield* nodes[0].ask(license.license, validate, requestOf(license, "m"))
        assert.strictEqual((yield* eventCounts(license.license))["device.expired"], 1)
      })
    )
  )
})
