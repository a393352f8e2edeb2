import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import * as fc from "fast-check"
import { formatTimestamp, latest } from "../../../src/contract/api/Timestamp.ts"
import { type RenewCommand, renew } from "../../../src/licensing/changes/Renewal.ts"
import type { LicenseStatus } from "../../../src/licensing/model/License.ts"
import type { LinkRecord } from "../../../src/licensing/model/LicenseRecords.ts"
import { LicenseRenew } from "../../../src/licensing/model/RenewalRequests.ts"
import { pendingTermEndsAt } from "../../../src/licensing/rules/Terms.ts"
import { rows as anyRows } from "../../support/rules/LicenseArbitraries.ts"
import { allowed, perform, refusedWith, viewOf } from "../../support/rules/LicenseRules.ts"
import { assignmentOf, day, dueAfter, noon, type Rows, type RowsInput, rowsOf } from "../../support/rules/Licenses.ts"

const graceDays = 3
const ahead = noon + 10 * day
const inGrace = noon - day
const past = noon - 5 * day

const links: ReadonlyArray<LinkRecord> = [
  { kind: "order", id: "ord_alone", product_id: "prod_1" },
  { kind: "order", id: "ord_subscribed", product_id: "prod_1", subscription_id: "sub_1" },
  { kind: "order", id: "ord_foreign", product_id: "prod_2" },
  { kind: "subscription", id: "sub_1", product_id: "prod_1" },
  { kind: "subscription", id: "sub_2", product_id: "prod_1" },
  { kind: "subscription", id: "sub_foreign", product_id: "prod_2" }
]

const rowsIn = (license: RowsInput["license"], policy: RowsInput["policy"] = {}): Rows =>
  rowsOf({ license, policy: { grace_period_days: graceDays, ...policy }, links })

const active = rowsIn({ expires_at: ahead })

type Line = readonly [
  from: string,
  rows: Rows,
  command: RenewCommand,
  to: { readonly status: LicenseStatus; readonly expires_at: number }
]

const table: ReadonlyArray<Line> = [
  ["active", active, { extend_by_days: 30 }, { status: "active", expires_at: ahead + 30 * day }],
  ["active", active, { expires_at: ahead + 1 }, { status: "active", expires_at: ahead + 1 }],
  [
    "active to its last instant",
    rowsIn({ expires_at: noon + 1 }),
    { extend_by_days: 1 },
    { status: "active", expires_at: noon + 1 + day }
  ],
  [
    "in grace from its first instant",
    rowsIn({ expires_at: noon }),
    { extend_by_days: 1 },
    { status: "active", expires_at: noon + day }
  ],
  [
    "grace_period",
    rowsIn({ status: "grace_period", expires_at: inGrace }),
    { extend_by_days: 2 },
    { status: "active", expires_at: noon + 2 * day }
  ],
  [
    "grace_period by the clock alone",
    rowsIn({ expires_at: inGrace }),
    { expires_at: ahead },
    { status: "active", expires_at: ahead }
  ],
  [
    "expired",
    rowsIn({ status: "expired", expires_at: past }),
    { extend_by_days: 7 },
    { status: "active", expires_at: noon + 7 * day }
  ],
  [
    "expired by the clock alone",
    rowsIn({ expires_at: past }),
    { expires_at: ahead },
    { status: "active", expires_at: ahead }
  ],
  [
    "suspended, its expiry ahead",
    rowsIn({ status: "suspended", expires_at: ahead }),
    { extend_by_days: 5 },
    { status: "suspended", expires_at: ahead + 5 * day }
  ],
  [
    "suspended, its expiry past",
    rowsIn({ status: "suspended", expires_at: past }),
    { extend_by_days: 5 },
    { status: "suspended", expires_at: noon + 5 * day }
  ],
  [
    "suspended",
    rowsIn({ status: "suspended", expires_at: past }),
    { expires_at: noon + 1 },
    { status: "suspended", expires_at: noon + 1 }
  ]
]

