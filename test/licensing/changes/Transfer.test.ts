import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import * as fc from "fast-check"
import type { Metadata } from "../../../src/contract/api/Metadata.ts"
import { type TransferCommand, transfer } from "../../../src/licensing/changes/Transfer.ts"
import { LicenseTransfer } from "../../../src/licensing/model/License.ts"
import type { LinkRecord } from "../../../src/licensing/model/LicenseRecords.ts"
import { borrowedUntil } from "../../../src/licensing/rules/Seats.ts"
import { rows as anyRows } from "../../support/rules/LicenseArbitraries.ts"
import { allowed, perform, refusedWith, viewOf } from "../../support/rules/LicenseRules.ts"
import {
  day,
  deviceOf,
  hardware,
  leaseOf,
  noon,
  type Rows,
  type RowsInput,
  rowsOf
} from "../../support/rules/Licenses.ts"

const links: ReadonlyArray<LinkRecord> = [
  { kind: "customer", id: "cust_old", name: "Old", email: "office@old.example" },
  { kind: "customer", id: "cust_new", name: "New", email: "office@new.example" },
  { kind: "customer", id: "cust_bare", name: "Bare" },
  { kind: "order", id: "ord_1", product_id: "prod_1" }
]

const owner = { customer_id: "cust_old", customer_email: "old@example.com", customer_name: "Old" }

const slotted = deviceOf(hardware("slotted"))
const seated = deviceOf(hardware("seated"), { holds_slot: false })
const others = (["deactivated", "expired", "reset", "blacklisted"] as const).map((status) =>
  deviceOf(hardware(status), { status })
)
const devices = [slotted, seated, ...others]

const rowsWith = (license: RowsInput["license"] = {}, policy: RowsInput["policy"] = {}, rest: RowsInput = {}): Rows =>
  rowsOf({ license: { ...owner, ...license }, policy, links, devices, leases: [leaseOf(seated)], ...rest })

const owned = rowsWith()
const ownership = ({ license: { customer_id, customer_email, customer_name } }: Rows) => ({
  customer_id,
  customer_email,
  customer_name
})

const moves: ReadonlyArray<readonly [TransferCommand, ReturnType<typeof ownership>, Metadata]> = [
  [
    { customer_id: "cust_new" },
    { customer_id: "cust_new", customer_email: "office@new.example", customer_name: "New" },
    {
      customer_id: { old: "cust_old", new: "cust_new" },
      customer_email: { old: "old@example.com", new: "office@new.example" },
      customer_name: { old: "Old", new: "New" }
    }
  ],
  [
    { customer_id: "cust_bare", customer_name: "Ada" },
    { customer_id: "cust_bare", customer_email: undefined, customer_name: "Ada" },
    {
      customer_id: { old: "cust_old", new: "cust_bare" },
      customer_email: { old: "old@example.com", new: null },
      customer_name: { old: "Old", new: "Ada" }
    }
  ],
  [{ customer_id: "" }, { ...owner, customer_id: undefined }, { customer_id: { old: "cust_old", new: null } }],
  [
    { customer_email: "new@example.com" },
    { ...owner, customer_email: "new@example.com" },
    { customer_email: { old: "old@example.com", new: "new@example.com" } }
  ],
  [{ customer_name: "New" }, { ...owner, customer_name: "New" }, { customer_name: { old: "Old", new: "New" } }],
  [
    { customer_id: "cust_new", customer_email: "old@example.com", customer_name: "New" },
    { ...owner, customer_id: "cust_new", customer_name: "New" },
    { customer_id: { old: "cust_old", new: "cust_new" }, customer_name: { old: "Old", new: "New" } }
  ]
]

