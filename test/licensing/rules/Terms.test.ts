import { assert, describe, it } from "@effect/vitest"
import { latest } from "../../../src/contract/api/Timestamp.ts"
import { renew } from "../../../src/licensing/changes/Renewal.ts"
import { update } from "../../../src/licensing/changes/Update.ts"
import { activate, deactivate } from "../../../src/licensing/rules/Activation.ts"
import { checkout, heartbeat } from "../../../src/licensing/rules/Floating.ts"
import {
  beginTerm,
  begunFeatures,
  pendingTermEndsAt,
  refusePast,
  refuseTerms,
  type Terms,
  termBeginsAt,
  termBegun,
  termOf
} from "../../../src/licensing/rules/Terms.ts"
import { sha256Hex } from "../../../src/platform/signing/Digest.ts"
import { allowed, eventTypes, refusedWith, settled, viewOf } from "../../support/rules/LicenseRules.ts"
import {
  activationOf,
  assignmentOf,
  day,
  hardware,
  keyHash,
  noon,
  type RowsInput,
  requestOf,
  rowsOf
} from "../../support/rules/Licenses.ts"

const pendingTerm = (rows: RowsInput = {}) =>
  rowsOf({
    ...rows,
    license: { expires_at: undefined, term_days: 30, ...rows.license },
    policy: {
      duration_days: 30,
      duration_starts: "first_activation",
      floating_timeout_minutes: 525_600,
      ...rows.policy
    }
  })

const checkoutOf = (name: string) => ({
  ...activationOf(hardware(name)),
  newLeaseId: `lse_${name}`,
  leaseToken: name,
  tokenHash: sha256Hex(name)
})

const begins = [
  ["activation", activate, activationOf(hardware("A")), "license.activated"],
  ["checkout", checkout, checkoutOf("A"), "lease.checked_out"]
] as const

describe("a pending term", () => {
  for (const [name, rule, command, event] of begins) {
    it(`begins with the first ${name}, in the same change`, () => {
      const { before, after, changes, reply } = allowed(pendingTerm(), rule as typeof activate, command, noon)
      assert.deepInclude(after.license, { expires_at: noon + 30 * day, term_days: undefined })
      assert.strictEqual(after.license.entitlement_counter, before.license.entitlement_counter + 1)
      assert.deepInclude(reply, { expires_at: "2030-02-14T12:00:00.000Z", access_ends_at: "2030-02-14T12:00:00.000Z" })
      assert.deepStrictEqual(eventTypes(changes), [event, "license.updated"])
      assert.deepStrictEqual(changes.events?.[1]?.metadata, {
        changes: { expires_at: { old: null, new: "2030-02-14T12:00:00.000Z" } }
      })
      for (const { expires_at } of after.leases) assert.strictEqual(expires_at, noon + 30 * day)
    })
  }

  it("begins with the heartbeat that takes a lapsed lease's seat again", () => {
    const pending = pendingTerm({ policy: { floating_timeout_minutes: 30 } })
    const taken = allowed(rowsOf({ policy: { floating_timeout_minutes: 30 } }), checkout, checkoutOf("A")).after
    const lapsed = settled({ ...taken, license: pending.license, policy: pending.policy }, noon + day / 2)
    const late = allowed(lapsed, heartbeat, { keyHash, tokenHash: sha256Hex("A") }, noon + day / 2)
    assert.deepInclude(late.after.license, { expires_at: noon + 30.5 * day, term_days: undefined })
    assert.strictEqual(late.after.license.entitlement_counter, lapsed.license.entitlement_counter + 1)
    assert.deepInclude(late.reply, { renewed: true, expires_at: "2030-02-15T00:00:00.000Z" })
    assert.deepStrictEqual(eventTypes(late.changes), ["lease.checked_out", "license.updated"])
  })

  it("begins once", () => {
    const { after } = allowed(pendingTerm(), activate, activationOf(hardware("A")))
    const left = allowed(after, deactivate, requestOf(hardware("A")), noon + day).after
    const again = allowed(left, activate, activationOf(hardware("A")), noon + 2 * day)
    assert.strictEqual(again.after.license.expires_at, noon + 30 * day)
    assert.deepStrictEqual(eventTypes(again.changes), ["license.activated"])
  })

  it("has the days of the policy of that moment, or its own if the policy has none any more", () => {
    const endsAt = (policy: RowsInput["policy"]) =>
      allowed(pendingTerm({ policy }), activate, activationOf(hardware("A"))).after.license.expires_at
    assert.strictEqual(endsAt({ duration_days: 10 }), noon + 10 * day)
    assert.strictEqual(endsAt({ duration_days: undefined }), noon + 30 * day)
    assert.strictEqual(endsAt({ duration_days: 10, duration_starts: "creation" }), noon + 30 * day)
  })

  it("is replaced by the expiry of an edit or a renewal; a renewal by days adds to its end", () => {
    const edited = allowed(pendingTerm(), update, { expires_at: noon + day }).after.license
    assert.deepInclude(edited, { expires_at: noon + day, term_days: undefined })
    const renewed = allowed(pendingTerm(), renew, { expires_at: noon + day }).after.license
    assert.deepInclude(renewed, { expires_at: noon + day, term_days: undefined })
    assert.strictEqual(allowed(pendingTerm(), renew, { extend_by_days: 5 }).after.license.expires_at, noon + 35 * day)
  })

  it("stays over other edits, and cannot be cleared", () => {
    assert.strictEqual(allowed(pendingTerm(), update, { customer_name: "Ada" }).after.license.term_days, 30)
    assert.strictEqual(allowed(pendingTerm(), update, { expires_at: null }).after.license.term_days, 30)
    refusedWith("VALIDATION_ERROR", rowsOf(), update, { expires_at: null })
  })
})

