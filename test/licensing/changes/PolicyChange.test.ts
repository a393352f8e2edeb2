import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { changePolicy, type PolicyChangeCommand } from "../../../src/licensing/changes/PolicyChange.ts"
import type { PolicyRecord, TargetPolicy } from "../../../src/licensing/model/LicenseRecords.ts"
import { limitsOf } from "../../../src/licensing/model/Limits.ts"
import { activate } from "../../../src/licensing/rules/Activation.ts"
import { entitlementVersionAt, isOverdue } from "../../../src/licensing/rules/Lifecycle.ts"
import { heartbeatDueAt } from "../../../src/vendor/policies/Policy.ts"
import { rows as anyRows } from "../../support/rules/LicenseArbitraries.ts"
import { allowed, perform, refusedWith } from "../../support/rules/LicenseRules.ts"
import {
  activationOf,
  assignmentOf,
  coming,
  day,
  deviceOf,
  dueAfter,
  hardware,
  leaseOf,
  minute,
  noon,
  type Rows,
  type RowsInput,
  rowsOf
} from "../../support/rules/Licenses.ts"

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

describe("a change of policy", () => {
  it("replaces the policy and keeps dates, devices, leases and own limits", () => {
    const device = deviceOf(hardware("A"))
    const seated = deviceOf(hardware("B"), { holds_slot: false })
    const rows = movable(targetOf({ max_activations: 1, max_floating_users: 0, entitlement_counter: 7 }), {
      license: { max_transfers: 3 },
      devices: [device, seated],
      leases: [leaseOf(seated)]
    })
    const { before, after, changes, reply } = allowed(rows, changePolicy, toPro)
    assert.deepStrictEqual([after.devices, after.leases], [before.devices, before.leases])
    assert.deepInclude(after.license, { policy_id: "pol_2", expires_at: before.license.expires_at, updated_at: noon })
    assert.strictEqual(reply.policy.id, "pol_2")
    assert.deepInclude(limitsOf(after.license, after.policy), { max_activations: 1, max_transfers: 3 })
    assert.deepStrictEqual(changes.events, [
      {
        event_type: "license.policy_changed",
        resource_type: "license",
        resource_id: "lic_1",
        metadata: { changes: { policy_id: { old: "pol_1", new: "pol_2" } } }
      }
    ])
    // One device beyond the new limit stays; no other starts.
    refusedWith("ACTIVATION_LIMIT_REACHED", after, activate, activationOf(hardware("C")))
  })

  it("raises the published version by one, whatever the counters of both policies are", () => {
    const version = ({ license, policy }: Rows) => entitlementVersionAt(license, policy, 0, noon)
    for (const [old, next] of [
      [0, 0],
      [5, 0],
      [0, 9]
    ] as const) {
      const rows = movable(targetOf({ entitlement_counter: next }), { policy: { entitlement_counter: old } })
      const { before, after } = allowed(rows, changePolicy, toPro)
      assert.strictEqual(version(after), version(before) + 1)
    }
  })

  it("is refused for an unknown policy, one of another product, and a revoked license", () => {
    const rows = movable(targetOf())
    refusedWith("NOT_FOUND", rows, changePolicy, { policy_id: "pol_none" })
    const foreign = movable({ ...targetOf(), product_id: "prod_2" })
    const { refused } = refusedWith("LINKAGE_MISMATCH", foreign, changePolicy, toPro)
    assert.strictEqual(refused.detail, "policy_id")
    const revoked = movable(targetOf(), { license: { status: "revoked" } })
    refusedWith("LICENSE_STATE_CONFLICT", revoked, changePolicy, toPro)
  })

  it("to the policy that the license has records nothing, unless it moves the expiry", () => {
    const rows = movable(targetOf())
    const { changes } = allowed(rows, changePolicy, { policy_id: "pol_1" })
    assert.deepStrictEqual(changes, {})
    const { after } = allowed(rows, changePolicy, { policy_id: "pol_1", expires_at: noon + 90 * day })
    assert.strictEqual(after.license.expires_at, noon + 90 * day)
    assert.hasAllKeys(changesIn(after), ["expires_at"])
  })
})