describe("transfer", () => {
  it.each(moves)("to %j", (command, expected, told) => {
    const { before, after, changes, reply } = allowed(owned, transfer, command)
    assert.deepStrictEqual(ownership(after), expected)
    assert.deepInclude(after.license, { times_transferred: 1, status: "active", updated_at: noon })
    assert.deepInclude(reply.license, { times_transferred: 1 })
    assert.strictEqual(after.license.entitlement_counter, before.license.entitlement_counter + 1)
    assert.deepStrictEqual([after.devices, after.leases], [before.devices, before.leases])
    assert.deepStrictEqual(changes.events, [
      {
        event_type: "license.transferred",
        resource_type: "license",
        resource_id: "lic_1",
        metadata: { changes: told }
      }
    ])
  })

  it.each<TransferCommand>([
    { customer_id: "cust_old" },
    { customer_email: "old@example.com", customer_name: "Old" },
    { customer_id: "cust_old", reset_devices: false }
  ])("to the same owner changes and records nothing: %j", (command) => {
    assert.deepStrictEqual(allowed(owned, transfer, command).changes, {})
  })

  it("clears a link that is not there without a word", () => {
    assert.deepStrictEqual(allowed(rowsWith({ customer_id: undefined }), transfer, { customer_id: "" }).changes, {})
  })

  it("resets devices in every state but blacklisted, frees the slots and ends the leases", () => {
    const { before, after, changes } = allowed(owned, transfer, { reset_devices: true })
    const state = ({ devices }: Rows) =>
      devices.map(({ id, status, holds_slot, updated_at }) => [id, status, holds_slot, updated_at])
    assert.deepStrictEqual(
      state(after),
      state(before).map(([id, status, slot, at]) =>
        status === "reset" || status === "blacklisted" ? [id, status, slot, at] : [id, "reset", false, noon]
      )
    )
    assert.deepStrictEqual(after.leases, [leaseOf(seated, { status: "ended", ended_at: noon })])
    assert.deepInclude(after.license, { active_device_count: 0, times_transferred: 0, updated_at: noon })
    assert.strictEqual(after.license.entitlement_counter, before.license.entitlement_counter + 1)
    assert.deepStrictEqual(ownership(after), owner)
    assert.isUndefined(changes.othersReset)
    assert.deepStrictEqual(
      changes.events?.map(({ event_type, metadata }) => [event_type, metadata]),
      [["license.transferred", { devices_reset: 4 }]]
    )
  })

  it("resets the devices beyond those in memory too", () => {
    const { after, changes } = allowed(rowsWith({}, {}, { otherResettable: 900 }), transfer, { reset_devices: true })
    assert.isTrue(changes.othersReset)
    assert.deepStrictEqual(changes.events?.[0]?.metadata, { devices_reset: 904 })
    assert.deepStrictEqual(allowed(after, transfer, { reset_devices: true }).changes, {})
    const only = rowsWith({}, {}, { devices: [], leases: [], otherResettable: 1 })
    assert.isTrue(allowed(only, transfer, { reset_devices: true }).changes.othersReset)
  })

  it("changes and records nothing where nothing is left to reset", () => {
    const rest = devices.filter(({ status }) => status === "reset" || status === "blacklisted")
    const rows = rowsWith({}, {}, { devices: rest, leases: [] })
    assert.deepStrictEqual(allowed(rows, transfer, { reset_devices: true, customer_name: "Old" }).changes, {})
  })

  it("stops at max_transfers, counting changes of the owner alone; 0 is unlimited", () => {
    const limited = { max_transfers: 2 }
    allowed(rowsWith({ times_transferred: 1 }, limited), transfer, { customer_id: "cust_new" })
    const used = rowsWith({ times_transferred: 2 }, limited)
    const { refused } = refusedWith("TRANSFER_LIMIT_REACHED", used, transfer, {
      customer_id: "cust_new",
      reset_devices: true
    })
    assert.strictEqual(refused.detail, "2")
    refusedWith("TRANSFER_LIMIT_REACHED", rowsWith({ times_transferred: 3 }, limited), transfer, { customer_id: "" })
    const { after } = allowed(used, transfer, { customer_id: "cust_old", reset_devices: true })
    assert.deepInclude(after.license, { times_transferred: 2, active_device_count: 0 })
    allowed(rowsWith({ times_transferred: 999 }, { max_transfers: 0 }), transfer, { customer_name: "New" })
  })

  it("ends the old key on demand, also where the owner stays", () => {
    const newKey = { key_hash: "f".repeat(64), license_key_prefix: "LK-FFFFF", license_key_last4: "FFFF" }
    const types = (command: TransferCommand) => {
      const { before, after, changes } = allowed(owned, transfer, { ...command, newKey })
      assert.deepInclude(after.license, { ...newKey, updated_at: noon })
      const raised = after.license.entitlement_counter - before.license.entitlement_counter
      return [...(changes.events ?? []).map(({ event_type }) => event_type), raised]
    }
    assert.deepStrictEqual(types({ customer_name: "New" }), ["license.transferred", "license.key_rotated", 1])
    assert.deepStrictEqual(types({ customer_id: "cust_old" }), ["license.key_rotated", 0])
    const { changes } = allowed(owned, transfer, { customer_name: "New", newKey })
    assert.deepStrictEqual(changes.events?.[1]?.metadata, {
      license_key_prefix: { old: owned.license.license_key_prefix, new: "LK-FFFFF" },
      license_key_last4: { old: owned.license.license_key_last4, new: "FFFF" }
    })
    const used = rowsWith({ times_transferred: 1 }, { max_transfers: 1 })
    refusedWith("TRANSFER_LIMIT_REACHED", used, transfer, { customer_name: "New", newKey })
  })

  it("refuses an unknown customer", () => {
    for (const customer_id of ["cust_none", "ord_1"]) {
      const { refused } = refusedWith("NOT_FOUND", owned, transfer, { customer_id, customer_name: "New" })
      assert.strictEqual(refused.detail, "customer_id")
    }
  })

  it.each([
    ["active", {}],
    ["grace_period", { status: "grace_period", expires_at: noon - day }],
    ["expired", { status: "expired", expires_at: noon - 30 * day }],
    ["suspended", { status: "suspended" }]
  ] as const)("leaves a license %s", (status, license) => {
    const { after } = allowed(rowsWith(license, { grace_period_days: 3 }), transfer, { customer_name: "New" })
    assert.strictEqual(after.license.status, status)
  })

  it("refuses a revoked license", () => {
    refusedWith("LICENSE_STATE_CONFLICT", rowsWith({ status: "revoked" }), transfer, { customer_id: "cust_none" })
  })

  it("once made, changes nothing when asked again", () => {
    const commands: fc.Arbitrary<TransferCommand> = fc.record(
      {
        customer_id: fc.constantFrom("", "cust_old", "cust_new", "cust_bare"),
        customer_email: fc.constantFrom("old@example.com", "new@example.com"),
        customer_name: fc.constantFrom("Old", "New"),
        reset_devices: fc.boolean(),
        release_borrowed: fc.boolean()
      },
      { requiredKeys: [] }
    )
    fc.assert(
      fc.property(anyRows, commands, (rows, command) => {
        const { after, refused } = perform({ ...rows, links }, transfer, command, noon)
        if (refused !== undefined) return
        assert.deepStrictEqual(perform(after, transfer, command, noon).changes, {})
        if (command.reset_devices !== true) return
        assert.strictEqual(after.license.active_device_count, 0)
        const kept = Array.from(viewOf(after).liveLeases)
        if (command.release_borrowed === true) assert.isEmpty(kept)
        for (const lease of kept) assert.isDefined(borrowedUntil(lease, noon))
        for (const { status } of after.devices) assert.include(["reset", "blacklisted"], status)
      })
    )
  })
})

