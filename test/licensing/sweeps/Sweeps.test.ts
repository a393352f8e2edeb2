/**
 * Sweeps write what `settle` decides: the same states and events, after every history and however late they run.
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import { canonicalize, type Json } from "../../../src/contract/api/CanonicalJson.ts"
import { type EventRow, isUsage } from "../../../src/ledger/events/Entry.ts"
import { PendingChanges } from "../../../src/licensing/engine/PendingChanges.ts"
import { LicenseStore } from "../../../src/licensing/lookups/LicenseStore.ts"
import type { Prefetched } from "../../../src/licensing/lookups/Prefetch.ts"
import { settle } from "../../../src/licensing/rules/Lifecycle.ts"
import { columns } from "../../../src/platform/postgres/driver/Parameters.ts"
import { Database } from "../../support/database/Database.ts"
import { makeSweeps } from "../../support/database/LicenseNodes.ts"
import { storeRows } from "../../support/database/StoredLicenses.ts"
import { rows as anyRows } from "../../support/rules/LicenseArbitraries.ts"
import { day, minute, noon, type Rows, second } from "../../support/rules/Licenses.ts"

/** Random licenses, without the states that no command leaves: removing an expiry makes the license active again. */
const sampleRows = (count: number, seed: number) =>
  fc
    .sample(
      anyRows.filter(
        ({ license }) => license.expires_at !== undefined || !["grace_period", "expired"].includes(license.status)
      ),
      { numRuns: count, seed }
    )
    .map((rows) => (rows.license.status === "expired" ? withoutLeases(rows) : rows))

/** The expiry of a license has ended its leases. */
const withoutLeases = (rows: Rows): Rows => ({
  ...rows,
  leases: rows.leases.map((lease) => (lease.status === "live" ? { ...lease, status: "ended", ended_at: noon } : lease)),
  devices: rows.devices.map((device) =>
    device.status === "active" && !device.holds_slot ? { ...device, status: "deactivated" } : device
  )
})

const nothing: Prefetched = {
  counted: new Map(),
  features: new Map(),
  versions: undefined,
  marks: new Map(),
  endedLeases: new Map(),
  policies: new Map(),
  links: [],
  otherResettable: 0
}

interface Recorded {
  readonly sequence: number
  readonly event_type: string
  readonly resource_id: string
  readonly actor: string
  readonly created_at: number
  readonly metadata: { readonly license_id?: string }
}

/** All leases of the licenses, by id. */
const readLeases = Effect.fnUntraced(function* (ids: ReadonlyArray<string>) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ id: string; status: string; ended_at: number | null }>`
    SELECT id, status, ended_at FROM leases WHERE license_id = ANY(${columns.text(ids)})`
  return new Map(rows.map(({ id, status, ended_at }) => [id, `${status} ${ended_at}`]))
})

const readEvents = Effect.fnUntraced(function* (ids: ReadonlyArray<string>, after: number) {
  const sql = yield* SqlClient.SqlClient
  return yield* sql<Recorded>`
    SELECT sequence, event_type, resource_id, actor_type || ' ' || actor_id AS actor, created_at, metadata FROM events
    WHERE sequence > ${after} AND event_type NOT IN ('license.expiring', 'license.maintenance_expiring', 'license.maintenance_expired')
      AND (resource_id = ANY(${columns.text(ids)}) OR metadata ->> 'license_id' = ANY(${columns.text(ids)})) ORDER BY sequence`
})

const eventWithoutSequence = ({ event_type, resource_id, actor, created_at, metadata }: Omit<Recorded, "sequence">) =>
  `${event_type} ${resource_id} by ${actor} at ${created_at} ${canonicalize(metadata as Json)}`

/** The result of settling a stored license, without writing it. */
const settledState = (state: NonNullable<Effect.Success<ReturnType<LicenseStore["Service"]["load"]>>>, now: number) => {
  const pending = new PendingChanges(state, nothing)
  const changes = settle(pending, now)
  pending.settle(changes, now)
  const events = pending.entries.map((event) => {
    assert.isFalse(isUsage(event))
    const { resource_id = "", actor_type, actor_id } = event as EventRow
    return eventWithoutSequence({ ...(event as EventRow), resource_id, actor: `${actor_type} ${actor_id}` })
  })
  return { pending, events, moved: changes !== undefined }
}

const licenseOf = ({ license }: { readonly license: PendingChanges["license"] }) => ({
  ...license,
  revision: 0,
  heartbeat_from: undefined
})
const devicesOf = (devices: Iterable<{ readonly id: string }>) =>
  Array.from(devices).toSorted((a, b) => (a.id < b.id ? -1 : 1))

const layerStored = LicenseStore.layer.pipe(Layer.provideMerge(Database.layer))

