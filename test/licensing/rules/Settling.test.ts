import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import type { NewEvent } from "../../../src/ledger/events/Entry.ts"
import { expiredFeatures } from "../../../src/licensing/model/FeatureExpiry.ts"
import type { LicenseStatus } from "../../../src/licensing/model/License.ts"
import { entitlementVersionAt, settle, statusAt } from "../../../src/licensing/rules/Lifecycle.ts"
import { rows as anyRows } from "../../support/rules/LicenseArbitraries.ts"
import { applied, eventTypes, settled, viewOf } from "../../support/rules/LicenseRules.ts"
import {
  container,
  day,
  deviceOf,
  hardware,
  leaseOf,
  minute,
  noon,
  type Rows,
  rowsOf,
  second
} from "../../support/rules/Licenses.ts"

const versionAt = ({ assignments, license, policy }: Rows, now: number) =>
  entitlementVersionAt(license, policy, expiredFeatures(assignments, now).length, now)
const statusOf = ({ license, policy }: Rows, now: number) => statusAt(license, policy, now)

const slotted = deviceOf(hardware("machine"))
const seated = deviceOf(hardware("seat holder"), { holds_slot: false })
const retired = deviceOf(hardware("retired"), { status: "deactivated" })

describe("the clock", () => {
  const instants: ReadonlyArray<readonly [grace: number, at: number, LicenseStatus]> = [
    [3, -1, "active"],
    [3, 0, "grace_period"],
    [3, 3 * day - 1, "grace_period"],
    [3, 3 * day, "expired"],
    [0, -1, "active"],
    [0, 0, "expired"]
  ]

  it.each(instants)("with %i days of grace, %i ms after expires_at, says %s", (grace_period_days, at, status) => {
    const policy = { grace_period_days }
    assert.strictEqual(statusOf(rowsOf({ license: { expires_at: noon }, policy }), noon + at), status)
    assert.strictEqual(
      statusOf(rowsOf({ license: { expires_at: noon, status: "suspended" }, policy }), noon + at),
      "suspended"
    )
    assert.strictEqual(
      statusOf(rowsOf({ license: { expires_at: noon, status: "revoked" }, policy }), noon + at),
      "revoked"
    )
  })

  it("never ends a license without expires_at", () => {
    assert.strictEqual(statusOf(rowsOf({ license: { expires_at: undefined } }), noon + 100_000 * day), "active")
  })

  it("takes a license back when its expiry or grace was moved, which raised the version by itself", () => {
    const expiredOnce = { status: "expired", entitlement_counter: 7 } as const
    const extended = rowsOf({ license: { ...expiredOnce, expires_at: noon - day }, policy: { grace_period_days: 3 } })
    const moved = rowsOf({ license: { ...expiredOnce, expires_at: noon + day } })
    for (const [rows, status] of [
      [extended, "grace_period"],
      [moved, "active"]
    ] as const) {
      const after = settled(rows, noon)
      assert.strictEqual(statusOf(rows, noon), status)
      assert.strictEqual(after.license.status, status)
      assert.deepStrictEqual(after.events, [])
      assert.strictEqual(versionAt(rows, noon), 7)
      assert.strictEqual(versionAt(after, noon), 7)
    }
  })
})

