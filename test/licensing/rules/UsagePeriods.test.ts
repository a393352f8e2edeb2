import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { assign } from "../../../src/licensing/changes/Assignments.ts"
import { update } from "../../../src/licensing/changes/Update.ts"
import { resetUsage } from "../../../src/licensing/changes/UsageReset.ts"
import type { Assignment } from "../../../src/licensing/model/LicenseRecords.ts"
import { activate } from "../../../src/licensing/rules/Activation.ts"
import { consume } from "../../../src/licensing/rules/Consumption.ts"
import { closePeriod, withPeriods } from "../../../src/licensing/rules/UsagePeriods.ts"
import { allowed, refusedWith, settled } from "../../support/rules/LicenseRules.ts"
import { activationOf, assignmentOf, day, featureOf, noon, present, rowsOf } from "../../support/rules/Licenses.ts"
import { at, created, eventTypesOf, featureIn, machine, monthly, used } from "../../support/rules/MonthlyQuota.ts"

describe("A quota with periods", () => {
  it("begins anew at the boundary, and not a millisecond earlier", () => {
    const start = monthly()
    const boundary = at("2030-02-28T12:00:00Z")
    assert.strictEqual(featureIn(start).resets_at, boundary)
    const before = allowed(start, consume, used(60, "e1"), boundary - 1).after
    assert.strictEqual(featureIn(before).total_consumptions, 60)
    refusedWith("USAGE_LIMIT_EXCEEDED", before, consume, used(60, "e2"), boundary - 1)
    const { after } = allowed(before, consume, used(60, "e2"), boundary)
    assert.strictEqual(featureIn(after).total_consumptions, 60)
    assert.strictEqual(featureIn(after).resets_at, at("2030-03-31T12:00:00Z"))
    assert.deepStrictEqual(
      after.ledger.map(({ action, amount, balance_after }) => [action, amount, balance_after]),
      [
        ["consume", 60, 60],
        ["period_reset", -60, 0],
        ["consume", 60, 60]
      ]
    )
  })

  it("closes its period once, however many have passed", () => {
    const before = allowed(monthly({ rollover_max: 30 }), consume, used(90, "e1"), created).after
    const now = at("2031-02-10T00:00:00Z")
    const after = settled(before, now)
    assert.deepStrictEqual(
      after.ledger.slice(1).map(({ action, amount }) => [action, amount]),
      [["period_reset", -90]]
    )
    assert.deepStrictEqual(after.events.at(-1)?.metadata, {
      feature_id: "feat_api",
      feature_code: "api",
      period_start: "2030-01-31T12:00:00.000Z",
      period_end: "2030-02-28T12:00:00.000Z",
      periods: 12,
      consumed: 90,
      credits_used: 0,
      overage: 0,
      rolled_over: 30,
      resets_at: "2031-02-28T12:00:00.000Z"
    })
    assert.strictEqual(featureIn(after).period_start, at("2031-01-31T12:00:00Z"))
    assert.deepStrictEqual(settled(after, now).ledger, after.ledger)
  })

  it("rolls over what is left of the quota, up to rollover_max", () => {
    const rolled = (consumed: number) => {
      const before = allowed(monthly({ rollover_max: 30 }), consume, used(consumed, "e1"), created).after
      return featureIn(settled(before, at("2030-02-28T12:00:00Z"))).rolled_over
    }
    assert.deepStrictEqual([rolled(10), rolled(80), rolled(100)], [30, 20, undefined])
  })

  it("skips periods with the same result as one after the other", () => {
    fc.assert(
      fc.property(
        fc.constantFrom("day", "week", "month", "year"),
        fc.integer({ min: 0, max: 120 }),
        fc.nat({ max: 100 }),
        fc.integer({ min: 0, max: 900 * day }),
        (reset_period, consumed, rollover_max, later) => {
          const start = featureIn(monthly({ reset_period, rollover_max, total_consumptions: Math.min(consumed, 100) }))
          const now = created + later
          let stepped = start
          while (stepped.resets_at! <= now) stepped = closePeriod(stepped, false, stepped.resets_at!)!.after
          const skipped = closePeriod(start, false, now)?.after ?? start
          assert.deepStrictEqual(present(skipped), present(stepped))
        }
      )
    )
  })

  it("uses the quota first, then bought credits, then overage", () => {
    const start = monthly({ overage_max: 10, extra_credits: 20 })
    const amounts = [100, 15, 10]
    const { after } = amounts.reduce(
      ({ after: rows }, amount, index) => allowed(rows, consume, used(amount, `e${index}`), created),
      { after: start }
    )
    assert.deepInclude(featureIn(after), { total_consumptions: 125, credits_used: 20, overage: 5 })
    assert.deepStrictEqual(
      after.ledger.map(({ credits, overage }) => [credits, overage]),
      [
        [undefined, undefined],
        [-15, undefined],
        [-5, 5]
      ]
    )
    assert.deepStrictEqual(eventTypesOf(after).slice(-1), ["usage.overage_started"])
    refusedWith("USAGE_LIMIT_EXCEEDED", after, consume, used(6, "e9"), created)
    const closed = featureIn(settled(after, at("2030-02-28T12:00:00Z")))
    assert.notProperty(closed, "overage")
    assert.notProperty(closed, "extra_credits")
  })

  it("keeps bought credits over the end of a period", () => {
    const { after } = allowed(monthly(), resetUsage, { feature_code: "api", add_credits: 40 }, created)
    assert.deepStrictEqual(present(after.ledger[0]!), {
      feature_id: "feat_api",
      action: "top_up",
      amount: 40,
      balance_after: 0,
      max_after: 100,
      credits: 40
    })
    assert.strictEqual(featureIn(settled(after, at("2030-02-28T12:00:00Z"))).extra_credits, 40)
  })

  it("is not ended again by a node whose clock is behind", () => {
    const boundary = at("2030-02-28T12:00:00Z")
    const begun = settled(allowed(monthly(), consume, used(60, "e1"), created).after, boundary)
    const assigned = allowed(begun, assign, { feature_id: "feat_api", max_consumptions: 200 }, boundary - 10_000).after
    assert.deepInclude(featureIn(assigned), { period_start: boundary, resets_at: at("2030-03-31T12:00:00Z") })
  })

  it("of a revoked license does not begin anew", () => {
    const start = monthly({ total_consumptions: 5 }, { status: "revoked" })
    const after = settled(start, at("2030-02-28T12:00:00Z"))
    assert.deepStrictEqual([after.ledger, after.events], [[], []])
    assert.deepInclude(featureIn(after), { total_consumptions: 5 })
    assert.notProperty(featureIn(after), "resets_at")
  })

  it("begins with the first activation if the license's term does", () => {
    const pending = monthly({}, { term_days: 365 })
    const waiting = {
      ...pending,
      devices: [],
      assignments: [assignmentOf("api", { max_consumptions: 100, reset_period: "month" })]
    }
    const { after } = allowed(waiting, activate, activationOf(machine), at("2030-03-05T08:00:00Z"))
    assert.strictEqual(after.license.term_began_at, at("2030-03-05T08:00:00Z"))
    assert.strictEqual(featureIn(after).resets_at, at("2030-04-05T08:00:00Z"))
  })

  it("moves with the license's start", () => {
    const edit = (starts_at: string, given: Partial<Assignment> = {}) => {
      const rows = monthly(given)
      const { after, before } = allowed(rows, update, { starts_at: at(starts_at) }, at("2030-02-15T00:00:00Z"))
      const raised = after.license.entitlement_counter - before.license.entitlement_counter
      return [featureIn(after).resets_at, raised]
    }
    assert.deepStrictEqual(edit("2030-01-10T00:00:00Z"), [at("2030-03-10T00:00:00Z"), 1])
    assert.deepStrictEqual(edit("2030-01-10T00:00:00Z", { enabled: false }), [at("2030-03-10T00:00:00Z"), 0])
    assert.deepStrictEqual(edit("2029-01-31T12:00:00Z"), [featureIn(monthly()).resets_at, 0])
  })
})