describe("renew", () => {
  it.each(table)("from %s", (_, rows, command, to) => {
    const { before, after, changes, reply } = allowed(rows, renew, command)
    assert.deepInclude(after.license, { ...to, updated_at: noon })
    assert.deepInclude(reply.license, to)
    assert.strictEqual(after.license.entitlement_counter, before.license.entitlement_counter + 1)
    const moved = before.license.status === to.status ? {} : { status: { old: before.license.status, new: to.status } }
    assert.deepStrictEqual(changes.events, [
      {
        event_type: "license.renewed",
        resource_type: "license",
        resource_id: "lic_1",
        metadata: {
          expires_at: { old: formatTimestamp(before.license.expires_at ?? 0), new: formatTimestamp(to.expires_at) },
          ...moved,
          ...(command.extend_by_days === undefined ? {} : { extend_by_days: command.extend_by_days })
        }
      }
    ])
  })

  it.each(["subscription", "time_limited", "trial"] as const)("renews a license of the type %s", (license_type) => {
    allowed(rowsIn({ expires_at: ahead }, { license_type }), renew, { extend_by_days: 1 })
  })

  it.each(["perpetual", "consumption"] as const)("refuses a license of the type %s in every state", (license_type) => {
    for (const status of ["active", "suspended", "expired"] as const) {
      const rows = rowsIn({ status, expires_at: license_type === "perpetual" ? undefined : past }, { license_type })
      const { refused } = refusedWith("LICENSE_NOT_RENEWABLE", rows, renew, { extend_by_days: 1 })
      assert.include(refused.message, license_type === "perpetual" ? "renew its maintenance" : "its expires_at")
    }
  })

  it("refuses a revoked license, whatever else is wrong", () => {
    const rows = rowsIn({ status: "revoked", expires_at: ahead }, { license_type: "perpetual" })
    const { refused } = refusedWith("LICENSE_STATE_CONFLICT", rows, renew, { expires_at: past, order_id: "ord_none" })
    assert.strictEqual(refused.detail, "revoked")
  })

  it.each([
    ["active", rowsIn({ expires_at: ahead })],
    ["grace_period", rowsIn({ expires_at: inGrace })],
    ["expired", rowsIn({ expires_at: past })],
    ["suspended", rowsIn({ status: "suspended", expires_at: ahead })]
  ] as const)("refuses an end that is not ahead: %s", (_, rows) => {
    for (const expires_at of [noon, noon - 1, past]) {
      assert.strictEqual(refusedWith("EXPIRY_NOT_IN_FUTURE", rows, renew, { expires_at }).refused.detail, "expires_at")
    }
    allowed(rows, renew, { expires_at: ahead + 1 })
  })

  it.each(["active", "suspended"] as const)("never shortens a license: %s", (status) => {
    const rows = rowsIn({ status, expires_at: ahead })
    for (const expires_at of [noon + 1, ahead - 1, ahead]) {
      const { refused } = refusedWith("RENEWAL_NOT_LATER", rows, renew, { expires_at })
      assert.strictEqual(refused.detail, "expires_at")
      assert.include(refused.message, formatTimestamp(ahead))
    }
    allowed(rows, renew, { expires_at: ahead + 1 })
  })

  it("refuses an end that no date-time can name, or that comes before the start", () => {
    const { refused } = refusedWith("VALIDATION_ERROR", active, renew, { extend_by_days: 2_147_483_647 })
    assert.strictEqual(refused.detail, "extend_by_days")
    const days = Math.floor((Date.UTC(10_000, 0) - 1 - ahead) / day)
    allowed(active, renew, { extend_by_days: days })
    refusedWith("VALIDATION_ERROR", active, renew, { extend_by_days: days + 1 })
    const later = rowsIn({ expires_at: undefined, starts_at: noon + 5 * day })
    refusedWith("VALIDATION_ERROR", later, renew, { expires_at: noon + 5 * day })
    allowed(later, renew, { expires_at: noon + 5 * day + 1 })
  })

  it("tells the order and subscription in the event, the order's own subscription too, and stores neither", () => {
    const told = (command: Partial<RenewCommand>) => {
      const { after, changes } = allowed(active, renew, { extend_by_days: 1, ...command })
      assert.isUndefined(after.license.order_id)
      assert.isUndefined(after.license.subscription_id)
      const { order_id, subscription_id } = changes.events?.[0]?.metadata ?? {}
      return [order_id, subscription_id]
    }
    assert.deepStrictEqual(told({ order_id: "ord_alone" }), ["ord_alone", undefined])
    assert.deepStrictEqual(told({ order_id: "ord_subscribed" }), ["ord_subscribed", "sub_1"])
    assert.deepStrictEqual(told({ order_id: "ord_subscribed", subscription_id: "sub_1" }), ["ord_subscribed", "sub_1"])
    assert.deepStrictEqual(told({ subscription_id: "sub_2" }), [undefined, "sub_2"])
  })

  it("leaves the links that the license was issued with", () => {
    const rows = rowsIn({ expires_at: ahead, order_id: "ord_origin", subscription_id: "sub_origin" })
    const { after } = allowed(rows, renew, { extend_by_days: 1, order_id: "ord_subscribed" })
    assert.deepInclude(after.license, { order_id: "ord_origin", subscription_id: "sub_origin" })
  })

  it.each([
    ["NOT_FOUND", "order_id", { order_id: "ord_none" }],
    ["NOT_FOUND", "order_id", { order_id: "sub_1" }],
    ["NOT_FOUND", "subscription_id", { order_id: "ord_foreign", subscription_id: "sub_none" }],
    ["LINKAGE_MISMATCH", "order_id", { order_id: "ord_foreign" }],
    ["LINKAGE_MISMATCH", "subscription_id", { subscription_id: "sub_foreign" }],
    ["LINKAGE_MISMATCH", "subscription_id", { order_id: "ord_subscribed", subscription_id: "sub_2" }],
    ["LINKAGE_MISMATCH", "subscription_id", { order_id: "ord_alone", subscription_id: "sub_1" }]
  ] as const)("answers %s for %s", (code, detail, named) => {
    assert.strictEqual(refusedWith(code, active, renew, { extend_by_days: 1, ...named }).refused.detail, detail)
  })

  it("ends later than before, and refuses all other dates", () => {
    fc.assert(
      fc.property(anyRows, fc.integer({ min: noon - 400 * day, max: noon + 400 * day }), (rows, expires_at) => {
        const { before, after, refused } = perform(rows, renew, { expires_at }, noon)
        if (refused?.code === "RENEWAL_NOT_LATER") assert.isAtMost(expires_at, before.license.expires_at!)
        if (refused?.code === "EXPIRY_NOT_IN_FUTURE") assert.isAtMost(expires_at, noon)
        if (refused === undefined) assert.isAbove(after.license.expires_at!, before.license.expires_at ?? noon)
      })
    )
  })

  it("never ends earlier than asked, whatever state the license is in", () => {
    fc.assert(
      fc.property(anyRows, fc.integer({ min: 1, max: 4000 }), (rows, extend_by_days) => {
        const { before, after, refused } = perform(rows, renew, { extend_by_days }, noon)
        if (refused !== undefined) return
        const pending = pendingTermEndsAt(viewOf(before), noon)
        const { status, expires_at = pending ?? 0 } = before.license
        assert.strictEqual(after.license.expires_at, Math.max(expires_at, noon) + extend_by_days * day)
        assert.strictEqual(after.license.status, status === "suspended" ? "suspended" : "active")
      })
    )
  })
})

