import { assert, describe, it } from "@effect/vitest"
import { formatTimestamp } from "../../../src/contract/api/Timestamp.ts"
import { activate, check } from "../../../src/licensing/rules/Activation.ts"
import { issueOffline } from "../../../src/licensing/rules/Offline.ts"
import { sha256Hex } from "../../../src/platform/signing/Digest.ts"
import { allowed, refusedWith } from "../../support/rules/LicenseRules.ts"
import { container, day, deviceOf, hardware, noon, requestOf, rowsOf, second } from "../../support/rules/Licenses.ts"

const machine = hardware("machine")
const device = deviceOf(machine)

describe("offline", () => {
  it("answers what check answers, bound to the device and good for the policy's days", () => {
    const rows = rowsOf({ devices: [device], policy: { offline_grace_days: 3 } })
    const { reply, changes } = allowed(rows, issueOffline, requestOf(machine))
    const { kind, offline_expires_at, ...entitlement } = reply
    const { kind: _, ...checked } = allowed(rows, check, requestOf(machine)).reply
    assert.deepStrictEqual(entitlement, checked)
    const { binding_kind, binding_hash } = reply
    assert.strictEqual(kind, "offline")
    assert.strictEqual(offline_expires_at, formatTimestamp(noon + 3 * day))
    assert.strictEqual(binding_kind, "hardware")
    assert.strictEqual(binding_hash, sha256Hex("machine"))
    assert.deepStrictEqual(changes, {
      devices: [{ ...device, offline_expires_at: noon + 3 * day, due_at: noon + 3 * day + 30 * second }],
      events: [
        {
          event_type: "license.offline_issued",
          resource_type: "license",
          resource_id: "lic_1",
          metadata: { device_id: device.id, ...machine.redacted(), offline_expires_at, binding_kind }
        }
      ]
    })
  })

  it("binds a container by its digest", () => {
    const pod = container("pod")
    const { reply } = allowed(rowsOf({ devices: [deviceOf(pod)] }), issueOffline, requestOf(pod))
    assert.deepInclude(reply, { binding_kind: "container", binding_hash: sha256Hex(pod.key) })
  })

  it("is good for nothing beyond the end of access", () => {
    const rows = rowsOf({ devices: [device], license: { expires_at: noon + day }, policy: { grace_period_days: 2 } })
    const { reply } = allowed(rows, issueOffline, requestOf(machine))
    assert.strictEqual(reply.offline_expires_at, formatTimestamp(noon + 3 * day))
    const forever = rowsOf({ devices: [device], license: { expires_at: undefined } })
    assert.strictEqual(
      allowed(forever, issueOffline, requestOf(machine)).reply.offline_expires_at,
      formatTimestamp(noon + 7 * day)
    )
  })

  it("is refused where the policy says so, before any version is asked", () => {
    const gone = { ...machine, app_version: "unheard-of" }
    const policy = { allow_offline_activation: false }
    refusedWith("OFFLINE_NOT_ALLOWED", rowsOf({ policy, versions: { "1.0": noon } }), issueOffline, requestOf(gone))
    refusedWith("VERSION_UNKNOWN", rowsOf({ versions: { "1.0": noon } }), issueOffline, requestOf(gone))
  })

  it("activates a device that is not active if the request says so, by the limits of an activation", () => {
    const command = { ...requestOf(machine), activation: { newDeviceId: "dev_new" } }
    for (const devices of [
      [],
      [deviceOf(machine, { status: "deactivated" })],
      [deviceOf(machine, { holds_slot: false })]
    ]) {
      const rows = rowsOf({ devices, license: { term_days: 3, expires_at: undefined } })
      const { after, changes, reply } = allowed(rows, issueOffline, command)
      const activated = allowed(rows, activate, { ...requestOf(machine), newDeviceId: "dev_new" })
      const [kept] = after.devices
      assert.deepInclude(kept, { status: "active", holds_slot: true, offline_expires_at: noon + 3 * day })
      assert.deepStrictEqual(after.license, activated.after.license)
      assert.deepStrictEqual(
        changes.events?.map(({ event_type }) => event_type),
        [...(activated.changes.events ?? []).map(({ event_type }) => event_type), "license.offline_issued"]
      )
      assert.strictEqual(reply.offline_expires_at, formatTimestamp(noon + 3 * day))
    }
    const full = rowsOf({ devices: [deviceOf(hardware("other"))], policy: { max_activations: 1 } })
    const { changes } = refusedWith("ACTIVATION_LIMIT_REACHED", full, issueOffline, command)
    assert.deepStrictEqual(
      changes.events?.map(({ event_type }) => event_type),
      ["license.activation_limit_reached"]
    )
    const again = allowed(rowsOf({ devices: [device], policy: { max_activations: 1 } }), issueOffline, command)
    assert.strictEqual(again.after.license.times_activated, 0)
  })

  it("needs an activation that stands", () => {
    refusedWith("DEVICE_NOT_FOUND", rowsOf(), issueOffline, requestOf(machine))
    for (const status of ["deactivated", "reset", "expired"] as const) {
      const rows = rowsOf({ devices: [deviceOf(machine, { status })] })
      refusedWith("DEVICE_NOT_ACTIVE", rows, issueOffline, requestOf(machine))
    }
    const policy = { require_heartbeat: true }
    const silent = deviceOf(machine, { due_at: noon - 1 })
    refusedWith("DEVICE_NOT_ACTIVE", rowsOf({ policy, devices: [silent] }), issueOffline, requestOf(machine))
  })
})

describe("an offline envelope", () => {
  it("makes no due instant earlier", () => {
    const promised = { ...device, due_at: noon + 90 * day }
    const { changes } = allowed(rowsOf({ devices: [promised] }), issueOffline, requestOf(machine))
    assert.strictEqual(changes.devices?.[0]?.due_at, noon + 90 * day)
  })

  it("reads the number of containers only if it may activate", () => {
    const request = requestOf(machine)
    const binding = { kind: "hardware", key: "machine" }
    const needs = { binding, appVersion: undefined, activeContainers: false }
    assert.deepStrictEqual(issueOffline.needs?.(request), needs as never)
    const activation = { newDeviceId: "dev_new" }
    assert.isTrue(issueOffline.needs?.({ ...request, activation }).activeContainers)
  })
})
