/** Changes of policy that begin terms and features, revive licenses, and keep promises to devices. */
import { assert, describe, it } from "@effect/vitest"
import { changePolicy, type PolicyChangeCommand } from "../../../src/licensing/changes/PolicyChange.ts"
import type { PolicyRecord, TargetPolicy } from "../../../src/licensing/model/LicenseRecords.ts"
import { heartbeatDueAt } from "../../../src/vendor/policies/Policy.ts"
import { allowed, refusedWith } from "../../support/rules/LicenseRules.ts"
import { assignmentOf, coming, day, noon, type Rows, type RowsInput, rowsOf } from "../../support/rules/Licenses.ts"

const policyWith = (policy: Partial<PolicyRecord>) => rowsOf({ policy: { id: "pol_2", ...policy } }).policy

const targetOf = (policy: Partial<PolicyRecord> = {}, features: TargetPolicy["features"] = []): TargetPolicy => ({
  policy: policyWith(policy),
  product_id: "prod_1",
  features
})

/** A license that may move to one policy, `pol_2`. */
const movable = (target: TargetPolicy, rows: RowsInput = {}): Rows => {
  const start = rowsOf(rows)
  return rowsOf({ ...rows, targets: [target, { policy: start.policy, product_id: "prod_1", features: [] }] })
}

const toPro: PolicyChangeCommand = { policy_id: "pol_2" }

const changesIn = ({ events }: Rows) => events.at(-1)?.metadata["changes"]

describe("a move that begins or revives", () => {
  it("leaves a suspended license suspended", () => {
    const rows = movable(targetOf(), { license: { status: "suspended" } })
    assert.strictEqual(
      allowed(rows, changePolicy, { ...toPro, expires_at: noon + 9 * day }).after.license.status,
      "suspended"
    )
  })

  it("leaves an expired license to the clock if the new policy does not serve it either", () => {
    const rows = movable(targetOf({ grace_period_days: 1 }), {
      license: { status: "expired", expires_at: noon - 3 * day }
    })
    assert.strictEqual(allowed(rows, changePolicy, toPro).after.license.status, "expired")
  })

  it("begins the days of features that stay, with the license's term", () => {
    const waiting = { duration_days: 365, duration_starts: "first_activation" } as const
    const rows = movable(targetOf(waiting, [coming("new", { expires_after_days: 3 })]), {
      license: { expires_at: undefined, term_days: 365 },
      policy: waiting,
      assignments: [assignmentOf("hand", { expires_after_days: 7 })]
    })
    const features = ({ assignments }: Rows) =>
      Object.fromEntries(assignments.map((row) => [row.feature_code, [row.expires_at, row.expires_after_days]]))
    assert.deepStrictEqual(features(allowed(rows, changePolicy, toPro).after), {
      hand: [undefined, 7],
      new: [undefined, 3]
    })
    const { after } = allowed(rows, changePolicy, { ...toPro, expires_at: noon + 9 * day })
    assert.deepStrictEqual(features(after), { hand: [noon + 7 * day, undefined], new: [noon + 3 * day, undefined] })
    assert.strictEqual(after.license.term_began_at, noon)
    assert.containsAllKeys(changesIn(after), ["features.hand", "features.new", "expires_at"])
  })

  it("keeps the latest promise of license and policies", () => {
    const promised = (license: RowsInput["license"], policy: Partial<PolicyRecord>, target: Partial<PolicyRecord>) =>
      allowed(movable(targetOf(target), { license, policy }), changePolicy, toPro).after.license.not_due_before
    const heartbeats = { require_heartbeat: true }
    assert.strictEqual(
      promised({ not_due_before: noon + 2 }, { ...heartbeats, not_due_before: noon + 1 }, heartbeats),
      noon + 2
    )
    assert.strictEqual(
      promised({ not_due_before: noon + 1 }, { ...heartbeats, not_due_before: noon + 2 }, heartbeats),
      noon + 2
    )
    assert.isUndefined(promised({}, heartbeats, heartbeats))
    assert.isUndefined(promised({}, {}, {}))
    assert.isUndefined(promised({}, heartbeats, {}))
    assert.strictEqual(promised({}, {}, heartbeats), heartbeatDueAt(policyWith(heartbeats), noon))
  })

  it("writes a limit to the ledger only where it changes", () => {
    const assignments = ["same", "more"].map((code) =>
      assignmentOf(code, { from_policy: true, max_consumptions: 5, total_consumptions: 2 })
    )
    const rows = movable(
      targetOf({}, [coming("same", { max_consumptions: 5 }), coming("more", { max_consumptions: 9 }), coming("new")]),
      { assignments }
    )
    const { after, changes } = allowed(rows, changePolicy, toPro)
    assert.deepStrictEqual(changes.ledger, [
      { feature_id: "feat_more", action: "set_limit", amount: 9, balance_after: 2, max_after: 9 }
    ])
    assert.deepStrictEqual(
      after.assignments.map(({ created_at, feature_code }) => [feature_code, created_at === noon]),
      [
        ["same", false],
        ["more", false],
        ["new", true]
      ]
    )
  })

  it("reads the policy, the seats and the subscription, and ends its batch", () => {
    assert.deepStrictEqual(changePolicy.needs?.(toPro), { policyId: "pol_2", seats: true, ownSubscription: true })
    assert.isTrue(changePolicy.endsBatch?.(toPro))
  })

  it("of maintenance is told", () => {
    const perpetual = { license_type: "perpetual" } as const
    const rows = movable(targetOf({ ...perpetual, duration_days: 30 }), { license: { expires_at: noon + day } })
    const { after } = allowed(rows, changePolicy, toPro)
    assert.strictEqual(after.license.maintenance_expires_at, noon + 30 * day)
    assert.containsAllKeys(changesIn(after), ["maintenance_expires_at", "license_type", "expires_at"])
  })
})

