import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import type { Code } from "../../../src/contract/api/ErrorCode.ts"
import type { Binding } from "../../../src/licensing/model/Binding.ts"
import { activate, check, deactivate, validate } from "../../../src/licensing/rules/Activation.ts"
import { consume } from "../../../src/licensing/rules/Consumption.ts"
import { checkin, checkout, heartbeat } from "../../../src/licensing/rules/Floating.ts"
import type { Rule } from "../../../src/licensing/rules/LicenseCommand.ts"
import { issueOffline } from "../../../src/licensing/rules/Offline.ts"
import {
  activations,
  checkouts,
  consumptions,
  leaseCommands,
  requests
} from "../../support/rules/CommandArbitraries.ts"
import { rows as anyRows, bindings } from "../../support/rules/LicenseArbitraries.ts"
import { allowed, applied, perform, refusedWith, viewOf } from "../../support/rules/LicenseRules.ts"
import {
  activationOf,
  assignmentOf,
  container,
  day,
  deviceOf,
  hardware,
  keyHash,
  leaseOf,
  noon,
  productCode,
  type Rows,
  requestOf,
  rowsOf
} from "../../support/rules/Licenses.ts"
import { failingChecks, refusalOrders } from "../../support/rules/RefusalOrder.ts"
import type { RefusalCheck } from "../../support/rules/UsageRefusals.ts"

const climbs = <Command, Reply, C extends Code>(
  rule: Rule<Command, Reply, C>,
  ladder: ReadonlyArray<RefusalCheck<Command>>,
  commands: fc.Arbitrary<Command>
) => {
  describe(rule.name, () => {
    it("answers with the first rung that fails", () => {
      fc.assert(
        fc.property(anyRows, commands, (rows, command) => {
          assert.strictEqual(
            perform(rows, rule, command, noon).refused?.code,
            failingChecks(ladder, rows, command, noon)[0]
          )
        }),
        { numRuns: 1000 }
      )
    })

    it("is refused at every rung, and accepted, by the licenses and requests of this test", () => {
      const samples = fc.sample(fc.tuple(anyRows, commands), { numRuns: 2000, seed: 11 })
      const first = Map.groupBy(samples, ([rows, command]) => failingChecks(ladder, rows, command, noon)[0])
      for (const [code] of ladder) assert.isTrue(first.has(code), `${rule.name} never met ${code}`)
      assert.isAtLeast(first.get(undefined)?.length ?? 0, 150)
      const several = samples.filter(([rows, command]) => failingChecks(ladder, rows, command, noon).length > 1)
      assert.isAtLeast(several.length, 150)
    })
  })
}

