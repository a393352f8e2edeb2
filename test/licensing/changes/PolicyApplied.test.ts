/** A move to the policy that a license has gives it what the policy has now. */
import { assert, describe, it } from "@effect/vitest"
import { unassign } from "../../../src/licensing/changes/Assignments.ts"
import { changePolicy, type PolicyChangeCommand } from "../../../src/licensing/changes/PolicyChange.ts"
import { resetUsage, type UsageResetCommand } from "../../../src/licensing/changes/UsageReset.ts"
import type { Assignment, TargetPolicy } from "../../../src/licensing/model/LicenseRecords.ts"
import { allowed, settled } from "../../support/rules/LicenseRules.ts"
import { assignmentOf, coming, day, noon, rowsOf } from "../../support/rules/Licenses.ts"

describe("a move to the policy that the license has", () => {
  const came = { from_policy: true }
  const applied = (
    features: TargetPolicy["features"],
    assignments: ReadonlyArray<Assignment>,
    command: Partial<PolicyChangeCommand> = {}
  ) => {
    const start = rowsOf({ assignments })
    const rows = rowsOf({ assignments, targets: [{ policy: start.policy, product_id: "prod_1", features }] })
    const moved = allowed(rows, changePolicy, { policy_id: "pol_1", ...command })
    // Once more changes nothing.
    const { changes } = allowed(moved.after, changePolicy, { policy_id: "pol_1", ...command })
    assert.deepStrictEqual(changes, {})
    return moved
  }

  it("assigns what the policy gained, changes what it changed, and removes what it lost", () => {
    const { after } = applied(
      [
        coming("gained", { max_consumptions: 9 }),
        coming("changed", { max_consumptions: 5, enabled: false, expires_after_days: 3 }),
        coming("noted", { metadata: { note: "new" } }),
        coming("own", { max_consumptions: 1 })
      ],
      [
        assignmentOf("changed", { ...came, max_consumptions: 10, total_consumptions: 7, expires_at: noon + day }),
        assignmentOf("noted", { ...came }),
        assignmentOf("lost", { ...came }),
        assignmentOf("own", { max_consumptions: 50 })
      ]
    )
    const has = Object.fromEntries(after.assignments.map((one) => [one.feature_code, one]))
    assert.hasAllKeys(has, ["gained", "changed", "noted", "own"])
    assert.deepInclude(has["gained"], { max_consumptions: 9, from_policy: true, total_consumptions: 0 })
    const changed = { max_consumptions: 5, enabled: false, total_consumptions: 7, expires_at: noon + day }
    assert.deepInclude(has["changed"], changed)
    assert.deepInclude(has["noted"], { metadata: { note: "new" } })
    assert.deepInclude(has["own"], { max_consumptions: 50, from_policy: false })
    assert.hasAllKeys(after.events.at(-1)?.metadata["changes"], [
      "features.gained",
      "features.changed",
      "features.lost"
    ])
  })

  it("counts on where a feature that the policy lost returns, but not one that was removed by hand", () => {
    const lost = applied([], [assignmentOf("lost", { ...came, total_consumptions: 7 })])
    assert.deepStrictEqual(lost.after.assignments, [])
    assert.deepStrictEqual(lost.changes.ledger, [])
    const target = (features: TargetPolicy["features"]) => [
      { policy: lost.after.policy, product_id: "prod_1", features }
    ]
    const again = { ...lost.after, targets: target([coming("lost", { max_consumptions: 9 })]) }
    const back = allowed(again, changePolicy, { policy_id: "pol_1" })
    const [returned] = back.after.assignments
    assert.deepInclude(returned, { total_consumptions: 7, max_consumptions: 9 })
    const removed = allowed(back.after, unassign, { feature_id: returned!.feature_id })
    const anew = allowed({ ...removed.after, targets: again.targets }, changePolicy, { policy_id: "pol_1" })
    assert.strictEqual(anew.after.assignments[0]?.total_consumptions, 0)
  })

  it("ends and begins expiries as the policy has days for a feature or not", () => {
    const { after } = applied(
      [coming("ends"), coming("begins", { expires_after_days: 2 })],
      [assignmentOf("ends", { ...came, expires_at: noon + day }), assignmentOf("begins", { ...came })]
    )
    const expiries = Object.fromEntries(after.assignments.map((one) => [one.feature_code, one.expires_at]))
    assert.deepStrictEqual(expiries, { ends: undefined, begins: noon + 2 * day })
  })

  it("records no expiry of a feature that ended while it was disabled and is enabled again", () => {
    const ended = { ...came, enabled: false, expires_at: noon - day }
    const { after } = applied([coming("off", { expires_after_days: 3 })], [assignmentOf("off", ended)])
    assert.deepInclude(after.assignments[0], { enabled: true, expires_at: noon - day })
    assert.deepStrictEqual(settled(after, noon).events, after.events)
  })

  it("only adds with keep_features", () => {
    const { after } = applied(
      [coming("gained"), coming("changed", { max_consumptions: 5 })],
      [assignmentOf("changed", { ...came }), assignmentOf("lost", { ...came })],
      { keep_features: true }
    )
    assert.sameMembers(
      after.assignments.map(({ feature_code, max_consumptions }) => `${feature_code} ${max_consumptions}`),
      ["gained undefined", "changed undefined", "lost undefined"]
    )
    for (const { from_policy } of after.assignments) assert.isTrue(from_policy)
  })

  it("leaves the features that an earlier move to it has kept", () => {
    const start = rowsOf({ assignments: ["old", "both"].map((code) => assignmentOf(code, came)) })
    const features = [coming("both", { max_consumptions: 5 }), coming("new")]
    const targets = [{ policy: { ...start.policy, id: "pol_2" }, product_id: "prod_1", features }]
    const { after } = allowed({ ...start, targets }, changePolicy, { policy_id: "pol_2", keep_features: true })
    assert.deepStrictEqual(
      after.assignments.map(({ feature_code, from_policy, max_consumptions }) => [
        feature_code,
        from_policy,
        max_consumptions
      ]),
      [
        ["old", false, undefined],
        ["both", false, undefined],
        ["new", true, undefined]
      ]
    )
    assert.deepStrictEqual(allowed(after, changePolicy, { policy_id: "pol_2" }).changes, {})
  })

  it.each<
    readonly [Partial<UsageResetCommand>, { readonly reset_period?: "month" }, max: number, from_policy: boolean]
  >([
    [{ add_credits: 50 }, {}, 150, false],
    [{ max_consumptions: 30 }, {}, 30, false],
    [{ max_consumptions: 30 }, { reset_period: "month" }, 30, false],
    [{ add_credits: 50 }, { reset_period: "month" }, 90, true],
    [{ total_consumptions: 5 }, {}, 90, true],
    [{ max_consumptions: 80, add_credits: 20, total_consumptions: 5 }, {}, 90, true]
  ])("leaves a maximum that was set by hand: usage reset %j of %j", (reset, quota, max_consumptions, from_policy) => {
    const before = assignmentOf("api", { ...came, max_consumptions: 100, ...quota })
    const sold = allowed(rowsOf({ assignments: [before] }), resetUsage, { feature_code: "api", ...reset })
    const recorded = sold.changes.events?.[0]?.metadata["changes"] as object
    assert.strictEqual("from_policy" in recorded, !from_policy)
    const { after } = applied([coming("api", { max_consumptions: 90, ...quota })], sold.after.assignments)
    assert.deepInclude(after.assignments[0], { max_consumptions, from_policy })
  })
})

