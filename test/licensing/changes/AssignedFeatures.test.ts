/** What an assignment keeps, when it ends, how the API shows it, and what is lost with it. */
import { assert, describe, it } from "@effect/vitest"
import { type AssignCommand, assign, presentAt, unassign } from "../../../src/licensing/changes/Assignments.ts"
import { allowed, refusedWith } from "../../support/rules/LicenseRules.ts"
import { assignmentOf, day, featureOf, noon, rowsOf } from "../../support/rules/Licenses.ts"

const id = "feat_api"
const features = [featureOf("api")]
const unassigned = rowsOf({ features })
const start = rowsOf({ features, assignments: [assignmentOf("api", { expires_at: noon + day })] })

describe("a feature that a policy took away", () => {
  it("continues its count when it is assigned, and is kept no longer", () => {
    const kept = { total_consumptions: 7, extra_credits: 2 }
    const rows = rowsOf({ features, license: { kept_counts: { [id]: kept, feat_other: 3 } } })
    const { after, changes } = allowed(rows, assign, { feature_id: id, max_consumptions: 10 })
    assert.deepInclude(after.assignments[0], kept)
    assert.deepStrictEqual(changes.license, { kept_counts: { feat_other: 3 }, updated_at: noon })
    assert.notProperty(allowed(unassigned, assign, { feature_id: id }).changes.license, "kept_counts")
  })
})

describe("the end of an assigned feature", () => {
  const endOf = (command: Omit<AssignCommand, "feature_id">, before: Parameters<typeof assignmentOf>[1] = {}) => {
    const rows = rowsOf({ features, assignments: [assignmentOf("api", before)] })
    const { expires_after_days, expires_at, expires_with_license } = allowed(rows, assign, {
      ...{ feature_id: id, max_consumptions: 1 },
      ...command
    }).after.assignments[0]!
    return { expires_after_days, expires_at, expires_with_license }
  }
  const none = { expires_after_days: undefined, expires_at: undefined, expires_with_license: undefined }

  it("is that of the license if the request says so, in place of a date or days", () => {
    const bound = { ...none, expires_with_license: true }
    assert.deepStrictEqual(endOf({ expires_with_license: true }, { expires_at: noon + day }), bound)
    assert.deepStrictEqual(endOf({ expires_with_license: true }, { expires_after_days: 7 }), bound)
    assert.deepStrictEqual(endOf({}, { expires_with_license: true }), bound)
  })

  it("is no longer that of the license if the request says so, or gives a date", () => {
    assert.deepStrictEqual(endOf({ expires_with_license: false }, { expires_with_license: true }), none)
    assert.deepStrictEqual(endOf({ expires_at: noon + day }, { expires_with_license: true }), {
      ...none,
      expires_at: noon + day
    })
    assert.deepStrictEqual(endOf({ expires_at: null }, { expires_at: noon + day }), none)
    assert.deepStrictEqual(endOf({ expires_with_license: false }, { expires_after_days: 7 }), {
      ...none,
      expires_after_days: 7
    })
  })

  it("is told in the event, also if only its kind changes", () => {
    const rows = rowsOf({ features, assignments: [assignmentOf("api", { expires_after_days: 7 })] })
    const { changes } = allowed(rows, assign, { feature_id: id, expires_at: null })
    assert.lengthOf(changes.events ?? [], 1)
    const bound = allowed(start, assign, { feature_id: id, expires_with_license: true })
    assert.containsAllKeys(bound.changes.events?.[0]?.metadata["changes"], ["expires_with_license", "expires_at"])
  })
})

describe("an assignment as the API shows it", () => {
  const shown = (given: Parameters<typeof assignmentOf>[1]) => {
    const rows = rowsOf({ features, assignments: [assignmentOf("api", given)] })
    return allowed(rows, assign, { feature_id: id }).reply
  }

  it("has credits, overage and periods where the quota has them", () => {
    const period = { reset_period: "day", period_anchor: noon, period_start: noon, resets_at: noon + day } as const
    const reply = shown({ ...period, max_consumptions: 10, overage_max: 5, rolled_over: 3 })
    assert.deepInclude(reply, { max_consumptions: 10, remaining: 13, extra_credits: 0, overage: 0, overage_max: 5 })
    assert.deepInclude(reply, { rolled_over: 3, period_start: noon, resets_at: noon + day, reset_period: "day" })
    assert.deepInclude(shown({ max_consumptions: 10, extra_credits: 4 }), { extra_credits: 4, remaining: 10 })
    assert.deepInclude(shown({ max_consumptions: 10, total_consumptions: 12, overage: 2 }), {
      overage: 2,
      remaining: 0
    })
  })

  it("has none of them otherwise", () => {
    const reply = shown({ max_consumptions: 10, total_consumptions: 4 })
    for (const field of [
      "extra_credits",
      "overage",
      "rolled_over",
      "period_start",
      "resets_at",
      "expires_with_license"
    ])
      assert.notProperty(reply, field)
    for (const field of ["max_consumptions", "remaining"]) assert.notProperty(shown({}), field)
    assert.isTrue(shown({ expires_with_license: true }).expires_with_license)
  })
})

