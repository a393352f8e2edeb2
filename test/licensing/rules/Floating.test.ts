import { assert, describe, it } from "@effect/vitest"
import { parseTimestamp } from "../../../src/contract/api/Timestamp.ts"
import { blacklist, reset, unblacklist } from "../../../src/licensing/changes/DeviceActions.ts"
import { activate, check, deactivate, validate } from "../../../src/licensing/rules/Activation.ts"
import { consume } from "../../../src/licensing/rules/Consumption.ts"
import { type CheckoutCommand, checkin, checkout, heartbeat } from "../../../src/licensing/rules/Floating.ts"
import { revoke, suspend } from "../../../src/licensing/rules/Lifecycle.ts"
import { issueOffline } from "../../../src/licensing/rules/Offline.ts"
import { sha256Hex } from "../../../src/platform/signing/Digest.ts"
import { allowed, eventTypes, refusedWith, settled } from "../../support/rules/LicenseRules.ts"
import {
  activationOf,
  assignmentOf,
  day,
  deviceOf,
  hardware,
  keyHash,
  leaseOf,
  minute,
  noon,
  type Rows,
  requestOf,
  rowsOf
} from "../../support/rules/Licenses.ts"

const machine = hardware("machine")
const other = hardware("other machine")

const checkoutOf = (binding: typeof machine, token: string): CheckoutCommand => ({
  ...requestOf(binding),
  newDeviceId: deviceOf(binding).id,
  newLeaseId: `lse_${token}`,
  leaseToken: `lease_${token}`,
  tokenHash: sha256Hex(`lease_${token}`)
})

const leaseCommand = (token: string) => ({ keyHash, tokenHash: sha256Hex(`lease_${token}`) })

/** One seat, taken by the machine at noon under the token "1". */
const one = rowsOf({ policy: { max_floating_users: 1 } })
const taken = allowed(one, checkout, checkoutOf(machine, "1")).after
const end = noon + 30 * minute

const leaseStates = ({ leases }: Rows) => Object.fromEntries(leases.map(({ id, status }) => [id, status]))

