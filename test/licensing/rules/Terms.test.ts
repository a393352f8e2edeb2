import { assert, describe, it } from "@effect/vitest"
import { renew } from "../../../src/licensing/changes/Renewal.ts"
import { update } from "../../../src/licensing/changes/Update.ts"
import { activate, deactivate } from "../../../src/licensing/rules/Activation.ts"
import { checkout, heartbeat } from "../../../src/licensing/rules/Floating.ts"
import { termOf } from "../../../src/licensing/rules/Terms.ts"
import { sha256Hex } from "../../../src/platform/signing/Digest.ts"
import { allowed, eventTypes, refusedWith, settled } from "../../support/rules/LicenseRules.ts"
import {
  activationOf,
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
