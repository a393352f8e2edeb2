/** What is kept of features that a policy took away, and the quotas of features that are assigned by hand. */
import { assert, describe, it } from "@effect/vitest"
import { periodSource, quotaAfter, refuseQuota } from "../../../src/licensing/changes/AssignedQuota.ts"
import { assign } from "../../../src/licensing/changes/Assignments.ts"
import { keptCounts, keptUsage, usageIn } from "../../../src/licensing/changes/KeptCounts.ts"
import { changePolicy } from "../../../src/licensing/changes/PolicyChange.ts"
import type { LicenseRecord, LinkRecord } from "../../../src/licensing/model/LicenseRecords.ts"
import { allowed, settled, viewOf } from "../../support/rules/LicenseRules.ts"
import { assignmentOf, coming, day, featureOf, noon, rowsOf } from "../../support/rules/Licenses.ts"

const viewWith = (license: Partial<LicenseRecord>, links: ReadonlyArray<LinkRecord> = []) =>
  viewOf(rowsOf({ license, links }))

const periodic = {
  total_consumptions: 7,
  credits_used: 1,
  overage: 2,
  rolled_over: 3,
  extra_credits: 4,
  period_start: noon - day,
  resets_at: noon + day
}

describe("the counts that are kept", () => {
  it("are all that a feature has counted, and nothing else of its assignment", () => {
    assert.deepStrictEqual(usageIn(assignmentOf("a", periodic)), periodic)
    assert.deepStrictEqual(usageIn(assignmentOf("a", { total_consumptions: 7 })), { total_consumptions: 7 })
  })

  it("are a plain number without periods, and none of features without use", () => {
    const lost = [
      assignmentOf("plain", { total_consumptions: 5 }),
      assignmentOf("periodic", periodic),
      assignmentOf("credits", { total_consumptions: 0, extra_credits: 9 }),
      assignmentOf("rolled", { total_consumptions: 0, rolled_over: 8 }),
      assignmentOf("unused", { extra_credits: 0, rolled_over: 0 })
    ]
    assert.deepStrictEqual(keptCounts(viewWith({}), [], lost), {
      feat_plain: 5,
      feat_periodic: periodic,
      feat_credits: { total_consumptions: 0, extra_credits: 9 },
      feat_rolled: { total_consumptions: 0, rolled_over: 8 }
    })
    assert.isUndefined(keptCounts(viewWith({}), [], [assignmentOf("unused")]))
  })

  it("stay until their feature is assigned again", () => {
    const view = viewWith({ kept_counts: { feat_a: 3, feat_b: periodic } })
    assert.deepStrictEqual(keptCounts(view, [assignmentOf("a")], []), { feat_b: periodic })
    assert.isUndefined(keptCounts(view, [assignmentOf("a"), assignmentOf("b")], []))
    assert.deepStrictEqual(keptUsage(view, "feat_a"), { total_consumptions: 3 })
    assert.deepStrictEqual(keptUsage(view, "feat_b"), periodic)
    assert.isUndefined(keptUsage(view, "feat_c"))
    assert.isUndefined(keptUsage(viewWith({}), "feat_a"))
  })
})

describe("a quota with periods that returns", () => {
  const quota = { max_consumptions: 100, reset_period: "day", rollover_max: 50, overage_max: 9 } as const
  const count = { total_consumptions: 80, overage: 2, extra_credits: 4 }
  const returning = (period_start: number) => {
    const start = rowsOf()
    const rows = rowsOf({
      license: {
        starts_at: noon - 9 * day,
        kept_counts: { feat_a: { ...count, period_start, resets_at: period_start + day } }
      },
      features: [featureOf("a")],
      targets: [{ policy: start.policy, product_id: "prod_1", features: [coming("a", quota)] }]
    })
    return [
      allowed(rows, changePolicy, { policy_id: "pol_1" }),
      allowed(rows, assign, { feature_id: "feat_a", ...quota })
    ].map(({ after, changes }) => {
      assert.isUndefined(after.license.kept_counts)
      // The clock has nothing left to do.
      assert.deepStrictEqual(settled(after, noon), after)
      return { assignment: after.assignments[0], changes }
    })
  }

  it("goes on in the same period", () => {
    for (const { assignment, changes } of returning(noon)) {
      assert.deepInclude(assignment, { ...count, period_start: noon, resets_at: noon + day })
      assert.deepStrictEqual(changes.ledger, [])
      assert.lengthOf(changes.events!, 1)
    }
  })

  it("begins anew after its period, with bought credits and nothing from the time without it", () => {
    for (const { assignment, changes } of returning(noon - 3 * day)) {
      const begun = { total_consumptions: 0, overage: undefined, rolled_over: undefined, extra_credits: 4 }
      assert.deepInclude(assignment, { ...begun, period_start: noon, resets_at: noon + day })
      assert.deepStrictEqual(changes.ledger, [
        { feature_id: "feat_a", action: "period_reset", amount: -80, balance_after: 0, max_after: 100 }
      ])
      const { event_type, metadata } = changes.events!.at(-1)!
      assert.strictEqual(event_type, "usage.period_closed")
      assert.deepInclude(metadata, { consumed: 80, overage: 2, rolled_over: 0 })
    }
  })
})

