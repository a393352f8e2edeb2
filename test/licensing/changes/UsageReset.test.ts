import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import * as fc from "fast-check"
import { resetUsage, type UsageResetCommand } from "../../../src/licensing/changes/UsageReset.ts"
import { LicenseFeature, LicenseUsageReset } from "../../../src/licensing/model/LicenseFeature.ts"
import type { LedgerEntry } from "../../../src/licensing/model/Usage.ts"
import { rows as anyRows } from "../../support/rules/LicenseArbitraries.ts"
import { allowed, perform, refusedWith } from "../../support/rules/LicenseRules.ts"
import { assignmentOf, noon, type Rows, rowsOf } from "../../support/rules/Licenses.ts"

const most = Number.MAX_SAFE_INTEGER

const limited = assignmentOf("api", { max_consumptions: 100, total_consumptions: 40 })
const unlimited = assignmentOf("export", { total_consumptions: 7 })
const start = rowsOf({ assignments: [limited, unlimited], license: { total_consumptions: 500 } })

type Amounts = Omit<UsageResetCommand, "feature_id" | "feature_code">

const row = (
  action: LedgerEntry["action"],
  amount: number,
  balance_after: number,
  max_after: number | undefined,
  feature_id = "feat_api"
): LedgerEntry => ({ feature_id, action, amount, balance_after, max_after })

const change = (before: number | null, after: number) => ({ old: before, new: after })