describe("A quota that follows a subscription", () => {
  const linked = (period_start: number, period_end: number, given: Partial<Assignment> = {}) =>
    withPeriods(
      assignmentOf("api", { max_consumptions: 100, total_consumptions: 70, reset_period: "subscription", ...given }),
      { license: { created_at: created }, subscription: { period_start, period_end } },
      noon
    )
  const [start, end] = [noon - 10 * day, noon + 20 * day]

  it("stays as it is after the period's end, until the next period is known", () => {
    const stopped = closePeriod(linked(start, end), false, end + day)!
    assert.isUndefined(stopped.periods)
    assert.deepInclude(present(stopped.after), { total_consumptions: 70 })
    const renewed = withPeriods(
      stopped.after,
      { license: { created_at: created }, subscription: { period_start: end, period_end: end + 30 * day } },
      end + day
    )
    const closed = closePeriod(renewed, false, end + day)!
    assert.deepInclude(present(closed.after), {
      total_consumptions: 0,
      period_start: end,
      resets_at: end + 30 * day
    })
  })

  it("begins anew at the start of a period that was announced early", () => {
    const early = withPeriods(
      linked(start, end),
      { license: { created_at: created }, subscription: { period_start: end, period_end: end + 30 * day } },
      noon
    )
    assert.strictEqual(early.resets_at, end)
    assert.isUndefined(closePeriod(early, false, end - 1))
    assert.strictEqual(closePeriod(early, false, end)?.after.resets_at, end + 30 * day)
  })

  it("has monthly periods within a yearly subscription, and none after it", () => {
    const yearly = { reset_period: "month", reset_anchor: "subscription" } as const
    const assignment = linked(at("2029-11-30T00:00:00Z"), at("2030-11-30T00:00:00Z"), yearly)
    assert.strictEqual(assignment.resets_at, at("2030-01-30T00:00:00Z"))
    const last = closePeriod(assignment, false, at("2030-11-29T00:00:00Z"))!.after
    assert.strictEqual(last.resets_at, at("2030-11-30T00:00:00Z"))
    assert.isUndefined(closePeriod(last, false, at("2030-12-05T00:00:00Z"))?.periods)
  })

  it("has no further period after one that ended while nothing was recorded", () => {
    const yearly = { reset_period: "month", reset_anchor: "subscription" } as const
    const assignment = linked(at("2029-11-30T00:00:00Z"), at("2030-11-30T00:00:00Z"), yearly)
    const closed = closePeriod(assignment, false, at("2031-01-01T00:00:00Z"))!
    assert.strictEqual(closed.periods, 10)
    assert.isUndefined(closed.after.resets_at)
  })

  it("counts the periods that were recorded one after the other before the end of the first was", () => {
    const license = { created_at: created }
    const announced = { period_start: end, period_end: end + 30 * day }
    const early = withPeriods(linked(start, end), { license, subscription: announced }, noon)
    const next = { period_start: end + 30 * day, period_end: end + 60 * day }
    const now = end + 31 * day
    const { after, periods } = closePeriod(withPeriods(early, { license, subscription: next }, now), false, now)!
    assert.strictEqual(periods, 2)
    assert.deepInclude(present(after), { period_start: end + 30 * day, resets_at: end + 60 * day })
  })

  it("stops when the link is removed", () => {
    const unlinked = withPeriods(
      linked(start, end),
      { license: { created_at: created }, subscription: undefined },
      noon
    )
    assert.isUndefined(unlinked.resets_at)
    assert.strictEqual(unlinked.total_consumptions, 70)
  })
})