describe("a quota without periods", () => {
  const resultOf = (resets_at: number) => {
    const kept = { total_consumptions: 80, credits_used: 3, overage: 2, extra_credits: 4, period_start: noon - day }
    const license = { kept_counts: { feat_a: { ...kept, resets_at } } }
    const rows = rowsOf({ license, features: [featureOf("a")] })
    const { after, changes } = allowed(rows, assign, { feature_id: "feat_a", max_consumptions: 100 })
    return { assignment: after.assignments[0], ledger: changes.ledger, last: changes.events!.at(-1)! }
  }

  it("continues the count of a period that has not ended", () => {
    const { assignment, last, ledger } = resultOf(noon + 1)
    assert.deepInclude(assignment, { total_consumptions: 80, overage: 2, extra_credits: 4 })
    assert.deepStrictEqual(ledger, [])
    assert.strictEqual(last.event_type, "license.feature_assigned")
  })

  it("begins at zero after the period, and tells its usage", () => {
    const { assignment, last, ledger } = resultOf(noon)
    const begun = { total_consumptions: 0, credits_used: undefined, overage: undefined, extra_credits: 4 }
    assert.deepInclude(assignment, begun)
    assert.deepStrictEqual(ledger, [
      { feature_id: "feat_a", action: "period_reset", amount: -80, balance_after: 0, max_after: 100 }
    ])
    assert.strictEqual(last.event_type, "usage.period_closed")
    assert.deepInclude(last.metadata, { consumed: 80, credits_used: 3, overage: 2, rolled_over: 0 })
    assert.notProperty(last.metadata, "resets_at")
  })
})

describe("the quota of an assignment", () => {
  const before = assignmentOf("a", {
    max_consumptions: 10,
    reset_period: "month",
    reset_anchor: "subscription",
    rollover_max: 5,
    overage_max: 2
  })
  const kept = {
    max_consumptions: 10,
    reset_period: "month",
    reset_anchor: "subscription",
    rollover_max: 5,
    overage_max: 2
  } as const

  it("keeps what is absent, and clears what is null", () => {
    assert.deepStrictEqual(quotaAfter(before, {}), kept)
    assert.deepStrictEqual(quotaAfter(before, { max_consumptions: 20, rollover_max: null }), {
      ...kept,
      max_consumptions: 20,
      rollover_max: undefined
    })
  })

  it("keeps nothing of periods without a period", () => {
    const none = { reset_period: undefined, reset_anchor: undefined, rollover_max: undefined }
    assert.deepStrictEqual(quotaAfter(before, { reset_period: null }), { ...kept, ...none })
    assert.deepStrictEqual(quotaAfter(undefined, { max_consumptions: 1 }), {
      ...none,
      max_consumptions: 1,
      overage_max: undefined
    })
  })

  it("is refused if it contradicts itself, naming a field of the request", () => {
    const { license } = viewWith({})
    const without = { ...kept, max_consumptions: undefined }
    const detailOf = (given: Parameters<typeof refuseQuota>[2]) => refuseQuota({ license }, without, given)?.detail
    const named = detailOf({ max_consumptions: null })
    assert.strictEqual(named, "max_consumptions")
    const other = detailOf({})
    assert.isDefined(other)
    assert.notStrictEqual(other, "max_consumptions")
    assert.strictEqual(detailOf({ [other!]: 1, max_consumptions: null }), other)
  })

  it("may follow a subscription only if the license has one", () => {
    const quota = { max_consumptions: 10, reset_period: "month" } as const
    const refused = (given: Parameters<typeof refuseQuota>[2], subscription_id?: string) =>
      refuseQuota({ license: { subscription_id } }, quota, given)?.detail
    assert.strictEqual(refused({ reset_period: "subscription" }), "reset_period")
    assert.strictEqual(refused({ reset_anchor: "subscription" }), "reset_anchor")
    assert.isUndefined(refused({ reset_period: "month", reset_anchor: "license" }))
    assert.isUndefined(refused({ reset_period: "subscription" }, "sub_1"))
  })
})

describe("the subscription whose periods a quota follows", () => {
  const order: LinkRecord = { kind: "order", id: "ord_1", product_id: "prod_1", subscription_id: "sub_1" }
  const subscription: LinkRecord = { kind: "subscription", id: "sub_1", product_id: "prod_1" }

  it.each([
    ["none without a link", {}, [order, subscription], undefined],
    ["the license's own", { subscription_id: "sub_1" }, [subscription], subscription],
    ["what the order says of it", { subscription_id: "sub_1", order_id: "ord_1" }, [order], order],
    ["not of an order of another one", { subscription_id: "sub_2", order_id: "ord_1" }, [order], undefined],
    [
      "its own before the order's",
      { subscription_id: "sub_1", order_id: "ord_1" },
      [order, subscription],
      subscription
    ],
    ["none of an order without one", { order_id: "ord_2" }, [{ kind: "order", id: "ord_2" }], undefined],
    ["none that was not looked up", { subscription_id: "sub_1" }, [order], undefined]
  ] as ReadonlyArray<readonly [string, Partial<LicenseRecord>, ReadonlyArray<LinkRecord>, LinkRecord | undefined]>)(
    "is %s",
    (_, license, links, expected) => {
      const view = viewWith(license, links)
      assert.deepStrictEqual(periodSource(view), { license: view.license, subscription: expected })
    }
  )
})
