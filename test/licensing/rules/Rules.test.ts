/** What must hold for every rule, whatever a license has been through: checked after each step of random sequences of commands. */

import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { expiredFeatures } from "../../../src/licensing/model/FeatureExpiry.ts"
import { dueAt } from "../../../src/licensing/model/Heartbeat.ts"
import type { Assignment, DeviceRecord } from "../../../src/licensing/model/LicenseRecords.ts"
import { limitsOf } from "../../../src/licensing/model/Limits.ts"
import {
  DeactivationPayload,
  EntitlementPayload,
  FloatingCheckoutPayload,
  FloatingLeasePayload,
  OfflineEntitlementPayload
} from "../../../src/licensing/model/Payloads.ts"
import { accessEndsAt, entitlementVersionAt, statusAt } from "../../../src/licensing/rules/Lifecycle.ts"
import { heartbeatDueAt } from "../../../src/vendor/policies/Policy.ts"
import { tokenMark } from "../../support/rules/CommandArbitraries.ts"
import { bindings } from "../../support/rules/LicenseArbitraries.ts"
import { eventTypes, withoutRecord } from "../../support/rules/LicenseRules.ts"
import { deviceOf, keyHash, leaseOf, type Rows, sensitive } from "../../support/rules/Licenses.ts"
import { afterEachStep } from "../../support/rules/Steps.ts"

const versionAt = ({ assignments, license, policy }: Rows, now: number) =>
  entitlementVersionAt(license, policy, expiredFeatures(assignments, now).length, now)

/** What an entitlement version stands for, of all that commands change. */
const entitling = ({ assignments, license, policy }: Rows) => ({
  licensee: policy.show_licensee ? license.customer_name : undefined,
  metadata: policy.show_metadata.map((name) => license.metadata[name]),
  status: license.status,
  expires_at: license.expires_at,
  maintenance_expires_at: license.maintenance_expires_at,
  assignments: assignments.map(({ total_consumptions: _, updated_at: __, ...assignment }: Assignment) => assignment)
})

/** What raises the version by itself, also where the payload stays what it was. */
const raising: ReadonlySet<string> = new Set([
  "license.renewed",
  "license.transferred",
  "license.policy_changed",
  "license.usage_reset"
])

/** The published version without changes by time. */
const countersOf = ({ license, policy }: Rows) => license.entitlement_counter + policy.entitlement_counter

const slots = ({ devices }: Rows, kind?: DeviceRecord["binding_kind"]) =>
  devices.filter(({ holds_slot, binding_kind }) => holds_slot && (kind ?? binding_kind) === binding_kind).length

const entitled = ["activate", "validate", "check", "consume"]
const floating = ["checkout", "heartbeat", "checkin"]

const sum = (numbers: ReadonlyArray<number>) => numbers.reduce((total, next) => total + next, 0)

