/** Devices that the holder of the key deactivates, and slots that are held for offline envelopes. */
import { assert, describe, it } from "@effect/vitest"
import { blacklist, reset } from "../../../src/licensing/changes/DeviceActions.ts"
import { transfer } from "../../../src/licensing/changes/Transfer.ts"
import { activate, deactivate, validate } from "../../../src/licensing/rules/Activation.ts"
import { checkout } from "../../../src/licensing/rules/Floating.ts"
import { deactivateOwn, listOwnDevices } from "../../../src/licensing/rules/OwnDevices.ts"
import { sha256Hex } from "../../../src/platform/signing/Digest.ts"
import { allowed, refusedWith } from "../../support/rules/LicenseRules.ts"
import {
  activationOf,
  container,
  day,
  deviceOf,
  hardware,
  keyHash,
  noon,
  type RowsInput,
  requestOf,
  rowsOf
} from "../../support/rules/Licenses.ts"

const laptop = hardware("laptop")
const offlineUntil = noon + 5 * day
const lost = deviceOf(laptop, { offline_expires_at: offlineUntil })
const own = { keyHash, deviceId: lost.id }
const another = activationOf(hardware("another"))

describe("a device that the holder of the key deactivates", () => {
  it("gives its slot back at once without an offline envelope, in every state of the license but revoked", () => {
    const ended = deviceOf(laptop, { offline_expires_at: noon })
    for (const license of [{}, { status: "suspended" }, { status: "expired", expires_at: noon - day }] as const) {
      const rows = rowsOf({ license, policy: { max_activations: 1 }, devices: [ended] })
      const { after, reply } = allowed(rows, deactivateOwn, own)
      assert.deepInclude(after.devices[0], { status: "deactivated", holds_slot: false })
      assert.isUndefined(after.devices[0]?.slot_held_until)
      assert.deepInclude(reply, { kind: "deactivation", device_id: ended.id, binding_hash: sha256Hex("laptop") })
      if (!("status" in license)) allowed(after, activate, another)
    }
    refusedWith("LICENSE_REVOKED", rowsOf({ license: { status: "revoked" }, devices: [ended] }), deactivateOwn, own)
  })

  it("must be known, activated and not blacklisted", () => {
    refusedWith("DEVICE_NOT_FOUND", rowsOf(), deactivateOwn, own)
    const withDevice = (given: object) => rowsOf({ devices: [deviceOf(laptop, given)] })
    refusedWith("DEVICE_STATE_CONFLICT", withDevice({ status: "reset" }), deactivateOwn, own)
    refusedWith("DEVICE_STATE_CONFLICT", withDevice({ holds_slot: false }), deactivateOwn, own)
    refusedWith("DEVICE_BLACKLISTED", withDevice({ status: "blacklisted" }), deactivateOwn, own)
  })

  it("counts against the limit of any 30 days, which a refusal does not use up", () => {
    const names = ["a", "b", "c"]
    const devices = names.map((name) => deviceOf(hardware(name)))
    const deviceId = (index: number) => ({ keyHash, deviceId: devices[index]!.id })
    const month = 30 * day
    const license = { expires_at: undefined }
    const start = rowsOf({ devices, license, policy: { self_deactivations_per_month: 2 } })
    const first = allowed(start, deactivateOwn, deviceId(0), noon).after
    refusedWith("DEVICE_STATE_CONFLICT", first, deactivateOwn, deviceId(0), noon + day)
    const second = allowed(first, deactivateOwn, deviceId(1), noon + day).after
    const { refused } = refusedWith(
      "SELF_DEACTIVATION_LIMIT_REACHED",
      second,
      deactivateOwn,
      deviceId(2),
      noon + month - 1500
    )
    assert.deepStrictEqual([refused.detail, refused.facts], ["2", { max: 2, used: 2, retry_after_seconds: 2 }])
    const { self_deactivations_remaining } = allowed(second, listOwnDevices, { keyHash }, noon + month).reply
    assert.strictEqual(self_deactivations_remaining, 1)
    const third = allowed(second, deactivateOwn, deviceId(2), noon + month).after
    assert.deepStrictEqual(third.license.self_deactivated_at, [noon + day, noon + month])
    const off = rowsOf({ devices, license: { self_deactivations_per_month: 0 } })
    const none = refusedWith("SELF_DEACTIVATION_LIMIT_REACHED", off, deactivateOwn, deviceId(0)).refused
    assert.deepStrictEqual(none.facts, { max: 0, used: 0 })
  })
})