describe("the ladder of refusals", () => {
  climbs(activate, refusalOrders.activate, activations)
  climbs(validate, refusalOrders.validate, requests)
  climbs(check, refusalOrders.check, requests)
  climbs(consume, refusalOrders.consume, consumptions)
  climbs(deactivate, refusalOrders.deactivate, requests)
  climbs(issueOffline, refusalOrders.offline, requests)
  climbs(checkout, refusalOrders.checkout, checkouts(requests))
  climbs(heartbeat, refusalOrders.heartbeat, leaseCommands(bindings))
  climbs(checkin, refusalOrders.checkin, leaseCommands(bindings))

  it.each([
    ["subscription", "renew it"],
    ["time_limited", "renew it"],
    ["trial", "ask the vendor for a license"],
    ["consumption", "ask the vendor to extend it"]
  ] as const)("tells an expired license of the type %s what helps", (license_type, remedy) => {
    const rows = rowsOf({ policy: { license_type }, license: { expires_at: noon - day } })
    const { refused } = perform(rows, check, { keyHash, binding: hardware("machine") }, noon)
    assert.strictEqual(refused?.code, "LICENSE_EXPIRED")
    assert.include(refused?.message, remedy)
  })

  it("applies the time by itself where nothing has written it down yet, in refusals and in answers", () => {
    const unsettled = <Command, Reply, C extends Code>(rows: Rows, rule: Rule<Command, Reply, C>, command: Command) => {
      const outcome = rule.decide(viewOf(rows), command, noon)
      const { refused, reply } = perform(rows, rule, command, noon)
      assert.strictEqual(outcome.accepted ? undefined : outcome.code, refused?.code)
      if (outcome.accepted) assert.deepStrictEqual(outcome.reply(viewOf(applied(rows, outcome.changes))), reply)
    }
    fc.assert(
      fc.property(anyRows, requests, consumptions, leaseCommands(bindings), (rows, request, consumption, lease) => {
        unsettled(rows, issueOffline, request)
        unsettled(rows, heartbeat, lease)
        unsettled(rows, checkin, lease)
        unsettled(rows, validate, request)
        unsettled(rows, check, request)
        unsettled(rows, consume, consumption)
      }),
      { numRuns: 500 }
    )
  })

  it("asks all of them in one order: lifting one reason after the other shows the next", () => {
    const machine = hardware("machine", { is_vm: true, app_version: "2.0" })
    const command = { keyHash, binding: machine, feature_code: "api", event_id: "event-1", amount: 2 }
    const worst = rowsOf({
      license: { key_hash: "0".repeat(64), status: "revoked", expires_at: noon - day, starts_at: noon + 1 },
      policy: { allow_vm: false, license_type: "trial" },
      devices: [deviceOf(machine, { status: "blacklisted" })],
      assignments: [assignmentOf("api", { enabled: false, expires_at: noon, max_consumptions: 1 })],
      versions: { "1.0": noon }
    })
    const steps: ReadonlyArray<readonly [Code | undefined, (rows: Rows) => Rows]> = [
      ["LICENSE_KEY_INVALID", (rows) => rows],
      ["LICENSE_REVOKED", (rows) => ({ ...rows, license: { ...rows.license, key_hash: keyHash } })],
      ["LICENSE_EXPIRED", (rows) => ({ ...rows, license: { ...rows.license, status: "active" } })],
      ["LICENSE_NOT_STARTED", (rows) => ({ ...rows, license: { ...rows.license, expires_at: noon + day } })],
      ["DEVICE_BLACKLISTED", (rows) => ({ ...rows, license: { ...rows.license, starts_at: noon } })],
      ["VM_NOT_ALLOWED", (rows) => ({ ...rows, devices: [deviceOf(machine, { status: "reset" })] })],
      ["VERSION_UNKNOWN", (rows) => ({ ...rows, policy: { ...rows.policy, allow_vm: true } })],
      ["VERSION_NOT_ENTITLED", (rows) => ({ ...rows, versions: { "2.0": noon + day + 1 } })],
      ["DEVICE_NOT_ACTIVE", (rows) => ({ ...rows, versions: { "2.0": noon + day } })],
      ["FEATURE_DISABLED", (rows) => ({ ...rows, devices: [deviceOf(machine)] })],
      [
        "FEATURE_EXPIRED",
        (rows) => ({ ...rows, assignments: rows.assignments.map((assignment) => ({ ...assignment, enabled: true })) })
      ],
      [
        "USAGE_LIMIT_EXCEEDED",
        (rows) => ({
          ...rows,
          assignments: rows.assignments.map((assignment) => ({ ...assignment, expires_at: noon + 1 }))
        })
      ],
      [
        undefined,
        (rows) => ({
          ...rows,
          assignments: rows.assignments.map((assignment) => ({ ...assignment, max_consumptions: 2 }))
        })
      ]
    ]
    let rows = worst
    for (const [code, lift] of steps) {
      rows = lift(rows)
      assert.strictEqual(perform(rows, consume, command, noon).refused?.code, code)
    }
  })
})

