/** Edits of a license: what they change besides their fields, and what they read and refuse. */
import { assert, describe, it } from "@effect/vitest"
import { formatTimestamp } from "../../../src/contract/api/Timestamp.ts"
import { type UpdateCommand, update } from "../../../src/licensing/changes/Update.ts"
import type { LinkRecord } from "../../../src/licensing/model/LicenseRecords.ts"
import { allowed, refusedWith } from "../../support/rules/LicenseRules.ts"
import { assignmentOf, day, dueAfter, noon, type RowsInput, rowsOf } from "../../support/rules/Licenses.ts"

const edit = (command: UpdateCommand, rows: RowsInput = {}, now = noon) => allowed(rowsOf(rows), update, command, now)

describe("an edit", () => {
  it("changes what it names, tells it in its event, and nothing if nothing differs", () => {
    const { after, before, changes } = edit({ customer_name: "Anna", metadata: { a: 1 } })
    assert.deepInclude(after.license, { customer_name: "Anna", metadata: { a: 1 }, updated_at: noon })
    assert.strictEqual(after.license.entitlement_counter, before.license.entitlement_counter)
    assert.strictEqual(changes.events?.[0]?.event_type, "license.updated")
    assert.containsAllKeys(changes.events?.[0]?.metadata["changes"], ["customer_name", "metadata"])
    assert.deepStrictEqual(edit({ expires_at: noon + 30 * day }).changes, {})
    assert.deepStrictEqual(edit({}).changes, {})
  })

  it("raises the entitlement version if signed data change", () => {
    const raised = (command: UpdateCommand, rows: RowsInput = {}) => {
      const { after, before } = edit(command, rows)
      return after.license.entitlement_counter - before.license.entitlement_counter
    }
    assert.strictEqual(raised({ expires_at: noon + day }), 1)
    const perpetual = { license: { expires_at: undefined }, policy: { license_type: "perpetual" } } as const
    assert.strictEqual(raised({ maintenance_expires_at: noon + day }, perpetual), 1)
    assert.strictEqual(raised({ max_activations: 9 }), 0)
    assert.strictEqual(raised({ customer_name: "Anna" }, { policy: { show_licensee: true } }), 1)
  })

  it("begins a term that waits, with its features, if it gives an end", () => {
    const waiting: RowsInput = {
      license: { expires_at: undefined, term_days: 365 },
      policy: { duration_days: 365, duration_starts: "first_activation" },
      assignments: [assignmentOf("plan", { from_policy: true, expires_after_days: 7 })]
    }
    const { after } = edit({ expires_at: noon + 9 * day }, waiting)
    assert.deepInclude(after.license, { term_days: undefined, term_began_at: noon, expires_at: noon + 9 * day })
    assert.strictEqual(after.assignments[0]?.expires_at, noon + 7 * day)
    const named = edit({ customer_name: "Anna" }, waiting).after
    assert.deepInclude(named.license, { term_days: 365 })
    assert.isUndefined(named.license.term_began_at)
    assert.isUndefined(named.assignments[0]?.expires_at)
  })
})

describe("an edit of dates", () => {
  it.each([
    ["into the future makes an expired license active", "expired", noon - day, noon + day, "active"],
    ["into the future leaves a suspended one", "suspended", noon - day, noon + day, "suspended"],
    ["into the past leaves the state to the clock", "active", noon + day, noon - day, "active"]
  ] as const)("%s", (_, status, from, to, expected) => {
    const { after } = edit({ expires_at: to }, { license: { status, expires_at: from } })
    assert.deepInclude(after.license, { status: expected, expires_at: to })
  })

  it("does not change the state if the end stays", () => {
    const { after } = edit({ customer_name: "Anna" }, { license: { status: "expired", expires_at: noon - day } })
    assert.strictEqual(after.license.status, "expired")
  })

  it("gives whole heartbeat intervals if the license was or will be refused", () => {
    const policy = { require_heartbeat: true }
    const intervals = (license: RowsInput["license"], command: UpdateCommand) =>
      edit(command, { license, policy }).changes.license?.not_due_before
    assert.strictEqual(
      intervals({ status: "expired", expires_at: noon - day }, { expires_at: noon + day }),
      dueAfter(noon)
    )
    const later = noon + 5 * day
    assert.strictEqual(intervals({ starts_at: later }, { starts_at: noon + 2 * day }), dueAfter(noon + 2 * day))
    assert.strictEqual(intervals({}, { starts_at: later }), dueAfter(later))
    // A license that is served before and after keeps its promises, as does one whose dates stay.
    assert.isUndefined(intervals({}, { expires_at: noon + 60 * day }))
    assert.isUndefined(intervals({ starts_at: noon - day }, { starts_at: noon }))
    assert.isUndefined(intervals({ status: "expired", expires_at: noon - day }, { customer_name: "Anna" }))
  })

  it("moves the periods that begin with the license, and no others", () => {
    const boundaries = { period_anchor: noon - day, period_start: noon - day, resets_at: noon + day }
    const counted = { max_consumptions: 10, ...boundaries }
    const assignments = [
      assignmentOf("own", { ...counted, reset_period: "day" }),
      assignmentOf("subscribed", { ...counted, reset_period: "subscription" }),
      assignmentOf("plain", { max_consumptions: 10 })
    ]
    const { changes } = edit({ starts_at: noon - 36e5 }, { assignments })
    assert.deepStrictEqual(
      changes.assignments?.map(({ feature_code, resets_at, updated_at }) => [feature_code, resets_at, updated_at]),
      [["own", noon - 36e5 + day, noon]]
    )
    assert.deepStrictEqual(edit({ expires_at: noon + day }, { assignments }).changes.assignments, [])
  })

  it("of the subscription moves the periods that follow it", () => {
    const subscription: LinkRecord = {
      ...{ kind: "subscription", id: "sub_1", product_id: "prod_1" },
      ...{ period_start: noon - 2 * day, period_end: noon + 2 * day }
    }
    const assignments = [assignmentOf("subscribed", { max_consumptions: 10, reset_period: "subscription" })]
    const { after } = edit({ subscription_id: "sub_1" }, { assignments, links: [subscription] })
    assert.strictEqual(after.license.subscription_id, "sub_1")
    assert.strictEqual(after.assignments[0]?.resets_at, noon + 2 * day)
  })
})

