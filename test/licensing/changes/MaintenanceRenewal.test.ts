import { assert, describe, it } from "@effect/vitest"
import { formatTimestamp } from "../../../src/contract/api/Timestamp.ts"
import { type MaintenanceCommand, renewMaintenance } from "../../../src/licensing/changes/MaintenanceRenewal.ts"
import type { LinkRecord } from "../../../src/licensing/model/LicenseRecords.ts"
import { allowed, refusedWith } from "../../support/rules/LicenseRules.ts"
import { assignmentOf, day, noon, type RowsInput, rowsOf } from "../../support/rules/Licenses.ts"

const ahead = noon + 10 * day
const past = noon - 5 * day

const links: ReadonlyArray<LinkRecord> = [
  { kind: "order", id: "ord_1", product_id: "prod_1", subscription_id: "sub_1" },
  { kind: "subscription", id: "sub_1", product_id: "prod_1" },
  { kind: "subscription", id: "sub_foreign", product_id: "prod_2" }
]

const perpetual = (license: RowsInput["license"], more: Omit<RowsInput, "license"> = {}) =>
  rowsOf({
    links,
    ...more,
    license: { expires_at: undefined, ...license },
    policy: { license_type: "perpetual", ...more.policy }
  })

const maintained = perpetual({ maintenance_expires_at: ahead })

describe("renew maintenance", () => {
  it.each([
    ["days after a stored end ahead", ahead, { extend_by_days: 30 }, ahead + 30 * day],
    ["days after now, if the stored end is past", past, { extend_by_days: 30 }, noon + 30 * day],
    ["to a later end", ahead, { maintenance_expires_at: ahead + 1 }, ahead + 1],
    ["to an end ahead, if the stored end is past", past, { maintenance_expires_at: noon + 1 }, noon + 1]
  ] as const)("extends %s", (_, stored, command: MaintenanceCommand, to) => {
    const rows = perpetual({ maintenance_expires_at: stored })
    const { after, before, changes, reply } = allowed(rows, renewMaintenance, command)
    assert.deepStrictEqual(after.license, {
      ...before.license,
      maintenance_expires_at: to,
      term_days: undefined,
      entitlement_counter: before.license.entitlement_counter + 1,
      updated_at: noon
    })
    assert.strictEqual(reply.license.maintenance_expires_at, to)
    assert.deepStrictEqual(changes.events, [
      {
        event_type: "license.maintenance_renewed",
        resource_type: "license",
        resource_id: "lic_1",
        metadata: {
          maintenance_expires_at: { old: formatTimestamp(stored), new: formatTimestamp(to) },
          ...("extend_by_days" in command && { extend_by_days: command.extend_by_days })
        }
      }
    ])
  })

  it("begins a maintenance that waits for the first activation, with its features", () => {
    const feature = assignmentOf("plan", { from_policy: true, expires_after_days: 7 })
    const rows = perpetual(
      { term_days: 365 },
      { assignments: [feature], policy: { duration_starts: "first_activation" } }
    )
    const { after, changes } = allowed(rows, renewMaintenance, { extend_by_days: 10 })
    assert.deepInclude(after.license, {
      maintenance_expires_at: noon + (365 + 10) * day,
      term_days: undefined,
      term_began_at: noon
    })
    assert.strictEqual(after.assignments[0]?.expires_at, noon + 7 * day)
    assert.deepStrictEqual(changes.events?.[0]?.metadata["maintenance_expires_at"], {
      old: null,
      new: formatTimestamp(noon + 375 * day)
    })
  })

  it("names what was paid for, and the order's own subscription", () => {
    const { changes } = allowed(maintained, renewMaintenance, { extend_by_days: 1, order_id: "ord_1" })
    assert.deepInclude(changes.events?.[0]?.metadata, { order_id: "ord_1", subscription_id: "sub_1" })
    assert.deepStrictEqual(
      renewMaintenance.needs?.({ extend_by_days: 1, order_id: "ord_1", subscription_id: "sub_1" }),
      { links: { order: "ord_1", subscription: "sub_1" } }
    )
  })

  it.each([noon, past])("refuses an end that is not ahead", (maintenance_expires_at) => {
    const rows = perpetual({ maintenance_expires_at: past })
    const { refused } = refusedWith("EXPIRY_NOT_IN_FUTURE", rows, renewMaintenance, { maintenance_expires_at })
    assert.strictEqual(refused.detail, "maintenance_expires_at")
  })

  it.each([ahead, ahead - 1])("never shortens the maintenance", (maintenance_expires_at) => {
    const { refused } = refusedWith("RENEWAL_NOT_LATER", maintained, renewMaintenance, { maintenance_expires_at })
    assert.strictEqual(refused.detail, "maintenance_expires_at")
    assert.include(refused.message, formatTimestamp(ahead))
  })

  it("refuses licenses without an end of maintenance, and other types", () => {
    const { refused } = refusedWith("VALIDATION_ERROR", perpetual({}), renewMaintenance, { extend_by_days: 1 })
    assert.strictEqual(refused.detail, "maintenance_expires_at")
    const limited = rowsOf({ license: { maintenance_expires_at: ahead } })
    refusedWith("VALIDATION_ERROR", limited, renewMaintenance, { extend_by_days: 1 })
  })

  it("refuses a revoked license first", () => {
    const rows = perpetual({ status: "revoked", maintenance_expires_at: ahead })
    refusedWith("LICENSE_STATE_CONFLICT", rows, renewMaintenance, { extend_by_days: 1, order_id: "ord_none" })
  })

  it("refuses links that do not exist or belong elsewhere", () => {
    const command = { extend_by_days: 1 }
    const { refused } = refusedWith("NOT_FOUND", maintained, renewMaintenance, { ...command, order_id: "ord_none" })
    assert.strictEqual(refused.detail, "order_id")
    refusedWith("LINKAGE_MISMATCH", maintained, renewMaintenance, { ...command, subscription_id: "sub_foreign" })
  })

  it("refuses an end that no date-time can name", () => {
    refusedWith("VALIDATION_ERROR", maintained, renewMaintenance, { extend_by_days: 2_147_483_647 })
  })
})

describe("a maintenance that waits for a later start", () => {
  it("begins with that start, as its features do", () => {
    const starts_at = noon + 5 * day
    const assignments = [assignmentOf("plan", { expires_after_days: 7 })]
    const rows = perpetual({ term_days: 365, starts_at }, { assignments })
    const { after } = allowed(rows, renewMaintenance, { extend_by_days: 10 })
    assert.deepInclude(after.license, { term_began_at: starts_at, maintenance_expires_at: starts_at + 375 * day })
    assert.strictEqual(after.assignments[0]?.expires_at, starts_at + 7 * day)
  })
})
