import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { activate, deactivate } from "../../../src/licensing/rules/Activation.ts"
import { allowed, eventTypes, refusedWith, viewOf } from "../../support/rules/LicenseRules.ts"
import {
  activationOf,
  container,
  day,
  deviceOf,
  dueAfter,
  hardware,
  minute,
  noon,
  type Rows,
  requestOf,
  rowsOf,
  second
} from "../../support/rules/Licenses.ts"

const hour = 60 * minute

const machine = hardware("machine", { os: "linux", ip_address: "192.0.2.7" })
const other = hardware("other machine")
const pod = container("pod")
const otherPod = container("other pod")

describe("activate", () => {
  it("binds a new device, takes a slot, counts it and records it", () => {
    const { after, changes, reply } = allowed(rowsOf(), activate, activationOf(machine))
    assert.deepStrictEqual(after.devices, [
      {
        id: deviceOf(machine).id,
        binding_kind: "hardware",
        binding_key: "machine",
        binding_hash: machine.hash(),
        fingerprint: "machine",
        hostname: "host of machine",
        os: "linux",
        ip_address: "192.0.2.7",
        is_vm: false,
        is_container: false,
        status: "active",
        holds_slot: true,
        activated_at: noon,
        first_seen_at: noon,
        last_seen_at: noon,
        last_validated_at: undefined,
        due_at: dueAfter(noon),
        offline_expires_at: undefined,
        metadata: {},
        created_at: noon,
        updated_at: noon
      }
    ])
    assert.deepStrictEqual(changes.license, { active_device_count: 1, times_activated: 1, updated_at: noon })
    assert.deepStrictEqual(changes.events, [
      {
        event_type: "license.activated",
        resource_type: "license",
        resource_id: "lic_1",
        metadata: {
          device_id: deviceOf(machine).id,
          binding_kind: "hardware",
          ...machine.redacted(),
          status: { old: null, new: "active" }
        }
      }
    ])
    assert.strictEqual(reply.device_id, deviceOf(machine).id)
    assert.strictEqual(reply.entitlement_version, 1)
  })

  it("counts nothing and records nothing when the binding is active already", () => {
    const device = deviceOf(machine)
    const full = rowsOf({ policy: { max_activations: 1 }, devices: [device] })
    const { before, after, changes } = allowed(full, activate, activationOf(machine))
    assert.deepStrictEqual(changes, { seen: { ...device, last_seen_at: noon, due_at: dueAfter(noon) } })
    assert.deepStrictEqual(after.license, before.license)
    assert.deepStrictEqual(after.events, [])
  })

  it.each(["deactivated", "reset", "expired"] as const)("takes a %s device back into the same row", (status) => {
    const before = deviceOf(machine, { status, metadata: { rack: 7 }, last_validated_at: noon - day })
    const start = rowsOf({ license: { times_activated: 4 }, devices: [before] })
    const { after, changes, reply } = allowed(start, activate, activationOf(machine), noon + minute)
    assert.strictEqual(reply.device_id, before.id)
    assert.deepStrictEqual(after.devices, [
      {
        ...before,
        status: "active",
        holds_slot: true,
        activated_at: noon + minute,
        last_seen_at: noon + minute,
        due_at: dueAfter(noon + minute),
        offline_expires_at: undefined,
        updated_at: noon + minute
      }
    ])
    assert.strictEqual(after.license.times_activated, 5)
    assert.strictEqual(after.license.active_device_count, 1)
    assert.deepInclude(changes.events?.[0]?.metadata, { status: { old: status, new: "active" } })
  })

  it("checks the slot again when a device comes back", () => {
    const devices = [deviceOf(machine, { status: "deactivated" }), deviceOf(other)]
    refusedWith(
      "ACTIVATION_LIMIT_REACHED",
      rowsOf({ policy: { max_activations: 1 }, devices }),
      activate,
      activationOf(machine)
    )
  })

  it("makes a seat holder a real activation", () => {
    const seated = deviceOf(machine, { holds_slot: false })
    const { after } = allowed(rowsOf({ devices: [seated] }), activate, activationOf(machine))
    assert.isTrue(after.devices[0]?.holds_slot)
    assert.strictEqual(after.license.active_device_count, 1)
    assert.strictEqual(after.license.times_activated, 1)
    refusedWith(
      "ACTIVATION_LIMIT_REACHED",
      rowsOf({ policy: { max_activations: 1 }, devices: [seated, deviceOf(other)] }),
      activate,
      activationOf(machine)
    )
  })

  it("records that a limit was reached, and says which", () => {
    const devices = [deviceOf(other), deviceOf(otherPod)]
    const event = {
      event_type: "license.activation_limit_reached",
      resource_type: "license",
      resource_id: "lic_1"
    } as const
    const hardwareFull = refusedWith(
      "ACTIVATION_LIMIT_REACHED",
      rowsOf({ policy: { max_activations: 2 }, devices }),
      activate,
      activationOf(machine)
    )
    assert.strictEqual(hardwareFull.refused.detail, "2")
    assert.deepStrictEqual(hardwareFull.refused.recorded?.events, [
      { ...event, metadata: { code: "ACTIVATION_LIMIT_REACHED", limit: 2 } }
    ])
    const containersFull = refusedWith(
      "CONTAINER_LIMIT_REACHED",
      rowsOf({ policy: { max_container_instances: 1 }, devices }),
      activate,
      activationOf(pod)
    )
    assert.strictEqual(containersFull.refused.detail, "1")
    assert.deepStrictEqual(containersFull.refused.recorded?.events, [
      { ...event, metadata: { code: "CONTAINER_LIMIT_REACHED", limit: 1 } }
    ])
  })
})

