import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import * as fc from "fast-check"
import { formatTimestamp } from "../../../src/contract/api/Timestamp.ts"
import { type AssignCommand, assign, unassign } from "../../../src/licensing/changes/Assignments.ts"
import { LicenseFeature } from "../../../src/licensing/model/LicenseFeature.ts"
import { rows as anyRows } from "../../support/rules/LicenseArbitraries.ts"
import { allowed, perform, refusedWith } from "../../support/rules/LicenseRules.ts"
import { assignmentOf, day, featureOf, noon, present, type Rows, rowsOf } from "../../support/rules/Licenses.ts"

const id = "feat_api"
const features = [featureOf("api"), featureOf("foreign", { product_id: "prod_2" })]
const noOtherEnd = { expires_after_days: undefined, expires_with_license: undefined }
const known = assignmentOf("api", {
  ...noOtherEnd,
  max_consumptions: 10,
  total_consumptions: 4,
  expires_at: noon + day,
  metadata: { plan: "gold" }
})
const unassigned = rowsOf({ features })
const start = rowsOf({ features, assignments: [known] })

describe("assign", () => {
  it("gives a license a feature, enabled unless the request says otherwise", () => {
    const { after, changes, reply } = allowed(unassigned, assign, { feature_id: id })
    const assignment = {
      ...assignmentOf("api", { created_at: noon, updated_at: noon }),
      max_consumptions: undefined,
      expires_at: undefined,
      ...noOtherEnd
    }
    assert.deepStrictEqual(after.assignments.map(present), [present(assignment)])
    assert.deepStrictEqual(reply, {
      license_id: "lic_1",
      feature_id: id,
      feature_code: "api",
      feature_name: "The feature api",
      enabled: true,
      total_consumptions: 0,
      from_policy: false,
      metadata: {}
    })
    assert.isTrue(changes.entitlement)
    assert.deepStrictEqual(changes.license, { updated_at: noon })
    assert.deepStrictEqual(changes.events, [
      {
        event_type: "license.feature_assigned",
        resource_type: "license",
        resource_id: "lic_1",
        metadata: {
          feature_id: id,
          feature_code: "api",
          changes: { enabled: { old: null, new: true }, metadata: { old: null, new: {} } }
        }
      }
    ])
    assert.isFalse(allowed(unassigned, assign, { feature_id: id, enabled: false }).reply.enabled)
  })

  it("keeps what the request does not name", () => {
    const { after, changes } = allowed(start, assign, { feature_id: id, enabled: false })
    assert.deepStrictEqual(after.assignments.map(present), [present({ ...known, enabled: false, updated_at: noon })])
    assert.deepStrictEqual(changes.events?.[0]?.metadata["changes"], { enabled: { old: true, new: false } })
  })

  it("removes the values that the request sets to null", () => {
    const { after, changes, reply } = allowed(start, assign, {
      feature_id: id,
      max_consumptions: null,
      expires_at: null
    })
    assert.deepStrictEqual(after.assignments.map(present), [
      present({ ...known, max_consumptions: undefined, expires_at: undefined, updated_at: noon })
    ])
    assert.deepStrictEqual(changes.events?.[0]?.metadata["changes"], {
      max_consumptions: { old: 10, new: null },
      expires_at: { old: "2030-01-16T12:00:00.000Z", new: null }
    })
    assert.notProperty(reply, "max_consumptions")
    assert.notProperty(reply, "remaining")
    assert.notProperty(reply, "expires_at")
  })

  it("tells the ledger of a maximum that changes, and of nothing else", () => {
    const limit = (command: Omit<AssignCommand, "feature_id">) =>
      allowed(start, assign, { feature_id: id, ...command }).changes.ledger
    const row = { feature_id: id, action: "set_limit" as const, balance_after: 4 }
    assert.deepStrictEqual(limit({ max_consumptions: 25 }), [{ ...row, amount: 25, max_after: 25 }])
    assert.deepStrictEqual(limit({ max_consumptions: null }), [{ ...row, amount: 0, max_after: undefined }])
    assert.deepStrictEqual(limit({ enabled: false }), [])
    assert.deepStrictEqual(allowed(unassigned, assign, { feature_id: id, max_consumptions: 9 }).changes.ledger, [])
  })

  it("keeps the consumption, and returns the remaining quota", () => {
    const reply = (max_consumptions: number) => allowed(start, assign, { feature_id: id, max_consumptions }).reply
    assert.deepInclude(reply(6), { total_consumptions: 4, max_consumptions: 6, remaining: 2 })
    assert.deepInclude(reply(0), { total_consumptions: 4, max_consumptions: 0, remaining: 0 })
  })

  it("changes and records nothing when everything is as it should be", () => {
    for (const same of [
      {},
      { enabled: true },
      { max_consumptions: 10, expires_at: noon + day, metadata: { plan: "gold" } }
    ]) {
      const { changes, reply } = allowed(start, assign, { feature_id: id, ...same })
      assert.deepStrictEqual(changes, {})
      assert.deepInclude(reply, { max_consumptions: 10, remaining: 6, expires_at: noon + day })
    }
  })

  it("refuses an unknown feature, one of another product, and any write to a revoked license", () => {
    assert.strictEqual(
      refusedWith("NOT_FOUND", start, assign, { feature_id: "feat_unheard-of" }).refused.detail,
      "feature_id"
    )
    assert.strictEqual(
      refusedWith("LINKAGE_MISMATCH", start, assign, { feature_id: "feat_foreign" }).refused.detail,
      "feature_id"
    )
    const revoked: Rows = { ...start, license: { ...start.license, status: "revoked" } }
    refusedWith("LICENSE_STATE_CONFLICT", revoked, assign, { feature_id: "feat_unheard-of" })
    refusedWith("LICENSE_STATE_CONFLICT", revoked, unassign, { feature_id: id })
  })

  it.each(["suspended", "expired"] as const)("goes on while a license is %s", (status) => {
    const license = { ...start.license, status, expires_at: noon - day }
    allowed({ ...start, license }, assign, { feature_id: id, enabled: false })
    allowed({ ...start, license }, unassign, { feature_id: id })
  })

  it("leads to the requested values, and changes nothing when repeated", () => {
    const commands: fc.Arbitrary<AssignCommand> = fc.record(
      {
        feature_id: fc.constantFrom("feat_api", "feat_export"),
        enabled: fc.boolean(),
        max_consumptions: fc.option(fc.nat(20)),
        expires_at: fc.option(fc.constantFrom(noon - day, noon + day)),
        metadata: fc.dictionary(fc.string(), fc.integer(), { maxKeys: 2 })
      },
      { requiredKeys: ["feature_id"] }
    )
    fc.assert(
      fc.property(anyRows, commands, (rows, command) => {
        const { before, after, refused, reply } = perform(rows, assign, command, noon)
        assert.strictEqual(refused?.code, before.license.status === "revoked" ? "LICENSE_STATE_CONFLICT" : undefined)
        if (reply === undefined) return
        const was = before.assignments.find(({ feature_id }) => feature_id === command.feature_id)
        const is = after.assignments.find(({ feature_id }) => feature_id === command.feature_id)
        const wanted = <A>(asked: A | null | undefined, kept: A | undefined) =>
          asked === undefined ? kept : (asked ?? undefined)
        assert.deepInclude(is, {
          enabled: command.enabled ?? was?.enabled ?? true,
          max_consumptions: wanted(command.max_consumptions, was?.max_consumptions),
          expires_at: wanted(command.expires_at, was?.expires_at),
          metadata: command.metadata ?? was?.metadata ?? {},
          total_consumptions: was?.total_consumptions ?? 0,
          created_at: was?.created_at ?? noon
        })
        Schema.encodeSync(LicenseFeature, { onExcessProperty: "error" })(reply)
        assert.deepStrictEqual(perform(after, assign, command, noon).changes, {})
      }),
      { numRuns: 300 }
    )
  })
})