describe("settle", () => {
  const returned = leaseOf(retired, { status: "checked_in", ended_at: noon - day })
  const lapsed = rowsOf({
    license: { expires_at: noon - 4 * day },
    policy: { grace_period_days: 3 },
    devices: [seated],
    leases: [leaseOf(seated), returned]
  })

  it("records each state that was passed, once and in order", () => {
    const changes = settle(viewOf(lapsed), noon)
    const event = { resource_type: "license", resource_id: "lic_1" } as const
    assert.deepStrictEqual(changes?.events, [
      { ...event, event_type: "license.grace_period_started", metadata: { status: "grace_period" } },
      { ...event, event_type: "license.expired", metadata: { status: "expired" } }
    ])
    assert.isUndefined(settle(viewOf(applied(lapsed, changes ?? {})), noon))
  })

  it("records the expiry alone where there is no grace, and where grace was recorded before", () => {
    const graceless = rowsOf({ license: { expires_at: noon } })
    assert.deepStrictEqual(eventTypes(settle(viewOf(graceless), noon)), ["license.expired"])
    const inGrace = settled(lapsed, noon - 2 * day)
    assert.deepStrictEqual(eventTypes(inGrace), ["license.grace_period_started"])
    assert.deepStrictEqual(eventTypes(settle(viewOf(inGrace), noon)), ["license.expired"])
  })

  it("ends live leases when access ends, not when grace begins", () => {
    assert.deepStrictEqual(settled(lapsed, noon - 2 * day).leases, lapsed.leases)
    assert.deepStrictEqual(settled(lapsed, noon).leases, [
      leaseOf(seated, { status: "ended", ended_at: noon }),
      returned
    ])
  })

  it("has nothing to say of a license that nothing has happened to", () => {
    assert.isUndefined(settle(viewOf(rowsOf({ devices: [slotted] })), noon))
    assert.isUndefined(settle(viewOf(rowsOf({ license: { status: "suspended", expires_at: noon - day } })), noon))
    assert.isUndefined(settle(viewOf(rowsOf({ license: { status: "revoked", expires_at: noon - day } })), noon))
  })

  it("expires the devices whose heartbeat is overdue and gives their slots back", () => {
    const policy = { require_heartbeat: true, validation_interval_minutes: 10 }
    const late = deviceOf(hardware("late"), { activated_at: noon - day, due_at: noon - 1 })
    const punctual = deviceOf(container("punctual"), { activated_at: noon - day, due_at: noon })
    const rows = rowsOf({ policy, devices: [late, punctual, seated, retired], leases: [leaseOf(seated)] })
    const after = settled(rows, noon)
    assert.deepStrictEqual(after.devices, [
      { ...late, status: "expired" as const, holds_slot: false, updated_at: noon },
      punctual,
      seated,
      retired
    ])
    assert.strictEqual(after.license.active_device_count, 1)
    assert.strictEqual(after.license.entitlement_counter, rows.license.entitlement_counter)
    assert.deepStrictEqual(after.events, [
      {
        event_type: "device.expired",
        resource_type: "device",
        resource_id: late.id,
        metadata: { license_id: "lic_1", status: { old: "active", new: "expired" } }
      }
    ])
  })

  it("changes no answer: state and published entitlement version are those that held before", () => {
    fc.assert(
      fc.property(anyRows, (rows) => {
        const after = settled(rows, noon)
        assert.strictEqual(after.license.status, statusOf(rows, noon))
        assert.strictEqual(statusOf(after, noon), statusOf(rows, noon))
        assert.strictEqual(versionAt(after, noon), versionAt(rows, noon))
        assert.strictEqual(
          after.license.active_device_count,
          after.devices.filter(({ holds_slot }) => holds_slot).length
        )
        assert.isUndefined(settle(viewOf(after), noon))
      }),
      { numRuns: 300 }
    )
  })

  it("comes to the same whether it runs at every instant or once at the end", () => {
    const start = anyRows.filter(({ license }) => license.status === "active" && (license.expires_at ?? noon) >= noon)
    const instants = fc.array(fc.integer({ min: 0, max: 40 * day }), { minLength: 1, maxLength: 6 })
    fc.assert(
      fc.property(start, instants, (rows, unordered) => {
        const ordered = unordered.toSorted((a, b) => a - b).map((after) => noon + after)
        const last = ordered.at(-1) as number
        const often = ordered.reduce(settled, rows)
        const once = settled(rows, last)
        const ofFeature = ({ event_type }: NewEvent) => event_type === "license.feature_expired"
        const featureEvents = ({ events }: Rows) => events.filter(ofFeature)
        const licenseEvents = ({ events }: Rows) =>
          events.filter((event) => event.resource_type === "license" && !ofFeature(event))
        const deviceEvents = ({ events }: Rows) =>
          events.filter(({ resource_type }) => resource_type === "device").map((event) => event.resource_id)
        assert.deepStrictEqual(licenseEvents(often), licenseEvents(once))
        assert.deepStrictEqual(featureEvents(often), featureEvents(once))
        assert.deepStrictEqual(often.assignments, once.assignments)
        assert.sameMembers(deviceEvents(often), deviceEvents(once))
        assert.deepStrictEqual(often.license, once.license)
        const leaseEvents = ({ events }: Rows) =>
          events.filter(({ resource_type }) => resource_type === "lease").map((event) => event.resource_id)
        assert.sameMembers(leaseEvents(often), leaseEvents(once))
        const states = ({ devices, leases }: Rows) => [...devices, ...leases].map(({ id, status }) => `${id} ${status}`)
        assert.deepStrictEqual(states(often), states(once))
        assert.strictEqual(versionAt(once, last), versionAt(rows, last))
      })
    )
  })

  it("lets the published entitlement version only rise as time passes", () => {
    fc.assert(
      fc.property(anyRows, fc.nat(40 * day), fc.nat(40 * day), (rows, wait, more) => {
        const version = versionAt(rows, noon + wait)
        assert.isAtLeast(versionAt(rows, noon + wait + more), version)
        assert.isAtLeast(version, rows.license.entitlement_counter + rows.policy.entitlement_counter)
      })
    )
  })
})