describe("every rule", () => {
  it("lets the published entitlement version never fall", () => {
    afterEachStep(({ found, before, after, now }) => {
      assert.strictEqual(versionAt(before, now), versionAt(found, now))
      assert.isAtLeast(versionAt(after, now), versionAt(before, now))
    })
  })

  it("raises the entitlement version by one if and only if it changes the entitlement", () => {
    afterEachStep(({ before, after, changes }) => {
      const same =
        JSON.stringify(entitling(before)) === JSON.stringify(entitling(after)) &&
        !eventTypes(changes).some((type) => raising.has(type))
      assert.strictEqual(countersOf(after) - countersOf(before), same ? 0 : 1)
    })
  })

  it("changes only the record of the refusal when it refuses", () => {
    afterEachStep(({ before, after, refused }) => {
      if (refused === undefined) return
      assert.deepStrictEqual(withoutRecord(after), withoutRecord(before))
      assert.isNotEmpty(refused.message)
    })
  })

  it("records an event for every change that is one, and none for a mere look", () => {
    const silent = new Set(["validate", "check", "heartbeat"])
    afterEachStep(({ rule, changes, refused }) => {
      const { events = [], seen: _, ...rest } = changes
      if (refused !== undefined) return
      // An envelope that leaves the service changes nothing in it, and is worth recording all the same.
      const isChange = rule === "offline" || Object.keys(rest).length > 0
      const isRenewed = changes.events?.some(({ event_type }) => event_type === "lease.checked_out") ?? false
      const isSeenAgain = rule === "activate" && changes.license?.times_activated === undefined
      assert.strictEqual(
        eventTypes(changes).length > 0,
        (!silent.has(rule) || (rule === "heartbeat" && isRenewed)) && !isSeenAgain && isChange,
        `${rule}`
      )
      for (const event of events) assert.match(event.event_type, /^(license|usage|device|lease)\.[a-z_]+$/)
    })
  })

  it("makes no due instant earlier, by no command but the device's own, by no edit and no change of the policy", () => {
    afterEachStep(({ before, after, changes, now, rule }) => {
      const isOwn = rule === "activate" || rule === "validate"
      for (const device of after.devices) {
        const known = before.devices.find(({ id }) => id === device.id)
        if (known?.holds_slot !== true || !device.holds_slot) continue
        if (isOwn && (changes.devices?.includes(device) || changes.seen === device)) continue
        // Heartbeats that a move switches on count from the move.
        const isSwitchedOn = after.policy.require_heartbeat && !before.policy.require_heartbeat
        const promised = { ...before.policy, require_heartbeat: after.policy.require_heartbeat }
        const due = Math.max(
          dueAt(known, before.license, isSwitchedOn ? promised : before.policy),
          isSwitchedOn ? heartbeatDueAt(after.policy, now) : Number.NEGATIVE_INFINITY
        )
        assert.isAtLeast(dueAt(device, after.license, after.policy), due)
        const edited = { ...after.policy, validation_interval_minutes: 1 }
        assert.isAtLeast(dueAt(device, after.license, edited), due)
      }
    })
  })

  it("keeps the count of active devices correct and within the limits", () => {
    afterEachStep(({ before, after }) => {
      assert.strictEqual(after.license.active_device_count, slots(after))
      for (const { status, holds_slot } of after.devices) if (holds_slot) assert.strictEqual(status, "active")
      const { max_activations, max_container_instances } = limitsOf(after.license, after.policy)
      const apart = max_container_instances !== undefined
      const within = (limit: number, kind?: DeviceRecord["binding_kind"]) => {
        if (limit > 0) assert.isAtMost(slots(after, kind), Math.max(limit, slots(before, kind)))
      }
      within(max_activations, apart ? "hardware" : undefined)
      if (apart) within(max_container_instances, "container")
    })
  })

  it("keeps lifetime counters rising, and usage equal to the ledger", () => {
    afterEachStep(({ before, after, changes }) => {
      const ledger = changes.ledger ?? []
      const consumed = sum(ledger.map(({ action, amount }) => (action === "consume" ? amount : 0)))
      assert.strictEqual(after.license.total_consumptions - before.license.total_consumptions, consumed)
      assert.isAtLeast(after.license.times_activated, before.license.times_activated)
      assert.isAtLeast(after.license.times_transferred, before.license.times_transferred)
      assert.strictEqual(after.ledger.length - before.ledger.length, ledger.length)
      for (const is of after.assignments) {
        const rows = ledger.filter(({ feature_id }) => feature_id === is.feature_id)
        const was = before.assignments.find(({ feature_id }) => feature_id === is.feature_id)
        let balance = was?.total_consumptions ?? 0
        for (const { action, amount, balance_after } of rows) {
          if (action === "consume" || action === "reset") balance += amount
          assert.strictEqual(balance_after, balance)
        }
        assert.strictEqual(is.total_consumptions, balance)
        if (rows.length > 0) assert.strictEqual(rows.at(-1)?.max_after, is.max_consumptions)
      }
      const ids = after.ledger.flatMap(({ event_id = [] }) => event_id)
      assert.strictEqual(new Set(ids).size, ids.length)
    })
  })

  it("has no way back from revoked", () => {
    afterEachStep(({ before, after, changes, refused, rule }) => {
      if (before.license.status !== "revoked") return
      assert.deepStrictEqual(after, before)
      assert.isTrue(refused !== undefined || rule === "revoke")
      assert.isEmpty(changes.events ?? [])
    })
  })

  it("serves active licenses and those in grace alone, but for giving a slot or a borrowed seat back", () => {
    const runtime = new Set([...entitled, "offline", ...floating])
    afterEachStep(({ before, changes, now, rule, refused }) => {
      if (!runtime.has(rule) || refused !== undefined) return
      if (rule === "checkin" && changes.leases?.some(({ borrowed_until = now }) => now < borrowed_until)) return
      assert.include(["active", "grace_period"], statusAt(before.license, before.policy, now))
      assert.isAtMost(before.license.starts_at ?? now, now)
    })
  })

  it("shows nothing in events and refusals that names a machine or opens a license", () => {
    const secrets = [
      keyHash,
      ...bindings.flatMap((binding) => [...sensitive(binding), binding.key]),
      ...bindings.map((binding) => leaseOf(deviceOf(binding)).token_hash),
      tokenMark
    ]
    const types = new Set<string>()
    afterEachStep(({ found, after, refused }) => {
      const events = after.events.slice(found.events.length)
      for (const { event_type } of events) types.add(event_type)
      const text = JSON.stringify([
        events,
        after.ledger.slice(found.ledger.length),
        refused?.message ?? "",
        refused?.detail ?? ""
      ])
      assert.isEmpty(secrets.filter((secret) => text.includes(secret)))
    }, 400)
    assert.includeMembers(Array.from(types), [
      "license.activated",
      "license.deactivated",
      "device.expired",
      "lease.checked_out",
      "lease.checked_in",
      "lease.expired",
      "license.offline_issued",
      "license.feature_expired"
    ])
  })

  it("answers runtime operations with payloads that their schemas read", () => {
    const payloads = new Map<string, Schema.Codec<{ entitlement_version: number; issued_at: number }, unknown>>([
      ...entitled.map((rule) => [rule, EntitlementPayload] as const),
      ["deactivate", DeactivationPayload],
      ["offline", OfflineEntitlementPayload],
      ["checkout", FloatingCheckoutPayload],
      ["heartbeat", FloatingLeasePayload],
      ["checkin", FloatingLeasePayload]
    ])
    const met = new Set<string>()
    afterEachStep(({ rule, reply, after, now }) => {
      const payload = payloads.get(rule)
      if (reply === undefined || payload === undefined) return
      met.add(rule)
      const decoded = Schema.decodeUnknownSync(payload, { onExcessProperty: "error" })(reply)
      assert.strictEqual(decoded.entitlement_version, versionAt(after, now))
      assert.strictEqual(decoded.issued_at, now)
    }, 400)
    assert.sameMembers(Array.from(met), Array.from(payloads.keys()))
  })

  it("keeps floating seats within the limit, one for each device, and not after the end of access", () => {
    afterEachStep(({ before, after, now }) => {
      const live = ({ leases }: Rows) => leases.filter(({ status }) => status === "live")
      assert.isAtMost(
        live(after).length,
        Math.max(limitsOf(after.license, after.policy).max_floating_users ?? 0, live(before).length)
      )
      assert.strictEqual(new Set(live(after).map(({ device_id }) => device_id)).size, live(after).length)
      for (const { expires_at } of live(after)) assert.isAbove(expires_at, now)
      for (const lease of after.leases) {
        if (before.leases.some(({ id }) => id === lease.id)) continue
        const kept = before.leases.find(({ device_id, status }) => device_id === lease.device_id && status === "live")
        const accessEnds = accessEndsAt(after.license, after.policy) ?? Number.POSITIVE_INFINITY
        assert.isAtMost(lease.expires_at, Math.max(accessEnds, kept?.borrowed_until ?? 0))
      }
    })
  })

  it("keeps exactly the devices with a slot or a seat active", () => {
    afterEachStep(({ after }) => {
      for (const { id, status, holds_slot } of after.devices) {
        const lease = after.leases.find((lease) => lease.device_id === id && lease.status === "live")
        const isKept = lease?.borrowed_until !== undefined && (status === "reset" || status === "blacklisted")
        assert.strictEqual(status === "active", holds_slot || (lease !== undefined && !isKept), `${id} is ${status}`)
      }
    })
  })

  it("lets a lease end once and for all, unless a heartbeat renews a lapsed one", () => {
    afterEachStep(({ found, after, changes, rule }) => {
      for (const was of found.leases) {
        const is = after.leases.find(({ id }) => id === was.id)
        const isRenewed = changes.leases?.some(({ id, status }) => id === was.id && status === "live") ?? false
        if (was.status === "expired" && rule === "heartbeat" && isRenewed) {
          assert.deepInclude(is, { status: "live", ended_at: undefined, token_hash: was.token_hash })
          assert.deepInclude(changes.events?.[0]?.metadata, { renewed: true })
        } else if (was.status !== "live") assert.deepStrictEqual(is, was)
        else if (is?.status !== "live") assert.isDefined(is?.ended_at)
      }
    })
  })
})