describe("checkout", () => {
  it("gives a seat to a machine that was never activated, as a device without a slot", () => {
    const { reply, after, changes } = allowed(one, checkout, checkoutOf(machine, "1"))
    assert.strictEqual(reply.lease_token, "lease_1")
    assert.strictEqual(parseTimestamp(reply.lease_expires_at), end)
    assert.strictEqual(reply.device_id, deviceOf(machine).id)
    const [device] = after.devices
    assert.deepInclude(device, { status: "active", holds_slot: false, activated_at: undefined, last_seen_at: noon })
    assert.strictEqual(after.license.active_device_count, 0)
    assert.strictEqual(after.license.times_activated, 0)
    assert.strictEqual(after.license.entitlement_counter, one.license.entitlement_counter)
    assert.notInclude(JSON.stringify(changes), '"lease_1"')
    assert.deepStrictEqual(changes.events, [
      {
        event_type: "lease.checked_out",
        resource_type: "lease",
        resource_id: "lse_1",
        metadata: {
          license_id: "lic_1",
          device_id: deviceOf(machine).id,
          binding_kind: "hardware",
          ...machine.redacted()
        }
      }
    ])
  })

  it("takes every seat once, and says how many there are when they are taken", () => {
    const { refused } = refusedWith("FLOATING_LIMIT_REACHED", taken, checkout, checkoutOf(other, "2"))
    assert.strictEqual(refused.detail, "1")
    const two = { ...taken, policy: { ...taken.policy, max_floating_users: 2 } }
    allowed(two, checkout, checkoutOf(other, "2"))
  })

  it("has a seat again as soon as a lease has lapsed, whether or not a sweep came by", () => {
    refusedWith("FLOATING_LIMIT_REACHED", taken, checkout, checkoutOf(other, "2"), end - 1)
    const { after } = allowed(taken, checkout, checkoutOf(other, "2"), end)
    assert.deepStrictEqual(leaseStates(after), { lse_1: "expired", lse_2: "live" })
    assert.deepStrictEqual(eventTypes(after), ["lease.checked_out", "lease.expired", "lease.checked_out"])
  })

  it("gives the same machine its seat back under a new token, also where all are taken, and ends the token before", () => {
    const { after, changes } = allowed(taken, checkout, checkoutOf(machine, "2"), noon + minute)
    assert.deepStrictEqual(leaseStates(after), { lse_1: "superseded", lse_2: "live" })
    assert.strictEqual(changes.events?.[0]?.metadata["superseded"], "lse_1")
    refusedWith("LEASE_NOT_ACTIVE", after, heartbeat, leaseCommand("1"), noon + minute)
    refusedWith("LEASE_NOT_ACTIVE", after, checkin, leaseCommand("1"), noon + minute)
    allowed(after, heartbeat, leaseCommand("2"), noon + minute)
    const lowered = { ...taken, policy: { ...taken.policy, max_floating_users: 1 } }
    allowed(lowered, checkout, checkoutOf(machine, "2"))
  })

  it("is off where the policy has no seats, before any version is asked", () => {
    const gone = { ...machine, app_version: "unheard-of" }
    for (const max_floating_users of [undefined, 0]) {
      const rows = rowsOf({ policy: { max_floating_users }, versions: { "1.0": noon } })
      refusedWith("FLOATING_NOT_ENABLED", rows, checkout, checkoutOf(gone, "1"))
    }
    refusedWith("VERSION_UNKNOWN", rowsOf({ versions: { "1.0": noon } }), checkout, checkoutOf(gone, "1"))
  })

  it("lends nothing beyond the end of access", () => {
    const rows = rowsOf({ license: { expires_at: noon - day + 5 * minute }, policy: { grace_period_days: 1 } })
    const { reply, after } = allowed(rows, checkout, checkoutOf(machine, "1"))
    assert.strictEqual(parseTimestamp(reply.lease_expires_at), noon + 5 * minute)
    const { reply: beat } = allowed(after, heartbeat, leaseCommand("1"), noon + 4 * minute)
    assert.strictEqual(parseTimestamp(beat.lease_expires_at), noon + 5 * minute)
  })

  it("does not change an activation, and takes no slot", () => {
    const device = deviceOf(machine)
    const { after } = allowed(rowsOf({ devices: [device] }), checkout, checkoutOf(machine, "1"))
    assert.deepInclude(after.devices[0], { status: "active", holds_slot: true, activated_at: device.activated_at })
    const back = allowed(after, checkin, leaseCommand("1")).after
    assert.deepInclude(back.devices[0], { status: "active", holds_slot: true })
    assert.strictEqual(back.license.active_device_count, 1)
  })
})