describe("a usage reset", () => {
  it.each<readonly [Amounts, max: number, total: number, ReadonlyArray<LedgerEntry>]>([
    [{ max_consumptions: 60 }, 60, 40, [row("set_limit", 60, 40, 60)]],
    [{ max_consumptions: 0 }, 0, 40, [row("set_limit", 0, 40, 0)]],
    [{ add_credits: 5 }, 105, 40, [row("top_up", 5, 40, 105)]],
    [{ total_consumptions: 12 }, 100, 12, [row("reset", -28, 12, 100)]],
    [{ total_consumptions: 140 }, 100, 140, [row("reset", 100, 140, 100)]],
    [{ reset_consumed: true }, 100, 0, [row("reset", -40, 0, 100)]],
    [
      { max_consumptions: 10, add_credits: 5, total_consumptions: 3 },
      15,
      3,
      [row("set_limit", 10, 40, 10), row("top_up", 5, 40, 15), row("reset", -37, 3, 15)]
    ],
    [
      { reset_consumed: true, add_credits: 1, max_consumptions: 50 },
      51,
      0,
      [row("set_limit", 50, 40, 50), row("top_up", 1, 40, 51), row("reset", -40, 0, 51)]
    ],
    [{ max_consumptions: 100, add_credits: 1 }, 101, 40, [row("top_up", 1, 40, 101)]],
    [{ total_consumptions: 0, reset_consumed: false }, 100, 0, [row("reset", -40, 0, 100)]]
  ])("of %j", (amounts, max_consumptions, total_consumptions, ledger) => {
    for (const target of [{ feature_id: "feat_api" }, { feature_code: "api" }]) {
      const { before, after, changes, reply } = allowed(start, resetUsage, { ...target, ...amounts })
      assert.deepStrictEqual(changes.ledger, ledger)
      assert.deepStrictEqual(after.assignments, [
        { ...limited, max_consumptions, total_consumptions, updated_at: noon },
        unlimited
      ])
      assert.deepStrictEqual(reply, {
        license_id: "lic_1",
        feature_id: "feat_api",
        feature_code: "api",
        feature_name: "The feature api",
        enabled: true,
        from_policy: false,
        metadata: {},
        max_consumptions,
        total_consumptions,
        remaining: Math.max(0, max_consumptions - total_consumptions)
      })
      assert.deepInclude(after.license, { total_consumptions: 500, updated_at: noon })
      assert.strictEqual(after.license.entitlement_counter, before.license.entitlement_counter + 1)
      assert.deepStrictEqual(changes.events, [
        {
          event_type: "license.usage_reset",
          resource_type: "license",
          resource_id: "lic_1",
          metadata: {
            feature_id: "feat_api",
            feature_code: "api",
            changes: {
              ...(max_consumptions === 100 ? {} : { max_consumptions: change(100, max_consumptions) }),
              ...(total_consumptions === 40 ? {} : { total_consumptions: change(40, total_consumptions) })
            }
          }
        }
      ])
    }
  })

  it("limits what was unlimited, and only then takes credits for it", () => {
    const target = { feature_code: "export" }
    const { refused } = refusedWith("VALIDATION_ERROR", start, resetUsage, { ...target, add_credits: 5 })
    assert.strictEqual(refused.detail, "add_credits")
    const { changes, reply } = allowed(start, resetUsage, { ...target, max_consumptions: 10, add_credits: 5 })
    assert.deepInclude(reply, { max_consumptions: 15, total_consumptions: 7, remaining: 8 })
    assert.deepStrictEqual(changes.ledger, [
      row("set_limit", 10, 7, 10, "feat_export"),
      row("top_up", 5, 7, 15, "feat_export")
    ])
    assert.deepStrictEqual(changes.events?.[0]?.metadata["changes"], { max_consumptions: change(null, 15) })
    const reset = allowed(start, resetUsage, { ...target, reset_consumed: true })
    assert.deepStrictEqual(reset.changes.ledger, [row("reset", -7, 0, undefined, "feat_export")])
    assert.notProperty(reset.reply, "remaining")
  })

  it.each<Amounts>([
    { max_consumptions: 100 },
    { total_consumptions: 40 },
    { max_consumptions: 100, total_consumptions: 40 },
    { max_consumptions: 100, reset_consumed: false },
    { max_consumptions: 90, add_credits: 10 }
  ])("changes and records nothing where all is as asked: %j", (amounts) => {
    const { changes, reply } = allowed(start, resetUsage, { feature_code: "api", ...amounts })
    assert.deepStrictEqual(changes, {})
    assert.deepInclude(reply, { max_consumptions: 100, total_consumptions: 40, remaining: 60 })
  })

  it("never raises a maximum beyond 2^53 - 1", () => {
    const command = { feature_code: "api", max_consumptions: most - 5 }
    assert.strictEqual(allowed(start, resetUsage, { ...command, add_credits: 5 }).reply.max_consumptions, most)
    const { refused } = refusedWith("VALIDATION_ERROR", start, resetUsage, { ...command, add_credits: 6 })
    assert.strictEqual(refused.detail, "add_credits")
    refusedWith("VALIDATION_ERROR", start, resetUsage, { feature_code: "api", add_credits: most })
  })

  it("refuses a feature that the license does not have, by the name that was used for it", () => {
    const detail = (target: Pick<UsageResetCommand, "feature_id" | "feature_code">) =>
      refusedWith("NOT_FOUND", start, resetUsage, { ...target, reset_consumed: true }).refused.detail
    assert.strictEqual(detail({ feature_id: "feat_reports" }), "feature_id")
    assert.strictEqual(detail({ feature_code: "reports" }), "feature_code")
    assert.strictEqual(detail({ feature_id: "api" }), "feature_id")
    assert.strictEqual(detail({ feature_code: "feat_api" }), "feature_code")
  })

  it.each(["suspended", "expired"] as const)(
    "is possible while a license is %s, and a feature off or over",
    (status) => {
      const off = assignmentOf("api", { enabled: false, expires_at: noon - 1, total_consumptions: 3 })
      const rows = rowsOf({ assignments: [off], license: { status, expires_at: noon - 1 } })
      allowed(rows, resetUsage, { feature_code: "api", reset_consumed: true })
    }
  )

  it("is refused on a revoked license", () => {
    const revoked: Rows = { ...start, license: { ...start.license, status: "revoked" } }
    refusedWith("LICENSE_STATE_CONFLICT", revoked, resetUsage, { feature_code: "none", reset_consumed: true })
  })

  it("leads to the requested values, and its ledger entries add up", () => {
    const amounts = fc.record(
      {
        max_consumptions: fc.constantFrom(0, 5, 90),
        add_credits: fc.constantFrom(1, 8, most),
        total_consumptions: fc.constantFrom(0, 3, 60),
        reset_consumed: fc.boolean()
      },
      { requiredKeys: [] }
    )
    fc.assert(
      fc.property(anyRows, amounts, (rows, asked) => {
        const { before, after, changes, reply } = perform(rows, resetUsage, { feature_code: "api", ...asked }, noon)
        if (reply === undefined) return
        const [was, is] = [before, after].map(({ assignments }) =>
          assignments.find(({ feature_code }) => feature_code === "api")
        )
        let [max, total] = [was?.max_consumptions, was?.total_consumptions ?? 0]
        for (const { action, amount, balance_after, max_after } of changes.ledger ?? []) {
          if (action === "set_limit") max = amount
          if (action === "top_up") max = (max ?? 0) + amount
          if (action === "reset") total += amount
          assert.deepStrictEqual([balance_after, max_after], [total, max])
        }
        assert.deepStrictEqual([is?.total_consumptions, is?.max_consumptions], [total, max])
        const limit = asked.max_consumptions ?? was?.max_consumptions
        assert.strictEqual(max, asked.add_credits === undefined ? limit : (limit ?? 0) + asked.add_credits)
        assert.strictEqual(total, asked.reset_consumed ? 0 : (asked.total_consumptions ?? was?.total_consumptions))
        assert.strictEqual(after.license.total_consumptions, before.license.total_consumptions)
        Schema.encodeSync(LicenseFeature, { onExcessProperty: "error" })(reply)
      })
    )
  })
})

