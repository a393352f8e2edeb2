import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { unassign } from "../../../src/licensing/changes/Assignments.ts"
import { resetUsage } from "../../../src/licensing/changes/UsageReset.ts"
import { consume } from "../../../src/licensing/rules/Consumption.ts"
import { allowed, refusedWith } from "../../support/rules/LicenseRules.ts"
import { assignmentOf, featureOf, present } from "../../support/rules/Licenses.ts"
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

  it("tells in its event what is left, with and without a quota, and when it was", () => {
    const reversed = (given: Parameters<typeof monthly>[0]) => {
      const before = allowed(monthly(given), consume, used(30, "e1"), created).after
      return allowed(before, consume, taken("e1", "r1"), created + 1)
    }
    const { after, changes } = reversed({ total_consumptions: 12 })
    assert.strictEqual(after.license.updated_at, created + 1)
    assert.deepStrictEqual(changes.events, [
      {
        event_type: "usage.reversed",
        resource_type: "license",
        resource_id: "lic_1",
        metadata: {
          feature_id: "feat_api",
          feature_code: "api",
          amount: 30,
          event_id: "r1",
          reverses: "e1",
          balance_after: 12,
          max_after: 100,
          device_id: after.devices[0]!.id
        }
      }
    ])
    const unlimited = reversed({ max_consumptions: undefined, reset_period: undefined })
    assert.notProperty(unlimited.changes.events?.[0]?.metadata, "max_after")
  })

  it("says which field is wrong", () => {
    const before = allowed(monthly(), consume, used(30, "e1"), created).after
    assert.strictEqual(
      refusedWith("REVERSAL_NOT_POSSIBLE", before, consume, taken("e2", "r1"), created).refused.detail,
      "reverses"
    )
    const other = { ...taken("e1", "r1"), feature_code: "other" }
    const { refused } = refusedWith("FEATURE_NOT_ENTITLED", before, consume, other, created)
    assert.strictEqual(refused.detail, "feature_code")
    const again = allowed(before, consume, taken("e1", "r1"), created).after
    const twice = refusedWith("REVERSAL_NOT_POSSIBLE", again, consume, taken("e1", "r2"), created).refused
    const never = refusedWith("REVERSAL_NOT_POSSIBLE", again, consume, taken("e9", "r2"), created).refused
    assert.notStrictEqual(twice.message, never.message)
  })

  it("is refused if less is counted than it would give back", () => {
    const { after } = allowed(monthly(), consume, used(30, "e1"), created)
    // As after an import, or a change of the row by hand.
    const fewer = { ...after, assignments: after.assignments.map((row) => ({ ...row, total_consumptions: 29 })) }
    refusedWith("REVERSAL_NOT_POSSIBLE", fewer, consume, taken("e1", "r1"), created)
  })

  it("answers its own repetition in a later period, and no other request with its event_id", () => {
    const before = allowed(monthly(), consume, used(30, "e1"), created).after
    const both = allowed(before, consume, used(20, "e2"), created).after
    const { after } = allowed(both, consume, taken("e1", "r1"), created)
    const later = at("2030-02-28T12:00:00Z")
    assert.isEmpty(allowed(after, consume, taken("e1", "r1"), later).changes)
    // Another amount, no consumption at all, and a consumption in place of a reversal.
    refusedWith("EVENT_ID_CONFLICT", after, consume, taken("e2", "r1"), later)
    refusedWith("EVENT_ID_CONFLICT", after, consume, taken("e9", "r1"), later)
    refusedWith("EVENT_ID_CONFLICT", after, consume, taken("e1", "e2"), later)
    refusedWith("REVERSAL_NOT_POSSIBLE", after, consume, taken("e1", "r9"), later)
  })

  it("answers its own repetition after the feature is gone, and no other request", () => {
    const before = allowed(monthly(), consume, used(30, "e1"), created).after
    const both = allowed(before, consume, used(20, "e2"), created).after
    const reversed = allowed(both, consume, taken("e1", "r1"), created).after
    const { after } = allowed(reversed, unassign, { feature_id: "feat_api" }, created)
    assert.isEmpty(allowed(after, consume, taken("e1", "r1"), created).changes)
    for (const other of [
      taken("e2", "r1"),
      taken("e1", "r2"),
      taken("e1", "e2"),
      { ...taken("e1", "r1"), feature_code: "b" }
    ])
      refusedWith("FEATURE_NOT_ENTITLED", after, consume, other, created)
  })

  it("is looked up by the event and the feature that it names", () => {
    const { event_id: _, ...request } = taken("e1", "r1")
    assert.deepInclude(consume.needs?.({ ...request, event_id: "r1" }), {
      reverses: { eventId: "e1", featureCode: "api" }
    })
    assert.notProperty(consume.needs?.(used(1, "e1")), "reverses")
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

describe("A reversal with a used event id", () => {
  const taken = (reverses: string, event_id: string) => ({ ...used(1, event_id), reverses })

  it("is a conflict for another feature, and for another consumption of the same amount", () => {
    const start = monthly()
    const rows = {
      ...start,
      features: [...start.features, featureOf("export")],
      assignments: [...start.assignments, assignmentOf("export", { max_consumptions: 100 })]
    }
    const first = allowed(rows, consume, used(30, "e1"), created).after
    const both = allowed(first, consume, used(30, "e2"), created).after
    const one = allowed(both, consume, taken("e1", "r1"), created).after
    refusedWith("EVENT_ID_CONFLICT", one, consume, { ...taken("e1", "r1"), feature_code: "export" }, created)
    const two = allowed(one, consume, taken("e2", "r2"), created).after
    refusedWith("EVENT_ID_CONFLICT", two, consume, taken("e1", "r2"), created)
    refusedWith("EVENT_ID_CONFLICT", two, consume, taken("e2", "r1"), created)
  })
})