describe("a feature that the license's policy changed", () => {
  const moved = (before: Partial<Assignment>, feature: Partial<TargetPolicy["features"][number]>) => {
    const assignments = [assignmentOf("api", { from_policy: true, ...before })]
    const { policy } = rowsOf()
    const target = { policy, product_id: "prod_1", features: [coming("api", feature)] }
    const license = { expires_at: undefined, term_days: 30 }
    return allowed(rowsOf({ assignments, license, targets: [target] }), changePolicy, { policy_id: "pol_1" }).changes
  }

  it.each([
    [{}, { enabled: false }],
    [{ max_consumptions: 1 }, { max_consumptions: 2 }],
    [{}, { expires_after_days: 3 }],
    [{}, { expires_with_license: true }],
    [{ max_consumptions: 1 }, { max_consumptions: 1, overage_max: 4 }],
    [{}, { metadata: { note: "new" } }]
  ] as const)("is applied if it was %j and is %j", (before, feature) => {
    assert.deepInclude(moved(before, feature).assignments?.[0], feature)
  })

  it("is not written again if nothing of it changed, nor is the policy", () => {
    assert.deepStrictEqual(moved({ max_consumptions: 1 }, { max_consumptions: 1 }), {})
    assert.notProperty(moved({}, { enabled: false }), "policy")
  })
})