describe("the term after a change of policy", () => {
  const years = { license_type: "subscription", duration_days: 365 } as const

  it("stays under the same license type, and is the given one if it is in the future", () => {
    const rows = movable(targetOf({ duration_days: 365 }))
    assert.strictEqual(allowed(rows, changePolicy, toPro).after.license.expires_at, noon + 30 * day)
    const given = { ...toPro, expires_at: noon + 5 * day }
    assert.strictEqual(allowed(rows, changePolicy, given).after.license.expires_at, noon + 5 * day)
    refusedWith("EXPIRY_NOT_IN_FUTURE", rows, changePolicy, { ...toPro, expires_at: noon })
  })

  it("is that of a new license under another type", () => {
    const trial = { license: { expires_at: noon + day }, policy: { license_type: "trial" } } as const
    const { after } = allowed(movable(targetOf(years), trial), changePolicy, toPro)
    assert.strictEqual(after.license.expires_at, noon + 365 * day)
    assert.hasAllKeys(changesIn(after), ["policy_id", "license_type", "expires_at"])
    const { refused } = refusedWith(
      "VALIDATION_ERROR",
      movable(targetOf({ license_type: "subscription" }), trial),
      changePolicy,
      toPro
    )
    assert.strictEqual(refused.detail, "expires_at")
    const forever = allowed(movable(targetOf({ license_type: "perpetual" }), trial), changePolicy, toPro)
    assert.isUndefined(forever.after.license.expires_at)
    const perpetual = {
      license: { expires_at: undefined, maintenance_expires_at: noon },
      policy: { license_type: "perpetual" }
    } as const
    const limited = allowed(movable(targetOf({ license_type: "time_limited" }), perpetual), changePolicy, {
      ...toPro,
      expires_at: noon + day
    })
    assert.deepInclude(limited.after.license, { expires_at: noon + day, maintenance_expires_at: undefined })
    refusedWith("VALIDATION_ERROR", movable(targetOf({ license_type: "perpetual" }), trial), changePolicy, {
      ...toPro,
      expires_at: noon + day
    })
  })

  it("waits for the first activation only if the license was never used", () => {
    const target = targetOf({ ...years, duration_starts: "first_activation" })
    const unused = allowed(movable(target), changePolicy, toPro).after
    assert.deepInclude(unused.license, { expires_at: undefined, term_days: 365 })
    const used = allowed(movable(target, { license: { times_activated: 1 } }), changePolicy, toPro).after
    assert.deepInclude(used.license, { expires_at: noon + 365 * day, term_days: undefined })
    const seated = deviceOf(hardware("B"), { holds_slot: false })
    const floating = allowed(movable(target, { devices: [seated], leases: [leaseOf(seated)] }), changePolicy, toPro)
    assert.strictEqual(floating.after.license.expires_at, noon + 365 * day)
  })

  it("activates an expired license again that the new term serves", () => {
    const rows = movable(targetOf(years), { license: { expires_at: noon - day } })
    const { before, after } = allowed(rows, changePolicy, toPro)
    assert.deepStrictEqual([before.license.status, after.license.status], ["expired", "active"])
    assert.strictEqual(after.license.not_due_before, heartbeatDueAt(after.policy, noon))
  })
})

