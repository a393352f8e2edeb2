import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import * as fc from "fast-check"
import { blacklist, reset, unblacklist } from "../../../src/licensing/changes/DeviceActions.ts"
import { Device, type DeviceStatus } from "../../../src/licensing/model/Device.ts"
import { deviceTransitions } from "../../../src/licensing/model/DeviceTransitions.ts"
import { activate, check } from "../../../src/licensing/rules/Activation.ts"
import { rows as anyRows, bindings } from "../../support/rules/LicenseArbitraries.ts"
import { allowed, perform, refusedWith } from "../../support/rules/LicenseRules.ts"
import { activationOf, deviceOf, hardware, leaseOf, noon, requestOf, rowsOf } from "../../support/rules/Licenses.ts"

const rules = { reset, blacklist, unblacklist }
const machine = hardware("machine")
const other = deviceOf(hardware("other"))
const otherSeat = deviceOf(hardware("other seat"), { holds_slot: false })

const rowsIn = (status: DeviceStatus) =>
  rowsOf({ devices: [deviceOf(machine, { status }), other, otherSeat], leases: [leaseOf(otherSeat)] })

type Line = readonly [from: DeviceStatus, trigger: keyof typeof rules, to: DeviceStatus | "no-op" | "refused"]

const table: ReadonlyArray<Line> = [
  ["active", "reset", "reset"],
  ["deactivated", "reset", "reset"],
  ["expired", "reset", "reset"],
  ["reset", "reset", "no-op"],
  ["blacklisted", "reset", "refused"],
  ["active", "blacklist", "blacklisted"],
  ["deactivated", "blacklist", "blacklisted"],
  ["expired", "blacklist", "blacklisted"],
  ["reset", "blacklist", "blacklisted"],
  ["blacklisted", "blacklist", "no-op"],
  ["active", "unblacklist", "refused"],
  ["deactivated", "unblacklist", "refused"],
  ["expired", "unblacklist", "refused"],
  ["reset", "unblacklist", "refused"],
  ["blacklisted", "unblacklist", "reset"]
]

const eventTypes = {
  reset: "device.reset",
  blacklist: "device.blacklisted",
  unblacklist: "device.unblacklisted"
} as const