describe("the record of a reached limit", () => {
  const full = rowsOf({
    policy: { max_activations: 1, max_container_instances: 1 },
    devices: [deviceOf(other), deviceOf(otherPod)]
  })
  const isRecordedAt = (rows: Rows, at: number, code: "ACTIVATION_LIMIT_REACHED" | "CONTAINER_LIMIT_REACHED") =>
    refusedWith(code, rows, activate, activationOf(code === "ACTIVATION_LIMIT_REACHED" ? machine : pod), at).refused
      .recorded !== undefined

  it("is made at most once an hour for both limits together, and refusals in between change nothing", () => {
    const { after } = refusedWith("ACTIVATION_LIMIT_REACHED", full, activate, activationOf(machine))
    assert.strictEqual(after.license.activation_limit_recorded_at, noon)
    assert.deepStrictEqual(after.license, { ...full.license, activation_limit_recorded_at: noon })
    for (const code of ["ACTIVATION_LIMIT_REACHED", "CONTAINER_LIMIT_REACHED"] as const) {
      for (const at of [noon, noon + 1, noon + hour - 1]) assert.isFalse(isRecordedAt(after, at, code))
      for (const at of [noon + hour, noon + day]) assert.isTrue(isRecordedAt(after, at, code))
    }
  })

  it("is not suppressed for years by a clock that was set back, nor repeated by one that is a little behind", () => {
    const { after } = refusedWith("ACTIVATION_LIMIT_REACHED", full, activate, activationOf(machine))
    assert.isFalse(isRecordedAt(after, noon - 10 * second, "ACTIVATION_LIMIT_REACHED"))
    assert.isTrue(isRecordedAt(after, noon - hour, "ACTIVATION_LIMIT_REACHED"))
  })

  it("is made once in every hour that refuses, whenever the requests come", () => {
    fc.assert(
      fc.property(fc.array(fc.nat(5 * hour), { minLength: 1, maxLength: 30 }), (waits) => {
        let [rows, recorded] = [full, [] as ReadonlyArray<number>]
        for (const at of waits.toSorted((a, b) => a - b).map((wait) => noon + wait)) {
          const last = recorded.at(-1)
          const { after, refused } = refusedWith("ACTIVATION_LIMIT_REACHED", rows, activate, activationOf(machine), at)
          assert.strictEqual(refused.recorded !== undefined, last === undefined || at - last >= hour)
          assert.strictEqual(eventTypes(refused.recorded).length, refused.recorded === undefined ? 0 : 1)
          if (refused.recorded !== undefined) recorded = [...recorded, at]
          rows = after
        }
      })
    )
  })
})