describe("unassign", () => {
  it("takes the feature away and records it", () => {
    const { after, changes } = allowed(start, unassign, { feature_id: id })
    assert.deepStrictEqual(after.assignments, [])
    assert.isTrue(changes.entitlement)
    assert.deepStrictEqual(changes.events, [
      {
        event_type: "license.feature_removed",
        resource_type: "license",
        resource_id: "lic_1",
        metadata: {
          ...{ feature_id: id, feature_code: "api" },
          changes: {
            enabled: { old: true, new: null },
            max_consumptions: { old: 10, new: null },
            expires_at: { old: formatTimestamp(noon + day), new: null },
            metadata: { old: { plan: "gold" }, new: {} },
            total_consumptions: { old: 4, new: 0 }
          }
        }
      }
    ])
    assert.strictEqual(after.license.total_consumptions, start.license.total_consumptions)
  })

  it("records a lost count in the ledger, and no entry without a count", () => {
    const { changes } = allowed(start, unassign, { feature_id: id })
    assert.deepStrictEqual(changes.ledger, [{ feature_id: id, action: "reset", amount: -4, balance_after: 0 }])
    const unused = rowsOf({ features, assignments: [{ ...known, total_consumptions: 0 }] })
    assert.deepStrictEqual(allowed(unused, unassign, { feature_id: id }).changes.ledger, [])
  })

  it("refuses a feature that the license does not have", () => {
    refusedWith("NOT_FOUND", unassigned, unassign, { feature_id: id })
  })
})