describe("a seat", () => {
  const entitled = rowsOf({ policy: { max_activations: 1 }, assignments: [assignmentOf("api")] })
  const seated = allowed(entitled, checkout, checkoutOf(machine, "1")).after

  it("replaces an activation in validate, check and consume, but not in offline, while its lease is live", () => {
    const consumption = { ...requestOf(machine), feature_code: "api", event_id: "event", amount: 1 }
    for (const at of [noon, end - 1]) {
      assert.strictEqual(allowed(seated, validate, requestOf(machine), at).reply.device_id, deviceOf(machine).id)
      allowed(seated, check, requestOf(machine), at)
      allowed(seated, consume, consumption, at)
      refusedWith("DEVICE_NOT_ACTIVE", seated, issueOffline, requestOf(machine), at)
    }
    for (const rule of [validate, check]) refusedWith("DEVICE_NOT_ACTIVE", seated, rule, requestOf(machine), end)
    refusedWith("DEVICE_NOT_ACTIVE", seated, issueOffline, requestOf(machine), end)
    refusedWith("DEVICE_NOT_ACTIVE", seated, consume, consumption, end)
  })

  it("can be joined by an activation, which takes a slot, and outlives its deactivation", () => {
    const { after } = allowed(seated, activate, activationOf(machine))
    assert.strictEqual(after.license.active_device_count, 1)
    assert.strictEqual(after.license.times_activated, 1)
    refusedWith("ACTIVATION_LIMIT_REACHED", after, activate, activationOf(other))
    const returned = allowed(after, deactivate, requestOf(machine)).after
    assert.deepInclude(returned.devices[0], { status: "active", holds_slot: false })
    allowed(returned, validate, requestOf(machine))
    assert.strictEqual(returned.license.active_device_count, 0)
    refusedWith("DEVICE_STATE_CONFLICT", returned, deactivate, requestOf(machine))
    assert.strictEqual(allowed(returned, checkin, leaseCommand("1")).after.devices[0]?.status, "deactivated")
  })

  it("needs no heartbeat of an activation, and does not end as overdue", () => {
    const strict = rowsOf({ policy: { require_heartbeat: true, validation_interval_minutes: 1 } })
    const held = allowed(strict, checkout, checkoutOf(machine, "1")).after
    allowed(held, validate, requestOf(machine), end - 1)
    refusedWith("DEVICE_NOT_ACTIVE", held, validate, requestOf(machine), end)
    const silent = allowed(strict, activate, activationOf(machine)).after
    const rescued = allowed(silent, checkout, checkoutOf(machine, "1"), noon + 10 * minute).after
    allowed(rescued, validate, requestOf(machine), noon + 11 * minute)
    refusedWith("HEARTBEAT_OVERDUE", rescued, validate, requestOf(machine), noon + 40 * minute)
    const reactivated = deviceOf(machine, { status: "reset" })
    const fresh = allowed({ ...strict, devices: [reactivated] }, checkout, checkoutOf(machine, "1")).after
    refusedWith("DEVICE_NOT_ACTIVE", fresh, validate, requestOf(machine), end)
  })

  const endings = [
    ["suspended", suspend, undefined, "LICENSE_SUSPENDED", "ended", "deactivated"],
    ["revoked", revoke, undefined, "LICENSE_REVOKED", "ended", "deactivated"],
    ["reset", reset, { device_id: deviceOf(machine).id }, "LEASE_NOT_ACTIVE", "ended", "reset"],
    ["blacklisted", blacklist, { device_id: deviceOf(machine).id }, "DEVICE_BLACKLISTED", "blacklisted", "blacklisted"]
  ] as const
  it.each(endings)("ends at once when its license or device is %s", (_, rule, command, code, lease, device) => {
    const { after } = allowed(seated, rule as typeof suspend, command)
    assert.deepStrictEqual(leaseStates(after), { lse_1: lease })
    assert.strictEqual(after.devices[0]?.status, device)
    refusedWith(code, after, heartbeat, leaseCommand("1"))
    assert.deepStrictEqual(eventTypes(after).slice(0, -1), ["lease.checked_out"])
  })
})