// Each test has its own clock: shared connections would age by decades when it is set.
layer(layerStored, { timeout: 60_000, excludeTestServices: true })("sweeps", (it) => {
  const loadAll = Effect.fnUntraced(function* (ids: ReadonlyArray<string>) {
    const store = yield* LicenseStore
    return (yield* Effect.forEach(ids, store.load, { concurrency: "unbounded" })).map((state) => state!)
  })

  /** Runs the sweeps and compares the rows with the result of settling the licenses. */
  const sweepAndCompare = Effect.fnUntraced(function* (
    ids: ReadonlyArray<string>,
    sweeps: ReadonlyArray<Effect.Effect<void>>,
    now: number
  ) {
    const sql = yield* SqlClient.SqlClient
    const before = yield* loadAll(ids)
    const leases = yield* readLeases(ids)
    const [{ last } = { last: 0 }] = yield* sql<{ last: number }>`SELECT last FROM event_sequence`
    const expected = before.map((state) => settledState(state, now))
    for (const sweep of sweeps) yield* sweep
    const after = yield* loadAll(ids)
    for (const [index, { pending, moved }] of expected.entries()) {
      const is = after[index]!
      assert.deepStrictEqual(licenseOf(is), licenseOf(pending))
      assert.deepStrictEqual(is.assignmentList, pending.assignments)
      assert.deepStrictEqual(devicesOf(is.devices.values()), devicesOf(pending.devices))
      const { heartbeat_from, revision } = before[index]!.license
      const isWritten = moved || is.license.heartbeat_from !== heartbeat_from
      assert.strictEqual(is.license.revision !== revision, isWritten, `${is.license.id}`)
      for (const lease of pending.changedLeases.values()) leases.set(lease.id, `${lease.status} ${lease.ended_at}`)
    }
    const is = yield* readLeases(ids)
    const differing = Array.from(leases).filter(([id, words]) => is.get(id) !== words)
    assert.deepStrictEqual(
      differing.map(([id]) => `${id} ${is.get(id)}`),
      differing.map(([id, words]) => `${id} ${words}`)
    )
    const events = (yield* readEvents(ids, last)).map(eventWithoutSequence)
    const expectedEvents = expected.flatMap((settled) => settled.events)
    assert.deepStrictEqual(events.toSorted(), expectedEvents.toSorted())
    return { moved: expected.filter(({ moved }) => moved).length, events }
  })

  it.effect("write the same as settling every license, in any order, at every instant, each event once", () =>
    Effect.gen(function* () {
      const { expiry, feature, lease, heartbeat } = yield* makeSweeps
      const orders = fc.sample(fc.shuffledSubarray([expiry, feature, lease, heartbeat], { minLength: 4 }), {
        numRuns: 9,
        seed: 3
      })
      const ids = yield* storeRows("random", sampleRows(400, 7))
      const elapsedTimes = [0, 1, 10 * minute, 20 * minute, 31 * second, day, 3 * day, 30 * day, 90 * day]
      let now = noon
      const types = new Set<string>()
      for (const [index, elapsed] of elapsedTimes.entries()) {
        now += elapsed
        yield* TestClock.setTime(now)
        const { events, moved } = yield* sweepAndCompare(ids, orders[index]!, now)
        for (const event of events) types.add(event.slice(0, event.indexOf(" ")))
        if (index === 0) assert.isAbove(moved, 100)
        const again = yield* sweepAndCompare(ids, orders[index]!, now)
        assert.deepStrictEqual(again, { moved: 0, events: [] })
      }
      assert.sameMembers(Array.from(types), [
        "license.grace_period_started",
        "license.expired",
        "license.feature_expired",
        "lease.expired",
        "device.expired"
      ])
    }).pipe(Effect.provide(TestClock.layer()))
  )

  it.effect("catch up after an outage: the effects of all the time that has passed, each event once and in order", () =>
    Effect.gen(function* () {
      const { expiry, feature, lease, heartbeat } = yield* makeSweeps
      const ids = yield* storeRows("outage", sampleRows(200, 11))
      const now = noon + 400 * day
      yield* TestClock.setTime(now)
      const { moved } = yield* sweepAndCompare(ids, [expiry, heartbeat, lease, feature], now)
      assert.isAbove(moved, 50)
      const sql = yield* SqlClient.SqlClient
      const orders = yield* sql<{ order: string; count: number }>`
        SELECT "order", count(*) AS count FROM (
          SELECT string_agg(event_type, ' ' ORDER BY sequence) AS order FROM events
          WHERE resource_id LIKE 'lic_outage_%' AND event_type NOT IN ('license.expiring', 'license.feature_expired', 'license.maintenance_expired') GROUP BY resource_id
        ) AS told GROUP BY 1 ORDER BY 1`
      assert.deepStrictEqual(
        orders.map(({ order }) => order),
        ["license.expired", "license.grace_period_started license.expired"]
      )
    }).pipe(Effect.provide(TestClock.layer()))
  )
})