describe("the term of a new license", () => {
  const policy = { license_type: "time_limited", duration_days: 30, duration_starts: "creation" } as const
  const none = { maintenance_expires_at: undefined, term_days: undefined }

  it.each([
    [{}, { expires_at: noon + 30 * day, ...none }],
    [{ starts_at: noon + day }, { expires_at: noon + 31 * day, ...none }],
    [{ starts_at: noon - day }, { expires_at: noon + 30 * day, ...none }],
    [{ expires_at: noon + 1 }, { expires_at: noon + 1, ...none }]
  ])("from the creation, with %j", (given, expected) => {
    assert.deepStrictEqual(termOf(policy, given, noon), expected)
  })

  it("is the maintenance of a perpetual license", () => {
    const perpetual = { ...policy, license_type: "perpetual" } as const
    const ends = { expires_at: undefined, maintenance_expires_at: noon + 30 * day, term_days: undefined }
    assert.deepStrictEqual(termOf(perpetual, {}, noon), ends)
  })

  it("from the first activation, or without a duration", () => {
    const later = { ...policy, duration_starts: "first_activation" } as const
    assert.deepStrictEqual(termOf(later, {}, noon), { ...none, expires_at: undefined, term_days: 30 })
    assert.deepStrictEqual(termOf(later, { expires_at: noon + 1 }, noon), {
      ...none,
      expires_at: noon + 1
    })
    const endless = { license_type: "time_limited", duration_starts: "creation" } as const
    assert.deepStrictEqual(termOf(endless, {}, noon), { ...none, expires_at: undefined })
  })
})

describe("a perpetual license with a pending term", () => {
  const rows = pendingTerm({ policy: { license_type: "perpetual", duration_days: 90 } })

  it("gets its maintenance with the first activation, and no expiry", () => {
    const { after, changes } = allowed(rows, activate, activationOf(hardware("A")))
    assert.deepInclude(after.license, { maintenance_expires_at: noon + 90 * day, expires_at: undefined })
    assert.deepInclude(changes.license, { term_days: undefined, term_began_at: noon, updated_at: noon })
    assert.deepStrictEqual(changes.events?.[1]?.metadata, {
      changes: { maintenance_expires_at: { old: null, new: "2030-04-15T12:00:00.000Z" } }
    })
  })
})

describe("the pending days of features", () => {
  const plan = assignmentOf("plan", { expires_after_days: 7 })
  const planChanges = {
    "features.plan": { old: { enabled: true }, new: { enabled: true, expires_at: "2030-01-22T12:00:00.000Z" } }
  }

  it("begin with the license's term, in the same event", () => {
    const rows = pendingTerm({ assignments: [plan, assignmentOf("lasting")] })
    const { after, changes } = allowed(rows, activate, activationOf(hardware("A")))
    assert.deepStrictEqual(changes.assignments, [
      { ...plan, expires_at: noon + 7 * day, expires_after_days: undefined, updated_at: noon }
    ])
    assert.deepStrictEqual(changes.events?.[1], {
      event_type: "license.updated",
      resource_type: "license",
      resource_id: "lic_1",
      metadata: { changes: { expires_at: { old: null, new: "2030-02-14T12:00:00.000Z" }, ...planChanges } }
    })
    assert.strictEqual(after.license.entitlement_counter, rows.license.entitlement_counter + 1)
  })

  it("begin with the next use if an earlier version left them pending", () => {
    const rows = rowsOf({ assignments: [plan] })
    const begun = beginTerm(viewOf(rows), noon)
    assert.deepStrictEqual(begun?.license, { updated_at: noon })
    assert.deepStrictEqual(begun?.event.metadata, { changes: planChanges })
  })

  it("are over for a feature that has an end", () => {
    const ended = assignmentOf("plan", { expires_after_days: 7, expires_at: noon + day })
    assert.deepStrictEqual(begunFeatures({ assignments: [ended, assignmentOf("lasting")] }, noon, noon), [])
    assert.isUndefined(beginTerm(viewOf(rowsOf({ assignments: [ended] })), noon))
  })

  it("begin together with the periods that wait for the term", () => {
    const metered = assignmentOf("plan", { expires_after_days: 7, max_consumptions: 9, reset_period: "month" })
    const [begun] = begunFeatures({ assignments: [metered] }, noon + day, noon)
    assert.strictEqual(begun?.before, metered)
    assert.deepInclude(begun?.after, {
      expires_at: noon + 8 * day,
      period_anchor: noon + day,
      period_start: noon + day,
      updated_at: noon
    })
    const onlyPeriods = { ...metered, expires_after_days: undefined }
    const [waiting] = begunFeatures({ assignments: [onlyPeriods] }, noon, noon)
    assert.notProperty(waiting?.after, "expires_at")
    assert.strictEqual(waiting?.after.period_anchor, noon)
  })
})