describe("deactivate", () => {
  it("gives the slot back and records it", () => {
    const device = deviceOf(machine)
    const { after, changes, reply } = allowed(
      rowsOf({ devices: [device, deviceOf(pod)] }),
      deactivate,
      requestOf(machine)
    )
    assert.deepStrictEqual(viewOf(after).deviceById(device.id), {
      ...device,
      status: "deactivated",
      holds_slot: false,
      last_seen_at: noon,
      updated_at: noon
    })
    assert.strictEqual(after.license.active_device_count, 1)
    assert.strictEqual(after.license.times_activated, 0)
    assert.deepStrictEqual(changes.events, [
      {
        event_type: "license.deactivated",
        resource_type: "license",
        resource_id: "lic_1",
        metadata: {
          device_id: device.id,
          binding_kind: "hardware",
          ...machine.redacted(),
          status: { old: "active", new: "deactivated" }
        }
      }
    ])
    assert.strictEqual(reply.device_id, device.id)
    refusedWith("DEVICE_STATE_CONFLICT", after, deactivate, requestOf(machine))
  })

  it.each([
    ["suspended", { status: "suspended" }],
    ["expired", { status: "expired", expires_at: noon - 30 * day }],
    ["expired by the clock alone", { expires_at: noon - 30 * day }],
    ["not started", { starts_at: noon + day }]
  ] as const)("gives the slot back of a license that is %s, and of all but a revoked one", (_, license) => {
    const devices = [deviceOf(machine)]
    const { after, reply } = allowed(rowsOf({ license, devices }), deactivate, requestOf(machine))
    assert.strictEqual(after.license.active_device_count, 0)
    assert.strictEqual(reply.status, after.license.status)
    refusedWith("LICENSE_REVOKED", rowsOf({ license: { status: "revoked" }, devices }), deactivate, requestOf(machine))
  })

  it("tells an unknown device from one that has nothing to give back", () => {
    refusedWith("DEVICE_NOT_FOUND", rowsOf(), deactivate, requestOf(machine))
    for (const status of ["deactivated", "reset", "expired"] as const) {
      const { refused } = refusedWith(
        "DEVICE_STATE_CONFLICT",
        rowsOf({ devices: [deviceOf(machine, { status })] }),
        deactivate,
        requestOf(machine)
      )
      assert.strictEqual(refused.detail, status)
    }
    const seated = rowsOf({ devices: [deviceOf(machine, { holds_slot: false })] })
    const { refused } = refusedWith("DEVICE_STATE_CONFLICT", seated, deactivate, requestOf(machine))
    assert.match(refused.message, /has a floating seat and no activation: check the seat in instead\.$/)
    refusedWith(
      "DEVICE_BLACKLISTED",
      rowsOf({ devices: [deviceOf(machine, { status: "blacklisted" })] }),
      deactivate,
      requestOf(machine)
    )
  })

  it("asks neither for a version nor for the kind of machine", () => {
    const strict = { policy: { allow_vm: false, allow_container: false }, versions: { "1.0": noon } }
    for (const binding of [
      hardware("machine", { is_vm: true, app_version: "unheard-of" }),
      container("pod", { app_version: "unheard-of" })
    ]) {
      allowed(rowsOf({ ...strict, devices: [deviceOf(binding)] }), deactivate, requestOf(binding))
    }
  })
})