describe("a transfer's body", () => {
  const accepts = Schema.is(Schema.toType(LicenseTransfer))

  it("names an owner or resets devices", () => {
    for (const body of [
      { customer_id: "" },
      { customer_email: "a@b" },
      { customer_name: "A" },
      { reset_devices: true }
    ]) {
      assert.isTrue(accepts(body), JSON.stringify(body))
    }
    for (const body of [
      {},
      { rotate_key: true },
      { reset_devices: false },
      { customer_id: null },
      { customer_name: "" },
      { customer_email: "a" }
    ]) {
      assert.isFalse(accepts(body), JSON.stringify(body))
    }
    assert.isTrue(accepts({ customer_name: "A", reset_devices: false, rotate_key: true }))
  })
})

describe("a transfer with borrowed seats", () => {
  it("counts only the seats that were borrowed as released", () => {
    const borrower = deviceOf(hardware("borrower"), { holds_slot: false })
    const leases = [leaseOf(seated), leaseOf(borrower, { borrowed_until: noon + day, expires_at: noon + day })]
    const rows = rowsWith({}, {}, { devices: [seated, borrower], leases })
    const { after, changes } = allowed(rows, transfer, { reset_devices: true, release_borrowed: true })
    assert.deepStrictEqual(changes.events?.[0]?.metadata, { devices_reset: 2, seats_released: 1 })
    assert.deepStrictEqual(
      after.leases.map(({ status }) => status),
      ["ended", "ended"]
    )
  })
})

describe("a transfer that is refused", () => {
  it("names the field of the policy, the customer that is unknown, and one that is being erased", () => {
    const { refused } = refusedWith("TRANSFER_NOT_ALLOWED", rowsWith({}, { allow_transfer: false }), transfer, {
      customer_name: "Ada"
    })
    assert.strictEqual(refused.detail, "allow_transfer")
    const unknown = refusedWith("NOT_FOUND", owned, transfer, { customer_id: "cust_none" }).refused
    assert.include(unknown.message, "customer")
    const erasing = rowsOf({ links: [{ kind: "customer", id: "cust_new", erasing: true }] })
    const { detail, isTemporary } = refusedWith("CONFLICT", erasing, transfer, { customer_id: "cust_new" }).refused
    assert.deepStrictEqual([detail, isTemporary], ["customer_id", true])
  })
})

describe("what a transfer reads first", () => {
  it("is the owner, the new customer, and with a reset the devices and all seats", () => {
    assert.deepStrictEqual(transfer.needs?.({ customer_id: "cust_new" }), {
      ...{ links: { customer: "cust_new" }, owner: true },
      ...{ resettable: undefined, allLeases: false }
    })
    assert.deepStrictEqual(transfer.needs?.({ customer_id: "", reset_devices: true }), {
      ...{ links: { customer: undefined }, owner: true },
      ...{ resettable: true, allLeases: true }
    })
  })
})
