import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import type { DeviceRecord } from "../../../src/licensing/model/LicenseRecords.ts"
import { activate, check, deactivate, validate } from "../../../src/licensing/rules/Activation.ts"
import { rows as anyRows, bindings } from "../../support/rules/LicenseArbitraries.ts"
import { allowed, eventTypes, perform, refusedWith, settled } from "../../support/rules/LicenseRules.ts"
import {
  activationOf,
  day,
  deviceOf,
  dueAfter,
  hardware,
  leaseOf,
  minute,
  noon,
  requestOf,
  rowsOf,
  second
} from "../../support/rules/Licenses.ts"

const machine = hardware("machine")
const other = hardware("other machine")

describe("validate and check", () => {
  const device = deviceOf(machine, { last_seen_at: noon - minute, last_validated_at: noon - minute })

  it("validate moves when the device was seen and validated, and records no event", () => {
    const { changes } = allowed(rowsOf({ devices: [device] }), validate, requestOf(machine))
    assert.deepStrictEqual(changes, {
      seen: { ...device, last_seen_at: noon, last_validated_at: noon, due_at: dueAfter(noon) }
    })
  })

  it("validate raises the revision where heartbeats decide", () => {
    const { changes } = allowed(
      rowsOf({ policy: { require_heartbeat: true }, devices: [device] }),
      validate,
      requestOf(machine)
    )
    assert.deepStrictEqual(changes, {
      devices: [{ ...device, last_seen_at: noon, last_validated_at: noon, due_at: dueAfter(noon) }]
    })
  })

  it("validate writes at most once a second", () => {
    const rows = rowsOf({ devices: [device] })
    const lastValidated = device.last_validated_at ?? 0
    assert.deepStrictEqual(allowed(rows, validate, requestOf(machine), lastValidated + 999).changes, {})
    assert.property(allowed(rows, validate, requestOf(machine), lastValidated + second).changes, "seen")
  })

  it("check asks for the next one a third of the interval before the heartbeat is due, validate after two thirds", () => {
    const policy = { require_heartbeat: true, validation_interval_minutes: 60 }
    const next = (rule: typeof check, given: Partial<DeviceRecord>) => {
      const held = deviceOf(machine, given)
      const rows = rowsOf({ policy, devices: [held], leases: [leaseOf(held)] })
      return Date.parse(allowed(rows, rule, requestOf(machine)).reply.next_check_at) - noon
    }
    for (const [due, expected] of [
      [61, 40],
      [50, 30],
      [20, 0],
      [19, 0]
    ] as const) {
      const promised = { due_at: noon + due * minute }
      assert.strictEqual(next(check, promised), expected * minute)
      assert.strictEqual(next(validate as typeof check, promised), 40 * minute)
      // No heartbeat of a device with only a seat is due.
      assert.strictEqual(next(check, { ...promised, holds_slot: false }), 40 * minute)
    }
  })

  it("check answers what validate answers and writes nothing", () => {
    fc.assert(
      fc.property(anyRows, fc.constantFrom(...bindings), (rows, binding) => {
        const checked = perform(rows, check, requestOf(binding), noon)
        const validated = perform(rows, validate, requestOf(binding), noon)
        assert.deepStrictEqual(checked.changes, checked.refused === undefined ? {} : { events: [] })
        // Only a validation promises the device a whole interval.
        const { next_check_at = "" } = validated.reply ?? {}
        assert.isTrue((checked.reply?.next_check_at ?? "") <= next_check_at)
        assert.deepStrictEqual(checked.reply && { ...checked.reply, next_check_at }, validated.reply)
        const code = validated.refused?.code
        assert.strictEqual(checked.refused?.code, code === "HEARTBEAT_OVERDUE" ? "DEVICE_NOT_ACTIVE" : code)
      }),
      { numRuns: 300 }
    )
  })
})