describe("actions on a device", () => {
  it.each(table)("that is %s: %s", (from, trigger, to) => {
    const rows = rowsIn(from)
    const device = deviceOf(machine, { status: from })
    const command = { device_id: device.id }
    if (to === "refused") {
      assert.strictEqual(refusedWith("DEVICE_STATE_CONFLICT", rows, rules[trigger], command).refused.detail, from)
      return
    }
    const { before, after, changes, reply } = allowed(rows, rules[trigger], command)
    if (to === "no-op") {
      assert.deepStrictEqual(changes, {})
      assert.strictEqual(reply.status, from)
      return
    }
    const moved = { ...device, status: to, holds_slot: false, updated_at: noon }
    assert.deepStrictEqual(after.devices, [moved, other, otherSeat])
    assert.deepStrictEqual(after.leases, before.leases)
    assert.strictEqual(after.license.active_device_count, 1)
    assert.deepInclude(reply, { id: device.id, license_id: "lic_1", status: to, updated_at: noon })
    assert.strictEqual(after.license.entitlement_counter, before.license.entitlement_counter)
    assert.deepStrictEqual(changes.events, [
      {
        event_type: eventTypes[trigger],
        resource_type: "device",
        resource_id: device.id,
        metadata: { license_id: "lic_1", status: { old: from, new: to } }
      }
    ])
  })

  it("follow a table that has a line for every state", () => {
    const lines = Object.entries(deviceTransitions).flatMap(([trigger, from]) =>
      Object.entries(from).map(([status, to]) => [
        status,
        trigger,
        { unchanged: "no-op", conflict: "refused", reset: "reset", blacklisted: "blacklisted" }[to]
      ])
    )
    assert.sameDeepMembers(
      lines,
      Array.from(table, (line) => Array.from(line))
    )
  })

  it.each([
    ["reset", "ended"],
    ["blacklist", "blacklisted"]
  ] as const)("%s ends the device's lease and no other, as %s", (trigger, status) => {
    const both = deviceOf(machine)
    const rows = rowsOf({ devices: [both, otherSeat], leases: [leaseOf(both), leaseOf(otherSeat)] })
    const { after } = allowed(rows, rules[trigger], { device_id: both.id })
    assert.deepStrictEqual(after.leases, [leaseOf(both, { status, ended_at: noon }), leaseOf(otherSeat)])
    assert.strictEqual(after.license.active_device_count, 0)
    const seat = allowed(rows, rules[trigger], { device_id: otherSeat.id }).after
    assert.deepStrictEqual(seat.leases, [leaseOf(both), leaseOf(otherSeat, { status, ended_at: noon })])
    assert.strictEqual(seat.license.active_device_count, 1)
  })

  it("bar a blacklisted device from the runtime, and let it in again when that is lifted", () => {
    const device_id = deviceOf(machine).id
    const barred = allowed(rowsIn("active"), blacklist, { device_id }).after
    refusedWith("DEVICE_BLACKLISTED", barred, check, requestOf(machine))
    refusedWith("DEVICE_BLACKLISTED", barred, activate, activationOf(machine))
    const lifted = allowed(barred, unblacklist, { device_id }).after
    refusedWith("DEVICE_NOT_ACTIVE", lifted, check, requestOf(machine))
    const { after } = allowed(lifted, activate, activationOf(machine))
    assert.deepInclude(after.license, { active_device_count: 2, times_activated: 1 })
  })

  it("treat an activation with an overdue heartbeat as expired", () => {
    const device = deviceOf(machine, { due_at: noon - 1 })
    const rows = rowsOf({ devices: [device], policy: { require_heartbeat: true, validation_interval_minutes: 10 } })
    const { after, changes } = allowed(rows, reset, { device_id: device.id })
    assert.deepStrictEqual(changes.events?.[0]?.metadata["status"], { old: "expired", new: "reset" })
    assert.strictEqual(after.license.active_device_count, 0)
  })

  it("refuse an unknown device, then a revoked license", () => {
    for (const trigger of ["reset", "blacklist", "unblacklist"] as const) {
      const rows = rowsOf({ license: { status: "revoked" }, devices: [deviceOf(machine, { status: "blacklisted" })] })
      const { refused } = refusedWith("NOT_FOUND", rows, rules[trigger], { device_id: "dev_none" })
      assert.strictEqual(refused.detail, "device_id")
      refusedWith("LICENSE_STATE_CONFLICT", rows, rules[trigger], { device_id: deviceOf(machine).id })
    }
  })

  it("answer a device that its schema reads, and say nothing twice", () => {
    const triggers = fc.constantFrom("reset" as const, "blacklist" as const, "unblacklist" as const)
    fc.assert(
      fc.property(anyRows, triggers, fc.constantFrom(...bindings), (rows, trigger, binding) => {
        const command = { device_id: deviceOf(binding).id }
        const { after, refused, reply } = perform(rows, rules[trigger], command, noon)
        if (refused !== undefined) return
        Schema.encodeSync(Device, { onExcessProperty: "error" })(reply!)
        if (trigger !== "unblacklist") assert.deepStrictEqual(perform(after, rules[trigger], command, noon).changes, {})
      })
    )
  })
})

describe("a refused action on a device", () => {
  it("says what helps, and each reads the device first", () => {
    const messageOf = (rule: typeof reset, status: DeviceStatus) =>
      refusedWith("DEVICE_STATE_CONFLICT", rowsIn(status), rule, { device_id: deviceOf(machine).id }).refused.message
    assert.strictEqual(
      messageOf(reset, "blacklisted"),
      "The device is blacklisted: remove it from the blacklist first."
    )
    assert.strictEqual(
      messageOf(unblacklist, "active"),
      "The device is active: only a blacklisted device can be unblacklisted."
    )
    for (const rule of Object.values(rules))
      assert.deepStrictEqual(rule.needs?.({ device_id: "dev_1" }), { deviceId: "dev_1" })
  })
})