describe("an edit is refused", () => {
  it("of a revoked license, and of a record that has changed", () => {
    refusedWith("LICENSE_STATE_CONFLICT", rowsOf({ license: { status: "revoked" } }), update, { customer_name: "A" })
    const { refused } = refusedWith("CONFLICT", rowsOf(), update, { customer_name: "A", ifMatch: '"outdated"' })
    assert.strictEqual(refused.detail, "If-Match")
  })

  it("with links of nothing, and dates that the license type forbids", () => {
    refusedWith("NOT_FOUND", rowsOf(), update, { order_id: "ord_none" })
    const { refused } = refusedWith("VALIDATION_ERROR", rowsOf(), update, { maintenance_expires_at: noon + day })
    assert.strictEqual(refused.detail, "maintenance_expires_at")
    assert.include(refused.message, "perpetual")
  })

  it("if it copies names of a customer that is being erased", () => {
    const erasing: LinkRecord = { kind: "customer", id: "cus_1", product_id: "prod_1", erasing: true }
    const rows = rowsOf({ license: { customer_id: "cus_1", customer_name: "Anna" }, links: [erasing] })
    for (const command of [{ customer_name: "Ben" }, { customer_email: "ben@example.com" }])
      assert.strictEqual(refusedWith("CONFLICT", rows, update, command).refused.detail, "customer_id")
    allowed(rows, update, { customer_name: null })
    allowed(rows, update, { expires_at: noon + day })
  })
})

describe("what an edit reads first", () => {
  const nothing = {
    links: { order: undefined, subscription: undefined },
    ownOrder: false,
    allLeases: false,
    owner: false
  }

  it.each([
    ["nothing", {}, {}],
    [
      "the named links",
      { order_id: "ord_1", subscription_id: "sub_1" },
      { links: { order: "ord_1", subscription: "sub_1" } }
    ],
    ["no link that is cleared", { order_id: null, subscription_id: null }, {}],
    [
      "its own order beside a subscription",
      { subscription_id: "sub_1" },
      { ownOrder: true, links: { order: undefined, subscription: "sub_1" } }
    ],
    ["all leases for an expiry, which may end them", { expires_at: noon }, { allLeases: true }],
    ["no leases for a cleared one", { expires_at: null }, {}],
    ["its customer for a name", { customer_name: "Anna" }, { owner: true }],
    ["its customer for an address", { customer_email: "a@example.com" }, { owner: true }],
    ["no customer for cleared ones", { customer_email: null, customer_name: null }, {}]
  ] as ReadonlyArray<readonly [string, UpdateCommand, object]>)("is %s", (_, command, needs) => {
    assert.deepStrictEqual(update.needs?.(command), { ...nothing, ...needs })
  })

  it("is read again before the next command only if the number of containers is limited", () => {
    assert.isTrue(update.endsBatch?.({ max_container_instances: 3 }))
    assert.isFalse(update.endsBatch?.({ max_activations: 3 }))
  })
})

describe("the event of an edit", () => {
  it("has old and new values of the changed fields alone", () => {
    const { changes } = edit({ expires_at: noon + day, customer_name: null })
    assert.deepStrictEqual(changes.events?.[0]?.metadata["changes"], {
      expires_at: { old: formatTimestamp(noon + 30 * day), new: formatTimestamp(noon + day) }
    })
  })
})

describe("an edit of one thing", () => {
  it("begins no pending days of features that it does not concern", () => {
    const assignments = [assignmentOf("plan", { expires_after_days: 7 })]
    const { changes } = edit({ customer_name: "Anna" }, { assignments })
    assert.deepStrictEqual(changes.assignments, [])
    assert.hasAllKeys(changes.events?.[0]?.metadata["changes"], ["customer_name"])
  })

  it("leaves the state that a clock ahead has recorded, and an expired license that stays expired", () => {
    const ahead = { status: "expired", expires_at: noon + 30_000 } as const
    assert.strictEqual(edit({ customer_name: "Anna" }, { license: ahead }).after.license.status, "expired")
    const past = { status: "expired", expires_at: noon - 9 * day } as const
    assert.strictEqual(edit({ expires_at: noon - day }, { license: past }).after.license.status, "expired")
  })

  it("begins a pending term at the start that it gives, with the features' days and periods", () => {
    const plan = { expires_after_days: 7, max_consumptions: 9, reset_period: "day" } as const
    const waiting: RowsInput = {
      license: { expires_at: undefined, term_days: 365 },
      assignments: [
        assignmentOf("ends", { expires_after_days: 7 }),
        assignmentOf("meters", plan),
        assignmentOf("plain")
      ]
    }
    const starts_at = noon + 2 * day
    const { changes } = edit({ starts_at, expires_at: noon + 90 * day }, waiting)
    assert.deepStrictEqual(
      changes.assignments?.map((one) => [one.feature_code, one.expires_at, one.resets_at]),
      [
        ["ends", starts_at + 7 * day, undefined],
        ["meters", starts_at + 7 * day, starts_at + day]
      ]
    )
  })
})
