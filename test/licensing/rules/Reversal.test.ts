import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { resetUsage } from "../../../src/licensing/changes/UsageReset.ts"
import { consume } from "../../../src/licensing/rules/Consumption.ts"
import { allowed, refusedWith } from "../../support/rules/LicenseRules.ts"
import { present } from "../../support/rules/Licenses.ts"
import { at, created, eventTypesOf, featureIn, monthly, used } from "../../support/rules/MonthlyQuota.ts"

describe("A reversal", () => {
  const taken = (reverses: string, event_id: string) => ({ ...used(1, event_id), reverses })

  it("gives back a whole consumption once, and answers its own repetition", () => {
    const before = allowed(monthly(), consume, used(30, "e1"), created).after
    const { after } = allowed(before, consume, taken("e1", "r1"), created)
    assert.strictEqual(featureIn(after).total_consumptions, 0)
    assert.strictEqual(after.license.total_consumptions, before.license.total_consumptions)
    assert.deepStrictEqual(present(after.ledger.at(-1)!), {
      feature_id: "feat_api",
      feature_code: "api",
      action: "reverse",
      event_id: "r1",
      reverses: "e1",
      amount: -30,
      balance_after: 0,
      max_after: 100,
      device_id: after.ledger[0]!.device_id
    })
    assert.deepStrictEqual(eventTypesOf(after).slice(-1), ["usage.reversed"])
    assert.deepStrictEqual(allowed(after, consume, taken("e1", "r1"), created).changes, {})
    refusedWith("REVERSAL_NOT_POSSIBLE", after, consume, taken("e1", "r2"), created)
    // The event id stays used: the same consumption again counts nothing.
    assert.deepStrictEqual(allowed(after, consume, used(30, "e1"), created).changes, {})
  })

  it("is refused in a later period, after a reset by hand, and for what was never counted", () => {
    const before = allowed(monthly(), consume, used(30, "e1"), created).after
    refusedWith("REVERSAL_NOT_POSSIBLE", before, consume, taken("e2", "r1"), created)
    refusedWith("REVERSAL_NOT_POSSIBLE", before, consume, taken("e1", "r1"), at("2030-02-28T12:00:00Z"))
    const reset = allowed(before, resetUsage, { feature_code: "api", reset_consumed: true }, created).after
    const again = allowed(reset, consume, used(50, "e3"), created).after
    refusedWith("REVERSAL_NOT_POSSIBLE", again, consume, taken("e1", "r1"), created)
    refusedWith("EVENT_ID_CONFLICT", again, consume, taken("e3", "e1"), created)
  })

  it("is repeated only by a request about the same consumption", () => {
    const before = allowed(monthly(), consume, used(30, "e1"), created).after
    const both = allowed(before, consume, used(30, "e2"), created).after
    const { after } = allowed(both, consume, taken("e1", "r1"), created)
    refusedWith("EVENT_ID_CONFLICT", after, consume, taken("e2", "r1"), created)
    refusedWith("EVENT_ID_CONFLICT", after, consume, taken("r1", "e2"), created)
    // The answer of the request itself stays the same when the period has ended.
    const later = allowed(after, consume, taken("e1", "r1"), at("2030-02-28T12:00:00Z"))
    assert.notInclude(eventTypesOf(later.after).slice(-1), "usage.reversed")
  })

  it("leaves what would have been without the consumption", () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1, maxLength: 8 }),
        fc.nat(),
        (amounts, choice) => {
          const start = monthly({ overage_max: -1, extra_credits: 50 })
          const all = (chosen: ReadonlyArray<readonly [number, string]>) =>
            chosen.reduce((rows, [amount, id]) => allowed(rows, consume, used(amount, id), created).after, start)
          const events = amounts.map((amount, index) => [amount, `e${index}`] as const)
          const undone = choice % amounts.length
          const reversed = allowed(all(events), consume, taken(`e${undone}`, "r"), created).after
          const without = featureIn(all(events.filter((_, index) => index !== undone)))
          assert.deepStrictEqual({ ...featureIn(reversed), updated_at: 0 }, { ...without, updated_at: 0 })
        }
      )
    )
  })
})