describe("what is lost with an assignment", () => {
  const removed = (given: Parameters<typeof assignmentOf>[1]) =>
    allowed(rowsOf({ features, assignments: [assignmentOf("api", given)] }), unassign, { feature_id: id }).changes

  it("is in the ledger: its count, credits and overage", () => {
    const entry = { feature_id: id, action: "reset", balance_after: 0 } as const
    assert.deepStrictEqual(removed({ total_consumptions: 9, extra_credits: 4, overage: 2 }).ledger, [
      { ...entry, amount: -9, credits: -4, overage: -2 }
    ])
    assert.deepStrictEqual(removed({ total_consumptions: 9 }).ledger, [{ ...entry, amount: -9 }])
    assert.deepStrictEqual(removed({ extra_credits: 4 }).ledger, [{ ...entry, amount: 0, credits: -4 }])
    assert.deepStrictEqual(removed({ extra_credits: 0 }).ledger, [])
    assert.deepStrictEqual(removed({}).license, { updated_at: noon })
  })

  it("is refused by name", () => {
    assert.strictEqual(refusedWith("NOT_FOUND", unassigned, unassign, { feature_id: id }).refused.detail, "feature_id")
    const { refused } = refusedWith("NOT_FOUND", unassigned, assign, { feature_id: "feat_none" })
    assert.deepStrictEqual([refused.detail, refused.message.includes("feature")], ["feature_id", true])
    const revoked = rowsOf({ license: { status: "revoked" }, features })
    assert.strictEqual(
      refusedWith("LICENSE_STATE_CONFLICT", revoked, assign, { feature_id: id }).refused.detail,
      "revoked"
    )
  })

  it("needs no more than the feature and the license's subscription", () => {
    assert.deepStrictEqual(assign.needs?.({ feature_id: id }), { featureId: id, ownSubscription: true })
  })
})

describe("a feature of the policy", () => {
  it("becomes the license's own by an assignment, which alone is worth an event", () => {
    const rows = rowsOf({ features, assignments: [assignmentOf("api", { from_policy: true, max_consumptions: 5 })] })
    const { after, changes } = allowed(rows, assign, { feature_id: id })
    assert.isFalse(after.assignments[0]?.from_policy)
    assert.deepStrictEqual(changes.events?.[0]?.metadata["changes"], { from_policy: { old: true, new: false } })
    assert.deepStrictEqual(changes.ledger, [])
  })
})

describe("an assignment at an instant", () => {
  const ended = assignmentOf("api", {
    ...{ max_consumptions: 10, total_consumptions: 4, reset_period: "day" },
    ...{ period_anchor: noon - day, period_start: noon - day, resets_at: noon }
  })
  const shownAt = (status: "active" | "revoked", now: number) => presentAt("lic_1", ended, undefined, status, now)

  it("is in the current period, also before the end of the last one is recorded", () => {
    assert.deepInclude(shownAt("active", noon - 1), { total_consumptions: 4, remaining: 6, resets_at: noon })
    assert.deepInclude(shownAt("active", noon), { total_consumptions: 0, remaining: 10, resets_at: noon + day })
  })

  it("is answered in a period of the subscription that has begun", () => {
    const subscription = { kind: "subscription", id: "sub_1", product_id: "prod_1" } as const
    const weekly = { reset_period: "week", resets_at: noon + 6 * day } as const
    const rows = rowsOf({
      ...{ features, assignments: [{ ...ended, ...weekly }], license: { subscription_id: "sub_1" } },
      links: [{ ...subscription, period_start: noon - 1, period_end: noon + day }]
    })
    const { reply } = allowed(rows, assign, { feature_id: id, reset_anchor: "subscription" })
    assert.deepInclude(reply, { total_consumptions: 0, remaining: 10, period_start: noon - 1, resets_at: noon + day })
  })

  it("stays in the last period of a revoked license", () => {
    assert.deepInclude(shownAt("revoked", noon), { total_consumptions: 4, remaining: 6 })
    assert.notProperty(shownAt("revoked", noon), "resets_at")
  })
})
