/** Devices and their counts are shown as of the current time, whether or not a sweep has written it. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import { EventLog } from "../../../src/ledger/events/EventLog.ts"
import { Devices } from "../../../src/licensing/devices/Devices.ts"
import { Journal } from "../../../src/licensing/engine/Journal.ts"
import { LicenseActors } from "../../../src/licensing/engine/LicenseActors.ts"
import { LicenseLookups } from "../../../src/licensing/lookups/LicenseLookups.ts"
import { LicenseStore } from "../../../src/licensing/lookups/LicenseStore.ts"
import { LicenseList } from "../../../src/licensing/management/LicenseList.ts"
import { DeviceStatus } from "../../../src/licensing/model/Device.ts"
import { Database } from "../../support/database/Database.ts"
import { makeSweeps } from "../../support/database/LicenseNodes.ts"
import { storeRows } from "../../support/database/StoredLicenses.ts"
import { rows as anyRows } from "../../support/rules/LicenseArbitraries.ts"
import { day, minute, noon, second } from "../../support/rules/Licenses.ts"

const Subject = Layer.mergeAll(Devices.layer, LicenseList.layer).pipe(
  Layer.provide(LicenseActors.layer),
  Layer.provide(Journal.layer),
  Layer.provide([LicenseStore.layer, LicenseLookups.layer, EventLog.layer]),
  Layer.provideMerge(Database.layer)
)

// The test has its own clock: shared connections would age by decades when it is set.
layer(Subject, { timeout: 60_000, excludeTestServices: true })("devices", (it) => {
  /**
   * The presented state of licenses: their devices, individually and under each filter, and the count of active
   * devices.
   */
  const presentedState = Effect.fnUntraced(function* (ids: ReadonlyArray<string>) {
    const devices = yield* Devices
    const licenses = yield* LicenseList
    const listed = new Map((yield* licenses.page({ limit: 200 })).items.map((license) => [license.id, license]))
    return yield* Effect.forEach(ids, (id) =>
      Effect.gen(function* () {
        const { items } = yield* devices.list(id, {})
        const states = items.map((device) => `${device.id} ${device.status}`)
        const matchingFilters: Array<string> = []
        for (const status of DeviceStatus.literals)
          for (const device of (yield* devices.list(id, { status })).items)
            matchingFilters.push(`${device.id} ${device.status}`)
        const alone = yield* Effect.forEach(items, (device) => devices.get(id, device.id))
        assert.sameMembers(matchingFilters, states)
        assert.deepStrictEqual(alone, items)
        const license = yield* licenses.find(id)
        assert.deepStrictEqual(listed.get(id), license)
        return { id, states, count: license?.active_device_count }
      })
    )
  })

  /** The same values as stored. */
  const stored = Effect.fnUntraced(function* (ids: ReadonlyArray<string>) {
    const sql = yield* SqlClient.SqlClient
    return yield* Effect.forEach(ids, (id) =>
      Effect.gen(function* () {
        const states = yield* sql<{ readonly state: string }>`
          SELECT id || ' ' || status AS state FROM devices WHERE license_id = ${id} ORDER BY created_at DESC, id DESC`
        const [license] = yield* sql<{ readonly count: number }>`
          SELECT active_device_count AS count FROM licenses WHERE id = ${id}`
        return { id, states: states.map(({ state }) => state), count: license?.count }
      })
    )
  })

  it.effect("are shown before every sweep as the sweeps then store them", () =>
    Effect.gen(function* () {
      const { expiry, lease, heartbeat } = yield* makeSweeps
      const samples = fc.sample(
        anyRows.filter(
          ({ license, leases }) =>
            license.status === "active" ||
            (license.status === "suspended" && leases.every(({ status }) => status !== "live"))
        ),
        { numRuns: 60, seed: 11 }
      )
      const ids = yield* storeRows("clock", samples)
      let now = noon
      const changeCounts: Array<number> = []
      for (const elapsed of [0, 1, 20 * minute, 31 * second, day, 4 * day, 90 * day]) {
        now += elapsed
        yield* TestClock.setTime(now)
        const before = yield* stored(ids)
        const early = yield* presentedState(ids)
        for (const sweep of [expiry, lease, heartbeat]) yield* sweep
        const after = yield* stored(ids)
        assert.deepStrictEqual(early, after)
        changeCounts.push(
          after.filter((license, index) => license.states.join() !== before[index]!.states.join()).length
        )
      }
      assert.isAbove(changeCounts[0]!, 5)
    }).pipe(Effect.provide(TestClock.layer()))
  )
})