describe("heartbeat", () => {
  it("moves the end to a full term from now and tells what the license entitles to", () => {
    const { reply, after, changes } = allowed(taken, heartbeat, leaseCommand("1"), noon + 20 * minute)
    assert.strictEqual(parseTimestamp(reply.lease_expires_at), noon + 50 * minute)
    assert.deepStrictEqual(reply.features, [])
    assert.notProperty(reply, "lease_token")
    assert.isUndefined(changes.events)
    assert.deepInclude(after.leases[0], { status: "live", heartbeat_at: noon + 20 * minute, checked_out_at: noon })
    assert.strictEqual(after.devices[0]?.last_seen_at, noon + 20 * minute)
    allowed(after, heartbeat, leaseCommand("1"), noon + 50 * minute - 1)
  })

  it("takes a free seat again for a lease that lapsed within the last 24 hours", () => {
    for (const [rows, now] of [
      [taken, end],
      [settled(taken, end), end + day - 1]
    ] as const) {
      const { after, changes, reply } = allowed(rows, heartbeat, leaseCommand("1"), now)
      assert.deepInclude(reply, { renewed: true, features: [] })
      assert.strictEqual(parseTimestamp(reply.lease_expires_at), now + 30 * minute)
      assert.deepInclude(after.leases[0], { status: "live", ended_at: undefined, checked_out_at: noon })
      assert.deepInclude(after.devices[0], { status: "active", holds_slot: false, last_seen_at: now })
      assert.deepStrictEqual(changes.events, [
        {
          event_type: "lease.checked_out",
          resource_type: "lease",
          resource_id: "lse_1",
          metadata: {
            license_id: "lic_1",
            device_id: deviceOf(machine).id,
            binding_kind: "hardware",
            renewed: true
          }
        }
      ])
      refusedWith("FLOATING_LIMIT_REACHED", after, checkout, checkoutOf(other, "2"), now)
      assert.notProperty(allowed(after, heartbeat, leaseCommand("1"), now + 1).reply, "renewed")
    }
  })

  it("comes too late after 24 hours, and where another client has taken the seat", () => {
    refusedWith("LEASE_EXPIRED", settled(taken, end), heartbeat, leaseCommand("1"), end + day)
    const given = allowed(taken, checkout, checkoutOf(other, "2"), end).after
    refusedWith("LEASE_EXPIRED", given, heartbeat, leaseCommand("1"), end + minute)
    const off = { ...taken, policy: { ...taken.policy, max_floating_users: 0 } }
    refusedWith("LEASE_EXPIRED", off, heartbeat, leaseCommand("1"), end)
  })

  it("does not bring back a lease whose device was reset, or has checked out again", () => {
    const wide = { ...taken, policy: { ...taken.policy, max_floating_users: 9 } }
    const wasReset = allowed(settled(wide, end), reset, { device_id: deviceOf(machine).id }, end).after
    refusedWith("LEASE_EXPIRED", wasReset, heartbeat, leaseCommand("1"), end + minute)
    const again = allowed(wide, checkout, checkoutOf(machine, "2"), end).after
    refusedWith("LEASE_EXPIRED", again, heartbeat, leaseCommand("1"), end + minute)
    allowed(again, heartbeat, leaseCommand("2"), end + minute)
  })

  it("knows a token that was never given out from one of another license's key", () => {
    refusedWith("LEASE_NOT_FOUND", taken, heartbeat, leaseCommand("unheard-of"))
    refusedWith("LICENSE_KEY_INVALID", taken, heartbeat, { ...leaseCommand("1"), keyHash: "0".repeat(64) })
  })

  it("is barred by a blacklisting, also of a lease that had lapsed before, and goes on being told why the lease ended", () => {
    const device = { device_id: deviceOf(machine).id }
    const barred = allowed(taken, blacklist, device).after
    refusedWith("DEVICE_BLACKLISTED", barred, checkin, leaseCommand("1"))
    const lifted = allowed(barred, unblacklist, device).after
    refusedWith("DEVICE_BLACKLISTED", lifted, heartbeat, leaseCommand("1"))
    refusedWith("LEASE_NOT_ACTIVE", lifted, checkin, leaseCommand("1"))
    allowed(lifted, checkout, checkoutOf(machine, "2"))
    const late = allowed(taken, blacklist, device, end).after
    refusedWith("DEVICE_BLACKLISTED", late, heartbeat, leaseCommand("1"), end)
  })

  it("asks neither version nor seats: whoever holds a seat keeps it", () => {
    const changed = { ...taken, policy: { ...taken.policy, max_floating_users: 0 }, versions: { "1.0": noon } }
    allowed(changed, heartbeat, leaseCommand("1"))
    allowed(changed, checkin, leaseCommand("1"))
  })
})

describe("checkin", () => {
  it("frees the seat at once, and its answer is no proof of a seat", () => {
    const { reply, after, changes } = allowed(taken, checkin, leaseCommand("1"), noon + minute)
    assert.strictEqual(parseTimestamp(reply.lease_expires_at), noon + minute)
    assert.deepInclude(after.leases[0], { status: "checked_in", ended_at: noon + minute })
    assert.strictEqual(after.devices[0]?.status, "deactivated")
    assert.deepStrictEqual(changes.events?.[0], {
      event_type: "lease.checked_in",
      resource_type: "lease",
      resource_id: "lse_1",
      metadata: { license_id: "lic_1", device_id: deviceOf(machine).id }
    })
    allowed(after, checkout, checkoutOf(other, "2"), noon + minute)
  })

  it("is refused once the lease has ended, however it did", () => {
    const returned = allowed(taken, checkin, leaseCommand("1")).after
    assert.strictEqual(
      refusedWith("LEASE_NOT_ACTIVE", returned, checkin, leaseCommand("1")).refused.detail,
      "checked_in"
    )
    assert.strictEqual(
      refusedWith("LEASE_NOT_ACTIVE", taken, checkin, leaseCommand("1"), end).refused.detail,
      "expired"
    )
    refusedWith("LEASE_NOT_FOUND", taken, checkin, leaseCommand("unheard-of"))
    const lapsed = leaseOf(deviceOf(machine), { status: "expired" })
    const rows = rowsOf({ devices: [deviceOf(machine, { status: "expired" })], leases: [lapsed] })
    refusedWith("LEASE_NOT_ACTIVE", rows, checkin, { keyHash, tokenHash: lapsed.token_hash })
  })
})