describe("a usage reset's body", () => {
  const accepts = Schema.is(Schema.toType(LicenseUsageReset))
  const feature_code = "api"

  it("names one feature and at least one change", () => {
    for (const amounts of [
      { add_credits: 1 },
      { max_consumptions: 0 },
      { total_consumptions: 0 },
      { reset_consumed: true },
      { reset_consumed: false, total_consumptions: 1 }
    ]) {
      assert.isTrue(accepts({ feature_code, ...amounts }), JSON.stringify(amounts))
      assert.isTrue(accepts({ feature_id: "feat_api", ...amounts }))
      assert.isFalse(accepts({ feature_id: "feat_api", feature_code, ...amounts }))
      assert.isFalse(accepts(amounts))
    }
    for (const amounts of [
      {},
      { reset_consumed: false },
      { reset_consumed: true, total_consumptions: 0 },
      { add_credits: 0 },
      { max_consumptions: -1 },
      { total_consumptions: 2 ** 53 }
    ]) {
      assert.isFalse(accepts({ feature_code, ...amounts }), JSON.stringify(amounts))
    }
  })
})

describe("a usage reset of a quota with credits and overage", () => {
  const used = { total_consumptions: 130, credits_used: 20, overage: 10, extra_credits: 5 }
  const periodic = { max_consumptions: 100, reset_period: "month", overage_max: 50 } as const
  const rows = (given: Parameters<typeof assignmentOf>[1]) => rowsOf({ assignments: [assignmentOf("api", given)] })

  it("forgets what was used of them with the count; bought credits stay", () => {
    const { after, changes } = allowed(rows({ ...periodic, ...used }), resetUsage, {
      feature_code: "api",
      reset_consumed: true
    })
    assert.deepInclude(after.assignments[0], {
      ...{ total_consumptions: 0, credits_used: undefined, overage: undefined },
      extra_credits: 5
    })
    assert.deepStrictEqual(changes.ledger, [{ ...row("reset", -130, 0, 100), overage: -10 }])
    assert.deepStrictEqual(changes.events?.[0]?.metadata["changes"], {
      total_consumptions: { old: 130, new: 0 },
      overage: { old: 10, new: null }
    })
    const plain = allowed(start, resetUsage, { feature_code: "api", reset_consumed: true }).after.assignments[0]!
    for (const field of ["credits_used", "overage"]) assert.notProperty(plain, field)
  })

  it("writes no row for a count that stays", () => {
    const command = { feature_code: "api", max_consumptions: 60, total_consumptions: 40 }
    assert.deepStrictEqual(allowed(start, resetUsage, command).changes.ledger, [row("set_limit", 60, 40, 60)])
  })

  it("may add credits up to the largest count, which of a quota with periods are apart from it", () => {
    const topUp = { feature_code: "api", add_credits: 1 }
    allowed(rows({ ...periodic, max_consumptions: most }), resetUsage, topUp)
    allowed(rows({ ...periodic, extra_credits: most - 1 }), resetUsage, topUp)
    refusedWith("VALIDATION_ERROR", rows({ ...periodic, extra_credits: most }), resetUsage, topUp)
    // A reversal gives used credits back.
    const used = { ...periodic, total_consumptions: 1, credits_used: 1 }
    allowed(rows({ ...used, extra_credits: most - 2 }), resetUsage, topUp)
    refusedWith("VALIDATION_ERROR", rows({ ...used, extra_credits: most - 1 }), resetUsage, topUp)
    allowed(rows({ max_consumptions: most - 1 }), resetUsage, topUp)
    refusedWith("VALIDATION_ERROR", rows({ max_consumptions: most }), resetUsage, topUp)
  })

  it("is refused if the quota would contradict itself", () => {
    const rolling = rows({ ...periodic, rollover_max: 80 })
    const { refused } = refusedWith("VALIDATION_ERROR", rolling, resetUsage, {
      feature_code: "api",
      max_consumptions: 79
    })
    assert.strictEqual(refused.detail, "max_consumptions")
    allowed(rolling, resetUsage, { feature_code: "api", max_consumptions: 80 })
  })
})