describe("a term", () => {
  const pending = { term_days: 30 }

  it("begins now or at a later start, but not while it is pending", () => {
    assert.isUndefined(termBeginsAt(pending, noon))
    assert.isUndefined(termBeginsAt({ ...pending, starts_at: noon + day }, noon))
    assert.strictEqual(termBeginsAt({ ...pending, expires_at: noon + day }, noon), noon)
    assert.strictEqual(termBeginsAt({ ...pending, maintenance_expires_at: noon + day }, noon), noon)
    assert.strictEqual(termBeginsAt({}, noon), noon)
    assert.strictEqual(termBeginsAt({ starts_at: noon + day }, noon), noon + day)
    assert.strictEqual(termBeginsAt({ starts_at: noon - day }, noon), noon)
  })

  it("has begun only if it was pending", () => {
    assert.deepStrictEqual(termBegun(pending, noon), { term_began_at: noon })
    assert.isUndefined(termBegun(pending, undefined))
    assert.isUndefined(termBegun({}, noon))
    assert.isUndefined(termBegun({ ...pending, expires_at: noon + day }, noon))
  })

  it("is not pending any more once an earlier version has set its end", () => {
    const endOf = (license: RowsInput["license"]) => pendingTermEndsAt(viewOf(pendingTerm({ license })), noon)
    assert.strictEqual(endOf({}), noon + 30 * day)
    assert.isUndefined(endOf({ expires_at: noon + day }))
    assert.isUndefined(endOf({ term_days: undefined }))
  })
})

describe("the dates of a license", () => {
  const cases: ReadonlyArray<readonly [Parameters<typeof refuseTerms>[0], Terms, string | undefined]> = [
    ["perpetual", {}, undefined],
    ["perpetual", { expires_at: noon }, "expires_at"],
    ["perpetual", { maintenance_expires_at: noon }, undefined],
    ["perpetual", { maintenance_expires_at: latest }, undefined],
    ["perpetual", { maintenance_expires_at: latest + 1 }, "maintenance_expires_at"],
    ["consumption", {}, undefined],
    ["consumption", { expires_at: noon }, undefined],
    ["consumption", { maintenance_expires_at: noon }, "maintenance_expires_at"],
    ["trial", {}, "expires_at"],
    ["subscription", {}, "expires_at"],
    ["time_limited", {}, "expires_at"],
    ["time_limited", { term_days: 1 }, undefined],
    ["time_limited", { expires_at: noon }, undefined],
    ["time_limited", { starts_at: noon - 1, expires_at: noon }, undefined],
    ["time_limited", { starts_at: noon, expires_at: noon }, "starts_at"],
    ["consumption", { starts_at: noon }, undefined],
    ["time_limited", { expires_at: latest }, undefined],
    ["time_limited", { expires_at: latest + 1 }, "starts_at"]
  ]
  it.each(cases)("of the type %s with %j are refused for %s", (type, terms, field) => {
    const refused = refuseTerms(type, terms)
    assert.strictEqual(refused?.detail, field)
    assert.strictEqual(refused?.code, field === undefined ? undefined : "VALIDATION_ERROR")
  })

  it("are refused if the license would be expired already", () => {
    assert.isUndefined(refusePast({}, noon))
    assert.isUndefined(refusePast({ expires_at: noon + 1 }, noon))
    assert.deepInclude(refusePast({ expires_at: noon }, noon), { code: "EXPIRY_NOT_IN_FUTURE", detail: "expires_at" })
  })
})