describe("An assignment", () => {
  const start = rowsOf({ features: [featureOf("api")], assignments: [] })
  it.each([
    [{ reset_period: "month" }, "reset_period"],
    [{ max_consumptions: 10, reset_period: "month", rollover_max: 11 }, "rollover_max"],
    [{ max_consumptions: 10, reset_period: "month", reset_anchor: "subscription" }, "reset_anchor"],
    [{ max_consumptions: 10, reset_period: "subscription" }, "reset_period"],
    [{ overage_max: 1 }, "overage_max"]
  ] as const)("of %j is refused for its field %s", (given, field) => {
    const { refused } = refusedWith("VALIDATION_ERROR", start, assign, { feature_id: "feat_api", ...given })
    assert.strictEqual(refused.detail, field)
  })

  it("keeps its periods when an upsert does not name them, and ends them when it does", () => {
    const first = allowed(start, assign, {
      feature_id: "feat_api",
      max_consumptions: 10,
      reset_period: "day",
      rollover_max: 5
    })
    const second = allowed(first.after, assign, { feature_id: "feat_api", overage_max: 3 })
    assert.deepInclude(second.reply, { reset_period: "day", rollover_max: 5, overage_max: 3, extra_credits: 0 })
    refusedWith("VALIDATION_ERROR", second.after, assign, { feature_id: "feat_api", max_consumptions: null })
    const third = allowed(second.after, assign, { feature_id: "feat_api", reset_period: null })
    for (const field of ["reset_period", "rollover_max", "resets_at"] as const) assert.notProperty(third.reply, field)
  })
})