describe("the slot of a device with a valid offline envelope", () => {
  const held = (input: RowsInput = {}) =>
    allowed(rowsOf({ devices: [lost], ...input, policy: { max_activations: 1, ...input.policy } }), deactivateOwn, own)

  it("stays taken until the envelope expires, and not a millisecond longer", () => {
    const { after, changes } = held()
    assert.strictEqual(after.license.active_device_count, 0)
    assert.deepInclude(changes.events?.[0]?.metadata, { slot_held_until: new Date(offlineUntil).toISOString() })
    const { refused } = refusedWith("ACTIVATION_LIMIT_REACHED", after, activate, another, offlineUntil - 1)
    assert.deepStrictEqual(refused.facts, { max: 1, used: 1, retry_after_seconds: 1 })
    allowed(after, activate, another, offlineUntil)
  })

  it("is the device's own: it may be activated again, and then has one slot", () => {
    const { after } = allowed(held().after, activate, { ...requestOf(laptop), newDeviceId: "dev_x" }, noon + day)
    assert.deepInclude(after.devices[0], { status: "active", holds_slot: true })
    assert.isUndefined(after.devices[0]?.slot_held_until)
    assert.deepInclude(after.license, { active_device_count: 1, times_activated: 1 })
    refusedWith("ACTIVATION_LIMIT_REACHED", after, activate, another, noon + day)
  })

  it("is no activation: the device must be activated or take a seat, and keeps the slot held with a seat", () => {
    const { after } = held()
    refusedWith("DEVICE_NOT_ACTIVE", after, validate, requestOf(laptop))
    const command = {
      ...requestOf(laptop),
      newDeviceId: "d",
      newLeaseId: "l",
      leaseToken: "t",
      tokenHash: sha256Hex("t")
    }
    const seated = allowed(after, checkout, command).after
    assert.deepInclude(seated.devices[0], { status: "active", holds_slot: false, slot_held_until: offlineUntil })
    refusedWith("ACTIVATION_LIMIT_REACHED", seated, activate, another)
  })

  it("counts with the containers if these have their own limit", () => {
    const pod = deviceOf(container("pod"), { offline_expires_at: offlineUntil })
    const devices = [pod, deviceOf(hardware("machine"))]
    const policy = { max_container_instances: 1, max_activations: 2 }
    const { after } = allowed(rowsOf({ devices, policy }), deactivateOwn, { keyHash, deviceId: pod.id })
    refusedWith("CONTAINER_LIMIT_REACHED", after, activate, activationOf(container("other")))
    allowed(after, activate, another)
    const together = allowed(rowsOf({ devices, policy: { max_activations: 2 } }), deactivateOwn, {
      keyHash,
      deviceId: pod.id
    })
    refusedWith("ACTIVATION_LIMIT_REACHED", together.after, activate, another)
  })

  it.each([
    ["reset", (rows: ReturnType<typeof rowsOf>) => allowed(rows, reset, { device_id: lost.id }).after],
    ["blacklisted", (rows: ReturnType<typeof rowsOf>) => allowed(rows, blacklist, { device_id: lost.id }).after],
    [
      "reset with the transfer",
      (rows: ReturnType<typeof rowsOf>) => allowed(rows, transfer, { reset_devices: true }).after
    ]
  ])("is free at once when the vendor has the device %s", (_, act) => {
    allowed(act(held().after), activate, another)
  })

  it("is free at once when the device deactivates itself, unless the policy holds it", () => {
    const rows = (hold_offline_slots: boolean) =>
      rowsOf({ policy: { max_activations: 1, hold_offline_slots }, devices: [lost] })
    const free = allowed(rows(false), deactivate, requestOf(laptop))
    assert.isUndefined(free.after.license.self_deactivated_at)
    allowed(free.after, activate, another)
    const { after } = allowed(rows(true), deactivate, requestOf(laptop))
    refusedWith("ACTIVATION_LIMIT_REACHED", after, activate, another)
    allowed(after, activate, another, offlineUntil)
  })
})

describe("a refusal to deactivate an own device", () => {
  it("says why, and the device is read first", () => {
    const conflict = refusedWith(
      "DEVICE_STATE_CONFLICT",
      rowsOf({ devices: [deviceOf(laptop, { status: "reset" })] }),
      deactivateOwn,
      own
    ).refused
    assert.strictEqual(conflict.detail, "reset")
    assert.include(conflict.message, "is reset and has no activation")
    const off = rowsOf({ devices: [lost], policy: { self_deactivations_per_month: 0 } })
    assert.strictEqual(refusedWith("SELF_DEACTIVATION_LIMIT_REACHED", off, deactivateOwn, own).refused.detail, "0")
    assert.deepStrictEqual(deactivateOwn.needs?.(own), { deviceId: lost.id })
  })
})