describe("a renewal's body", () => {
  const accepts = Schema.is(Schema.toType(LicenseRenew))

  it("has exactly one of expires_at and extend_by_days, of at least one whole day", () => {
    assert.isTrue(accepts({ expires_at: ahead }))
    assert.isTrue(accepts({ extend_by_days: 1 }))
    for (const extend_by_days of [0, -1, 1.5, 2 ** 31]) assert.isFalse(accepts({ extend_by_days }))
    assert.isFalse(accepts({}))
    assert.isFalse(accepts({ order_id: "ord_1" }))
    assert.isFalse(accepts({ expires_at: ahead, extend_by_days: 1 }))
  })
})

describe("a renewal of a pending term", () => {
  const feature = assignmentOf("plan", { expires_after_days: 7 })

  it("begins it with its features, at the license's start if that is later", () => {
    const starts_at = noon + 5 * day
    const rows = rowsOf({ license: { expires_at: undefined, term_days: 30, starts_at }, assignments: [feature] })
    const { after, changes } = allowed(rows, renew, { extend_by_days: 1 })
    assert.deepInclude(after.license, { expires_at: noon + 36 * day, term_days: undefined, term_began_at: starts_at })
    assert.deepStrictEqual(changes.assignments, [
      { ...feature, expires_at: starts_at + 7 * day, expires_after_days: undefined, updated_at: noon }
    ])
    assert.containsAllKeys(changes.events?.[0]?.metadata, ["features.plan"])
  })
})

describe("a renewal", () => {
  it("gives the devices of an expired license a whole interval, and those of others none", () => {
    const dueOf = (license: RowsInput["license"]) =>
      allowed(rowsIn(license), renew, { extend_by_days: 30 }).after.license.not_due_before
    assert.strictEqual(dueOf({ expires_at: past }), dueAfter(noon))
    assert.isUndefined(dueOf({ expires_at: inGrace }))
    assert.isUndefined(dueOf({ expires_at: ahead }))
  })

  it("may end at the last instant that a date-time can name, and names its field otherwise", () => {
    allowed(active, renew, { expires_at: latest })
    const { refused } = refusedWith("VALIDATION_ERROR", active, renew, { expires_at: latest + 1 })
    assert.strictEqual(refused.detail, "expires_at")
    const perpetual = rowsIn({ expires_at: undefined }, { license_type: "perpetual" })
    assert.strictEqual(
      refusedWith("LICENSE_NOT_RENEWABLE", perpetual, renew, { expires_at: ahead }).refused.detail,
      "perpetual"
    )
  })

  it("reads the order and the subscription that it names", () => {
    assert.deepStrictEqual(renew.needs?.({ extend_by_days: 1, order_id: "ord_1", subscription_id: "sub_1" }), {
      links: { order: "ord_1", subscription: "sub_1" }
    })
  })
})