describe("a refusal of admission", () => {
  const machine = hardware("machine")
  const request = requestOf(machine)

  it("names the product if the license is of another one, and passes with none or its own", () => {
    const rows = rowsOf({ devices: [deviceOf(machine)] })
    const { refused } = refusedWith("PRODUCT_MISMATCH", rows, validate, { ...request, productCode: "another" })
    assert.strictEqual(refused.detail, "product_code")
    allowed(rows, validate, { ...request, productCode })
    allowed(rows, validate, request)
  })

  it("says in how many seconds the license starts", () => {
    const rows = rowsOf({ license: { starts_at: noon + 89_001 } })
    const { refused } = refusedWith("LICENSE_NOT_STARTED", rows, validate, request)
    assert.deepStrictEqual(refused.facts, { retry_after_seconds: 90 })
  })

  it("names the field that the policy forbids", () => {
    const policy = { allow_vm: false, allow_container: false }
    const detailOf = (code: "VM_NOT_ALLOWED" | "CONTAINER_NOT_ALLOWED", binding: Binding) =>
      refusedWith(code, rowsOf({ policy }), activate, activationOf(binding)).refused.detail
    assert.strictEqual(detailOf("VM_NOT_ALLOWED", hardware("vm", { is_vm: true })), "is_vm")
    assert.strictEqual(detailOf("CONTAINER_NOT_ALLOWED", container("pod")), "is_container")
  })

  it("tells a lapsed seat from a device that ended", () => {
    const messageOf = (device: Parameters<typeof deviceOf>[1]) => {
      const rows = rowsOf({ devices: [deviceOf(machine, device)] })
      return refusedWith("DEVICE_NOT_ACTIVE", rows, validate, request).refused.message
    }
    assert.include(messageOf({ holds_slot: false, activated_at: undefined }), "floating lease has lapsed")
    assert.include(messageOf({ status: "reset" }), "is reset")
  })
})

describe("a command that another node may have executed", () => {
  const machine = hardware("machine")
  const repeated = { ...requestOf(machine), isRepeated: true }
  const released = (updated_at: number) =>
    rowsOf({ devices: [deviceOf(machine, { status: "deactivated", updated_at })] })

  it.each([noon, noon - 59_999, noon + 59_999])("is answered as done if that was just done", (at) => {
    assert.deepStrictEqual(allowed(released(at), deactivate, repeated).changes, {})
    assert.strictEqual(allowed(released(at), deactivate, repeated).reply.device_id, deviceOf(machine).id)
  })

  it.each([noon - 60_000, noon + 60_000])("is refused if it was done earlier, or by a clock too far ahead", (at) => {
    refusedWith("DEVICE_STATE_CONFLICT", released(at), deactivate, repeated)
  })

  it("is refused if it was not done, or is not repeated", () => {
    refusedWith("DEVICE_STATE_CONFLICT", released(noon), deactivate, requestOf(machine))
    refusedWith("DEVICE_STATE_CONFLICT", released(noon), deactivate, { ...repeated, isRepeated: false })
  })

  it("is an ended lease only for the checkin that ended it", () => {
    const lease = leaseOf(deviceOf(machine), { status: "checked_in", ended_at: noon - 1 })
    const rows = rowsOf({ devices: [deviceOf(machine, { status: "deactivated" })], leases: [lease] })
    const command = { keyHash, tokenHash: lease.token_hash }
    const { changes, reply } = allowed(rows, checkin, { ...command, isRepeated: true })
    assert.deepStrictEqual(changes, {})
    assert.strictEqual(reply.device_id, lease.device_id)
    refusedWith("LEASE_NOT_ACTIVE", rows, checkin, command)
    const lapsed = rowsOf({ devices: rows.devices, leases: [{ ...lease, status: "expired" }] })
    refusedWith("LEASE_NOT_ACTIVE", lapsed, checkin, { ...command, isRepeated: true })
  })
})

describe("what a runtime command reads first", () => {
  const machine = hardware("machine", { app_version: "1.2" })
  const binding = { kind: "hardware", key: machine.key } as const
  const request = requestOf(machine)
  const lease = { keyHash, tokenHash: "a digest" }

  it("is its device and version, and what its rule counts", () => {
    assert.deepStrictEqual(validate.needs?.(request), { binding, appVersion: "1.2" })
    assert.deepStrictEqual(activate.needs?.(activationOf(machine)), {
      ...{ binding, appVersion: "1.2" },
      activeContainers: true
    })
    assert.deepStrictEqual(deactivate.needs?.(request), { binding })
    assert.deepStrictEqual(heartbeat.needs?.(lease), { leaseToken: "a digest", seats: true })
    assert.deepStrictEqual(checkin.needs?.(lease), { leaseToken: "a digest" })
    const seat = { ...request, ...lease, newDeviceId: "dev_new", newLeaseId: "lse_new", leaseToken: "a token" }
    const needs = { binding, appVersion: "1.2", seats: true }
    assert.deepStrictEqual(checkout.needs?.(seat), needs)
    assert.deepStrictEqual(checkout.needs?.({ ...seat, isRepeated: true }), { ...needs, leaseToken: seat.tokenHash })
  })
})
