/**
 * When heartbeats fall due: a device keeps its slot until the instant that it was promised, whatever happens to its
 * license and policy, on two nodes, in reads and in the sweep alike.
 */
import { assert, layer } from "@effect/vitest"
import { Clock, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import type { Code } from "../../../src/contract/api/ErrorCode.ts"
import { formatTimestamp } from "../../../src/contract/api/Timestamp.ts"
import { renew } from "../../../src/licensing/changes/Renewal.ts"
import { update } from "../../../src/licensing/changes/Update.ts"
import { Devices } from "../../../src/licensing/devices/Devices.ts"
import { Journal } from "../../../src/licensing/engine/Journal.ts"
import { LicenseActors } from "../../../src/licensing/engine/LicenseActors.ts"
import { LicenseLookups } from "../../../src/licensing/lookups/LicenseLookups.ts"
import { LicenseStore } from "../../../src/licensing/lookups/LicenseStore.ts"
import { LicenseList } from "../../../src/licensing/management/LicenseList.ts"
import { activate, check, validate } from "../../../src/licensing/rules/Activation.ts"
import type { Rule } from "../../../src/licensing/rules/LicenseCommand.ts"
import { reinstate, suspend } from "../../../src/licensing/rules/Lifecycle.ts"
import { issueOffline } from "../../../src/licensing/rules/Offline.ts"
import { Policies } from "../../../src/vendor/policies/Policies.ts"
import { Products } from "../../../src/vendor/products/Products.ts"
import { fromNoon, twoNodes } from "../../support/database/LicenseNodes.ts"
import { Foundations } from "../../support/database/Services.ts"
import { deviceIdOf, eventCounts, requestOf, stored, storeOne } from "../../support/database/StoredLicenses.ts"
import { day, hardware, minute, noon, type RowsInput, second } from "../../support/rules/Licenses.ts"

const Subject = Layer.mergeAll(Policies.layer, Devices.layer, LicenseList.layer).pipe(
  Layer.provideMerge(Products.layer),
  Layer.provide(LicenseActors.layer),
  Layer.provide(Journal.layer),
  Layer.provide([LicenseStore.layer, LicenseLookups.layer]),
  Layer.provideMerge(Foundations)
)

const hour = 60 * minute

/** A license with one machine, activated at noon under a policy that requires a heartbeat every hour. */
const activated = Effect.fnUntraced(function* ({ license, policy }: Pick<RowsInput, "license" | "policy"> = {}) {
  const { nodes, sweeps } = yield* twoNodes
  const policies = yield* Policies
  const devices = yield* Devices
  const licenses = yield* LicenseList
  const own = yield* storeOne({
    license: { expires_at: undefined, ...license },
    policy: { require_heartbeat: true, validation_interval_minutes: 60, license_type: "consumption", ...policy }
  })
  const { license: id } = own
  const policyId = id.replace("lic", "pol")
  const request = requestOf(own, "machine")
  let asked = 0
  const node = () => nodes[asked++ % 2]!
  const activation = yield* node().ask(id, activate, request)

  /** The device's state in reads, and in the rows once both sweeps have run. */
  const state = Effect.gen(function* () {
    const read = (yield* devices.get(id, deviceIdOf(own, "machine"))).status
    const listed = (yield* devices.list(id, { status: read })).items.length
    const count = (yield* licenses.find(id))!.active_device_count
    yield* sweeps[0].heartbeat
    yield* sweeps[1].heartbeat
    const sql = yield* SqlClient.SqlClient
    const [row] = yield* sql<{ readonly status: string }>`SELECT status FROM devices WHERE license_id = ${id}`
    assert.deepStrictEqual(
      { listed, status: row!.status, count: (yield* stored(id)).active },
      { listed: 1, status: read, count }
    )
    assert.strictEqual((yield* eventCounts(id))["device.expired"] ?? 0, read === "expired" ? 1 : 0)
    return read
  })
  /** The device holds its slot until an instant after noon, and not for a millisecond more. */
  const isDueAt = Effect.fnUntraced(function* (afterNoon: number) {
    yield* TestClock.setTime(noon + afterNoon)
    assert.strictEqual(yield* state, "active")
    yield* TestClock.setTime(noon + afterNoon + 1)
    assert.strictEqual(yield* state, "expired")
    const refused = yield* Effect.flip(node().ask(id, validate, request))
    assert.strictEqual(refused.code, "HEARTBEAT_OVERDUE")
    yield* node().ask(id, activate, request)
    yield* node().ask(id, validate, request)
  })
  return {
    id,
    activation,
    state,
    isDueAt,
    at: (afterNoon: number) => TestClock.setTime(noon + afterNoon),
    ask: <Command, Reply, C extends Code>(rule: Rule<Command, Reply, C>, command: Command) =>
      node().ask(id, rule, command),
    validate: Effect.suspend(() => node().ask(id, validate, request)),
    offline: Effect.suspend(() => node().ask(id, issueOffline, request)),
    editPolicy: (edit: Parameters<Policies["Service"]["update"]>[1]) => policies.update(policyId, edit),
    request
  }
})

layer(Subject, { timeout: 60_000, excludeTestServices: true })("heartbeats", (it) => {
  it.effect(
    "are due an interval and 30 seconds after the last response, which asks for the next after two thirds",
    () =>
      fromNoon(
        Effect.gen(function* () {
          const { activation, ask, at, isDueAt, request, validate } = yield* activated()
          assert.strictEqual(activation.next_check_at, formatTimestamp(noon + 40 * minute))
          yield* at(39 * minute)
          const { next_check_at } = yield* ask(check, request)
          assert.strictEqual(next_check_at, formatTimestamp(noon + 40 * minute + 30 * second))
          yield* at(50 * minute)
          assert.strictEqual((yield* validate).next_check_at, formatTimestamp(noon + 90 * minute))
          yield* isDueAt(110 * minute + 30 * second)
        })
      )
  )

  it.effect("do not fall due while a license is suspended, and every device has a whole interval afterwards", () =>
    fromNoon(
      Effect.gen(function* () {
        const { ask, at, isDueAt, state } = yield* activated()
        yield* at(30 * minute)
        yield* ask(suspend, undefined)
        yield* at(3 * hour)
        assert.strictEqual(yield* state, "active")
        yield* ask(reinstate, undefined)
        assert.strictEqual(yield* state, "active")
        yield* isDueAt(4 * hour + 30 * second)
      })
    )
  )

  it.effect("that fell due before a suspension or the end of access stay so", () =>
    fromNoon(
      Effect.gen(function* () {
        const suspended = yield* activated()
        const ended = yield* activated({ license: { expires_at: noon + 2 * hour } })
        yield* suspended.at(hour + 31 * second)
        yield* suspended.ask(suspend, undefined)
        assert.strictEqual(yield* suspended.state, "expired")
        yield* ended.at(3 * hour)
        assert.strictEqual(yield* ended.state, "expired")
      })
    )
  )

  it.effect("do not fall due after the end of access, and begin again with a renewal", () =>
    fromNoon(
      Effect.gen(function* () {
        const expiring = { license_type: "time_limited" } as const
        const { ask, at, isDueAt, state } = yield* activated({
          license: { expires_at: noon + 20 * minute },
          policy: expiring
        })
        yield* at(5 * hour)
        assert.strictEqual(yield* state, "active")
        yield* ask(renew, { expires_at: noon + day })
        assert.strictEqual(yield* state, "active")
        yield* isDueAt(6 * hour + 30 * second)
      })
    )
  )

  it.effect("do not fall due before a license starts, and begin with its start", () =>
    fromNoon(
      Effect.gen(function* () {
        const { ask, at, isDueAt, state } = yield* activated()
        yield* ask(update, { starts_at: noon + 5 * hour })
        yield* at(5 * hour)
        assert.strictEqual(yield* state, "active")
        yield* isDueAt(6 * hour + 30 * second)
        const again = yield* activated()
        yield* again.ask(update, { starts_at: noon + 365 * day })
        yield* again.at(8 * hour)
        yield* again.ask(update, { starts_at: noon })
        yield* again.isDueAt(9 * hour + 30 * second)
      })
    )
  )

  it.effect("begin again when an edit of dates serves a license that had ended", () =>
    fromNoon(
      Effect.gen(function* () {
        const { ask, at, isDueAt } = yield* activated()
        yield* ask(update, { expires_at: noon + 10 * minute })
        yield* at(2 * hour)
        yield* ask(update, { expires_at: noon + day })
        yield* isDueAt(3 * hour + 30 * second)
      })
    )
  )

  it.effect("count from the edit that switches them on, and never fall due once switched off", () =>
    fromNoon(
      Effect.gen(function* () {
        const { at, editPolicy, isDueAt, state } = yield* activated({ policy: { require_heartbeat: false } })
        yield* at(2 * hour)
        assert.strictEqual(yield* state, "active")
        yield* editPolicy({ require_heartbeat: true, validation_interval_minutes: 10 })
        yield* isDueAt(2 * hour + 10 * minute + 30 * second)
        const off = yield* activated()
        const begin = (yield* Clock.currentTimeMillis) - noon
        yield* off.editPolicy({ require_heartbeat: false })
        yield* off.at(begin + 2 * day)
        assert.strictEqual(yield* off.state, "active")
      })
    )
  )

  it.effect("keep a promise of before the interval was shortened; the next response promises less", () =>
    fromNoon(
      Effect.gen(function* () {
        const silent = yield* activated({ policy: { validation_interval_minutes: 1440 } })
        const lively = yield* activated({ policy: { validation_interval_minutes: 1440 } })
        // The sweep notes how long no device is due.
        assert.strictEqual(yield* lively.state, "active")
        yield* silent.at(hour)
        for (const { editPolicy } of [silent, lively]) yield* editPolicy({ validation_interval_minutes: 30 })
        const answer = yield* lively.validate
        assert.strictEqual(answer.next_check_at, formatTimestamp(noon + hour + 20 * minute))
        yield* lively.isDueAt(hour + 30 * minute + 30 * second)
        yield* silent.isDueAt(day + 30 * second)
      })
    )
  )

  it.effect("keep a promise of before the interval was prolonged", () =>
    fromNoon(
      Effect.gen(function* () {
        const { at, editPolicy, isDueAt, validate } = yield* activated()
        yield* editPolicy({ validation_interval_minutes: 1440 })
        yield* at(second - 1)
        // Less than a second after the activation: the promise is stored all the same.
        yield* validate
        yield* isDueAt(day + 30 * second + second - 1)
      })
    )
  )

  it.effect("are not due as long as an offline envelope lasts, whatever is asked meanwhile", () =>
    fromNoon(
      Effect.gen(function* () {
        const { at, isDueAt, offline, validate } = yield* activated()
        yield* offline
        yield* at(10 * minute)
        yield* validate
        yield* isDueAt(7 * day + 30 * second)
      })
    )
  )

  it.effect("begin again for a license that a longer grace period serves again", () =>
    fromNoon(
      Effect.gen(function* () {
        const { at, editPolicy, isDueAt, state } = yield* activated({ license: { expires_at: noon + 20 * minute } })
        yield* at(2 * hour)
        assert.strictEqual(yield* state, "active")
        yield* editPolicy({ grace_period_days: 3 })
        yield* isDueAt(3 * hour + 30 * second)
      })
    )
  )

  it.effect("refresh the names that a request has, on both nodes and with and without required heartbeats", () =>
    fromNoon(
      Effect.gen(function* () {
        for (const require_heartbeat of [true, false]) {
          const { at, ask, id, request } = yield* activated({ policy: { require_heartbeat } })
          const sql = yield* SqlClient.SqlClient
          const names = Effect.map(
            sql<object>`SELECT hostname, os, ip_address FROM devices WHERE license_id = ${id}`,
            ([row]) => row
          )
          const { hostname: _, ...unnamed } = request.binding
          const before = yield* eventCounts(id)
          let now = (yield* Clock.currentTimeMillis) - noon
          const from = { hostname: hardware("machine").hostname, os: null, ip_address: null }
          const steps = [
            [false, { ...unnamed, os: "linux" }, { ...from, os: "linux" }],
            [false, unnamed, { ...from, os: "linux" }],
            [false, { ...unnamed, hostname: "new" }, { hostname: "new", os: "linux", ip_address: null }],
            [
              activate,
              { ...unnamed, ip_address: "192.0.2.7" },
              { hostname: "new", os: "linux", ip_address: "192.0.2.7" }
            ],
            [false, { ...unnamed, hostname: "old" }, { hostname: "old", os: "linux", ip_address: "192.0.2.7" }]
          ] as const
          for (const [again, binding, expected] of steps) {
            now += 10 * minute
            yield* at(now)
            const command = { ...request, binding }
            yield* again ? ask(activate, command) : ask(validate, command)
            assert.deepStrictEqual(yield* names, expected)
          }
          assert.deepStrictEqual(yield* eventCounts(id), before)
        }
      })
    )
  )
})