describe("floating leases in time", () => {
  const end = noon + 20 * minute
  const holder = deviceOf(hardware("holder"), { holds_slot: false, activated_at: undefined })
  const lease = leaseOf(holder, { expires_at: end })
  const held = rowsOf({ devices: [holder], leases: [lease] })

  it("live up to their end, and lapse at it with one event", () => {
    assert.isUndefined(settle(viewOf(held), end - 1))
    const changes = settle(viewOf(held), end + minute)
    assert.deepStrictEqual(changes?.leases, [{ ...lease, status: "expired", ended_at: end }])
    assert.deepStrictEqual(changes?.devices, [{ ...holder, status: "expired", updated_at: end + minute }])
    assert.deepStrictEqual(changes?.events, [
      {
        event_type: "lease.expired",
        resource_type: "lease",
        resource_id: lease.id,
        metadata: { license_id: "lic_1", device_id: holder.id, status: { old: "live", new: "expired" } }
      }
    ])
    assert.isUndefined(settle(viewOf(applied(held, changes ?? {})), end + minute))
    assert.deepStrictEqual(eventTypes(settle(viewOf(held), end)), ["lease.expired"])
  })

  it("lapse in the order of their ends", () => {
    const [later, tie] = [hardware("later"), hardware("tie")].map((binding) => deviceOf(binding, { holds_slot: false }))
    const leases = [leaseOf(later!, { expires_at: end + 1 }), leaseOf(tie!, { expires_at: end }), lease]
    const changes = settle(viewOf(rowsOf({ devices: [holder, later!, tie!], leases })), end + 1)
    const order = changes?.events?.map(({ resource_id }) => resource_id)
    assert.deepStrictEqual(order, [...[lease.id, leases[1]!.id].toSorted(), leases[0]!.id])
  })

  it("leave an activation alone", () => {
    const both = deviceOf(hardware("both"))
    const rows = rowsOf({ devices: [both], leases: [leaseOf(both, { expires_at: end })] })
    const after = settled(rows, end)
    assert.deepStrictEqual(after.devices, [both])
    assert.strictEqual(after.license.active_device_count, 1)
    assert.strictEqual(after.leases[0]?.status, "expired")
  })

  const ends: ReadonlyArray<readonly [leaseEnd: number, "expired" | "ended"]> = [
    [-1, "expired"],
    [0, "ended"],
    [1, "ended"]
  ]
  it.each(ends)("that would end %i ms after the license's access are %s when both is past", (at, status) => {
    const access = noon + day
    const rows = rowsOf({
      license: { expires_at: access },
      devices: [holder],
      leases: [leaseOf(holder, { expires_at: access + at })]
    })
    const after = settled(rows, access + day)
    assert.strictEqual(after.leases[0]?.status, status)
    assert.strictEqual(after.devices[0]?.status, status === "expired" ? "expired" : "deactivated")
    assert.deepStrictEqual(
      eventTypes(after),
      status === "expired" ? ["license.expired", "lease.expired"] : ["license.expired"]
    )
    assert.deepStrictEqual(settled(settled(rows, access - 1), access + day).leases[0]?.status, status)
  })

  it("keep a device active whose activation falls silent, and show that again when they end", () => {
    const policy = { require_heartbeat: true, validation_interval_minutes: 1 }
    const both = deviceOf(hardware("both"), { due_at: noon + 30 * second })
    const rows = rowsOf({ policy, devices: [both], leases: [leaseOf(both, { expires_at: end })] })
    const silent = settled(rows, noon + minute)
    assert.deepStrictEqual(silent.devices, [{ ...both, holds_slot: false, updated_at: noon + minute }])
    assert.strictEqual(silent.license.active_device_count, 0)
    assert.deepStrictEqual(eventTypes(silent), ["device.expired"])
    assert.strictEqual(settled(silent, end).devices[0]?.status, "expired")
    assert.strictEqual(settled(rows, end).devices[0]?.status, "expired")
  })
})