describe("a move that begins a term", () => {
  const waiting = { duration_days: 365, duration_starts: "first_activation" } as const
  const pending = { license: { expires_at: undefined, term_days: 365 }, policy: waiting }
  const given = { ...toPro, expires_at: noon + 9 * day }

  it("begins the days of a feature once: the new policy's, and none of a feature that goes", () => {
    const assignments = ["both", "gone"].map((code) => assignmentOf(code, { from_policy: true, expires_after_days: 7 }))
    const rows = movable(targetOf(waiting, [coming("both", { expires_after_days: 3 })]), { ...pending, assignments })
    const { changes } = allowed(rows, changePolicy, given)
    assert.deepStrictEqual(
      changes.assignments?.map(({ expires_at, feature_code }) => [feature_code, expires_at]),
      [["both", noon + 3 * day]]
    )
    assert.deepStrictEqual(changes.removedAssignments, ["feat_gone"])
  })

  it("begins the periods of its features with it", () => {
    const meter = coming("meter", { max_consumptions: 5, reset_period: "day" })
    const { after } = allowed(movable(targetOf(waiting, [meter]), pending), changePolicy, given)
    assert.deepInclude(after.assignments[0], { period_anchor: noon, resets_at: noon + day })
  })

  it("lets the periods of features that stay wait for a term that it makes wait", () => {
    const placed = { period_anchor: noon - day, period_start: noon - day, resets_at: noon + day }
    const meter = assignmentOf("meter", { max_consumptions: 5, reset_period: "day", ...placed })
    const rows = movable(targetOf({ ...waiting, license_type: "trial" }), {
      license: { times_activated: 0 },
      assignments: [meter]
    })
    const { assignments, license } = allowed(rows, changePolicy, toPro).after
    assert.strictEqual(license.term_days, 365)
    assert.deepInclude(assignments[0], { period_anchor: undefined, period_start: noon - day, resets_at: undefined })
  })

  it("ends days that an earlier version left beside the same end", () => {
    const rows = movable(targetOf(), { license: { term_days: 30 } })
    const { after } = allowed(rows, changePolicy, { policy_id: "pol_1", expires_at: noon + 30 * day })
    assert.deepInclude(after.license, { term_days: undefined, expires_at: noon + 30 * day })
  })
})

describe("a move of an expired license", () => {
  const expired = { status: "expired", expires_at: noon - 3 * day } as const
  const promisedAfter = (target: Partial<PolicyRecord>, license: RowsInput["license"] = {}) =>
    allowed(movable(targetOf(target), { license: { ...expired, ...license } }), changePolicy, toPro).after.license
      .not_due_before

  it("gives whole intervals only if the new policy serves it, and keeps a later promise", () => {
    const graced = { grace_period_days: 9 }
    assert.isUndefined(promisedAfter({ grace_period_days: 1 }))
    assert.strictEqual(promisedAfter(graced), heartbeatDueAt(policyWith(graced), noon))
    assert.strictEqual(promisedAfter(graced, { not_due_before: noon + 90 * day }), noon + 90 * day)
  })

  it("is refused by name to a policy that is unknown", () => {
    const { refused } = refusedWith("NOT_FOUND", rowsOf(), changePolicy, { policy_id: "pol_none" })
    assert.deepStrictEqual([refused.detail, refused.message.includes("policy")], ["policy_id", true])
  })
})