describe("heartbeats", () => {
  const policy = { require_heartbeat: true, validation_interval_minutes: 10 }
  const due = noon + 10 * minute + 30 * second
  const activated = deviceOf(machine, { activated_at: noon, due_at: due })

  it("may come until the interval and 30 seconds have passed since the activation", () => {
    const rows = rowsOf({ policy, devices: [activated] })
    allowed(rows, validate, requestOf(machine), due)
    refusedWith("HEARTBEAT_OVERDUE", rows, validate, requestOf(machine), due + 1)
  })

  it("count from the last validation once there was one", () => {
    const { after } = allowed(rowsOf({ policy, devices: [activated] }), validate, requestOf(machine), noon + 5 * minute)
    allowed(after, validate, requestOf(machine), due + 5 * minute)
    refusedWith("HEARTBEAT_OVERDUE", after, validate, requestOf(machine), due + 5 * minute + 1)
  })

  it("count from a new activation, not from a validation before it", () => {
    const before = deviceOf(machine, { status: "expired", activated_at: noon - 2 * day, last_validated_at: noon - day })
    const { after } = allowed(rowsOf({ policy, devices: [before] }), activate, activationOf(machine))
    allowed(after, validate, requestOf(machine), due)
    refusedWith("HEARTBEAT_OVERDUE", after, validate, requestOf(machine), due + 1)
  })

  it("that fail to come give the slot back, until the device is activated again", () => {
    const rows = rowsOf({ policy: { ...policy, max_activations: 1 }, devices: [activated] })
    const lapsed = settled(rows, due + 1)
    assert.strictEqual(lapsed.license.active_device_count, 0)
    refusedWith("HEARTBEAT_OVERDUE", lapsed, validate, requestOf(machine), due + day)
    refusedWith("DEVICE_NOT_ACTIVE", lapsed, check, requestOf(machine), due + day)
    refusedWith("DEVICE_STATE_CONFLICT", lapsed, deactivate, requestOf(machine), due + day)
    const { after } = allowed(rows, activate, activationOf(machine), due + 1)
    assert.strictEqual(after.license.times_activated, 1)
    assert.deepStrictEqual(eventTypes(after), ["device.expired", "license.activated"])
    allowed(after, validate, requestOf(machine), due + 1)
    allowed(lapsed, activate, activationOf(other), due + 1)
  })

  it("are not missed where the policy does not ask for them", () => {
    const rows = rowsOf({
      policy: { ...policy, require_heartbeat: false },
      license: { expires_at: undefined },
      devices: [activated]
    })
    allowed(rows, validate, requestOf(machine), noon + 1000 * day)
    const lapsed = rowsOf({ devices: [deviceOf(machine, { status: "expired" })] })
    refusedWith("DEVICE_NOT_ACTIVE", lapsed, validate, requestOf(machine))
  })

  it("are not asked of a seat holder", () => {
    const rows = rowsOf({ policy, devices: [deviceOf(machine, { activated_at: noon - day, holds_slot: false })] })
    assert.deepStrictEqual(settled(rows, noon), rows)
  })
})

describe("a device that is seen again", () => {
  const device = deviceOf(machine, {
    last_seen_at: noon - 500,
    last_validated_at: noon - 500,
    due_at: dueAfter(noon - 500)
  })
  const seen = (rows: Parameters<typeof rowsOf>[0], binding = machine) =>
    allowed(rowsOf({ devices: [device], ...rows }), validate, requestOf(binding)).changes

  it("is not written within a second, unless its due instant moves by a second", () => {
    assert.deepStrictEqual(seen({}), {})
    for (const due_at of [dueAfter(noon) - second, dueAfter(noon) + second])
      assert.strictEqual(seen({ devices: [{ ...device, due_at }] }).seen?.due_at, dueAfter(noon))
    assert.deepStrictEqual(seen({ devices: [{ ...device, due_at: dueAfter(noon) - 999 }] }), {})
  })

  it("is written after a second, also if its offline envelope keeps its due instant", () => {
    const offline_expires_at = noon + 90 * day
    const promised = { ...device, offline_expires_at, due_at: offline_expires_at + 30 * second }
    const seenAfter = (millis: number) => seen({ devices: [{ ...promised, last_validated_at: noon - millis }] }).seen
    assert.isUndefined(seenAfter(999))
    assert.deepInclude(seenAfter(1000), { last_validated_at: noon, due_at: promised.due_at })
  })

  it("is written at once with new names, which keep those that the request does not send", () => {
    const named = { ...device, os: "linux" }
    const { hostname: _, ...nameless } = machine
    const renamed = { ...nameless, hostname: "new host" }
    const { devices } = seen({ devices: [named] }, renamed)
    assert.deepInclude(devices?.[0], { hostname: "new host", os: "linux", updated_at: noon, last_seen_at: noon })
    assert.deepStrictEqual(seen({ devices: [named] }, nameless), {})
  })

  it("lowers the license's bound of due instants if it is due earlier", () => {
    const license = { heartbeat_from: dueAfter(noon) + 1 }
    const early = { ...device, due_at: dueAfter(noon) + 2 * second }
    const { devices, license: changed } = seen({ license, devices: [early] })
    assert.deepStrictEqual(changed, { heartbeat_from: dueAfter(noon) })
    assert.strictEqual(devices?.[0]?.due_at, dueAfter(noon))
    assert.notProperty(seen({ license: { heartbeat_from: dueAfter(noon) }, devices: [early] }), "license")
  })

  it("has missed a heartbeat only if its activation lapsed", () => {
    const ended = deviceOf(machine, { status: "deactivated" })
    const rows = rowsOf({ policy: { require_heartbeat: true }, devices: [ended] })
    refusedWith("DEVICE_NOT_ACTIVE", rows, validate, requestOf(machine))
  })
})