describe("promised heartbeats over a change of policy", () => {
  const silent = deviceOf(hardware("A"), { due_at: noon - day })
  const promised = deviceOf(hardware("B"), { due_at: dueAfter(noon - minute) })
  const isLate = ({ license, policy }: Rows, device: typeof silent, now: number) =>
    isOverdue(device, license, policy, now)

  it("that are switched on by it count from it", () => {
    const target = targetOf({ require_heartbeat: true, validation_interval_minutes: 10 })
    const { after } = allowed(movable(target, { devices: [silent, promised] }), changePolicy, toPro)
    const due = heartbeatDueAt(target.policy, noon)
    assert.isFalse(isLate(after, silent, due))
    assert.isTrue(isLate(after, silent, due + 1))
    assert.isFalse(isLate(after, promised, promised.due_at!))
  })

  it("are not due earlier because of a shorter interval or a lost promise of the old policy", () => {
    const target = targetOf({ require_heartbeat: true, validation_interval_minutes: 10 })
    const policy = { require_heartbeat: true, not_due_before: noon + 2 * day }
    const { after } = allowed(movable(target, { devices: [silent, promised], policy }), changePolicy, toPro)
    assert.isFalse(isLate(after, silent, noon + 2 * day))
    assert.isTrue(isLate(after, silent, noon + 2 * day + 1))
  })
})

describe("the features after a change of policy", () => {
  const granted = (code: string, given = {}) => assignmentOf(code, { from_policy: true, ...given })
  const rows = movable(
    targetOf({}, [coming("api", { max_consumptions: 100 }), coming("more", { expires_after_days: 30 })]),
    {
      assignments: [
        granted("api", { max_consumptions: 10, total_consumptions: 7 }),
        granted("old", { total_consumptions: 3 }),
        assignmentOf("hand", { max_consumptions: 5 })
      ]
    }
  )
  const shown = ({ assignments }: Rows) =>
    assignments.map((one) => [one.feature_code, one.from_policy, one.max_consumptions, one.total_consumptions])

  it("are the new policy's in place of the old one's, and those assigned by hand", () => {
    const { after, changes } = allowed(rows, changePolicy, toPro)
    assert.sameDeepMembers(shown(after), [
      ["api", true, 100, 7],
      ["hand", false, 5, 0],
      ["more", true, undefined, 0]
    ])
    assert.deepStrictEqual(changes.ledger, [
      { feature_id: "feat_api", action: "set_limit", amount: 100, balance_after: 7, max_after: 100 }
    ])
    assert.deepStrictEqual(after.license.kept_counts, { feat_old: 3 })
    assert.deepInclude(changesIn(after), {
      "features.api": { old: { enabled: true, max_consumptions: 10 }, new: { enabled: true, max_consumptions: 100 } },
      "features.old": { old: { enabled: true }, new: null },
      "features.more": { old: null, new: { enabled: true, expires_at: "2030-02-14T12:00:00.000Z" } }
    })
  })

  it("stay with keep_features as the license's own, and only those are added that it does not have", () => {
    const { after, changes } = allowed(rows, changePolicy, { ...toPro, keep_features: true })
    assert.sameDeepMembers(shown(after), [
      ["api", false, 10, 7],
      ["old", false, undefined, 3],
      ["hand", false, 5, 0],
      ["more", true, undefined, 0]
    ])
    assert.deepStrictEqual(changes.ledger, [])
  })

  it("do not replace one that was assigned by hand", () => {
    const byHand = { ...rows, assignments: [assignmentOf("api", { max_consumptions: 1 })] }
    assert.deepInclude(shown(allowed(byHand, changePolicy, toPro).after), ["api", false, 1, 0])
  })

  it("keep those assigned by hand and end with exactly the new policy's others, for any license", () => {
    fc.assert(
      fc.property(anyRows, fc.boolean(), (given, keep_features) => {
        const { before, after, refused } = perform(given, changePolicy, { policy_id: "pol_2", keep_features }, noon)
        if (refused !== undefined) return
        const target = given.targets.find(({ policy }) => policy.id === "pol_2")!
        const codesOf = (records: Rows, of: boolean) =>
          records.assignments.flatMap((one) => (one.from_policy === of ? [one.feature_code] : []))
        const own = [...codesOf(before, false), ...(keep_features ? codesOf(before, true) : [])]
        assert.sameMembers(codesOf(after, false), own)
        const came = target.features.map(({ feature_code }) => feature_code).filter((code) => !own.includes(code))
        assert.sameMembers(codesOf(after, true), came)
      })
    )
  })
})
