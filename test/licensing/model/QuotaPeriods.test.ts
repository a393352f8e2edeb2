/** The boundaries of a quota's periods: where they begin, when one is closed, and what is recorded of it. */
import { assert, describe, it } from "@effect/vitest"
import type { Assignment } from "../../../src/licensing/model/LicenseRecords.ts"
import {
  closePeriod,
  endedPeriods,
  firstPeriodEnd,
  inCurrentPeriod,
  type PeriodSource,
  periodClosedEvent,
  periodEntry,
  periodsWait,
  withPeriods
} from "../../../src/licensing/rules/UsagePeriods.ts"
import { assignmentOf, day, noon, present } from "../../support/rules/Licenses.ts"

const none = { period_anchor: undefined, periods_end_at: undefined, period_start: undefined, resets_at: undefined }

const daily = (given: Partial<Assignment> = {}) =>
  assignmentOf("api", { max_consumptions: 100, reset_period: "day", ...given })

const placed = (given: Partial<Assignment>, source: Partial<PeriodSource["license"]>, now = noon) =>
  withPeriods(daily(given), { license: { created_at: noon - 90 * day, ...source }, subscription: undefined }, now)

const bySubscription = (given: Partial<Assignment>, subscription: PeriodSource["subscription"], now = noon) =>
  withPeriods(
    daily({ reset_anchor: "subscription", ...given }),
    { license: { created_at: noon - 90 * day }, subscription },
    now
  )

describe("The periods of a quota", () => {
  it("are not there without a period", () => {
    const plain = assignmentOf("api", { max_consumptions: 100 })
    assert.strictEqual(placed({ reset_period: undefined }, {}).reset_period, undefined)
    assert.strictEqual(withPeriods(plain, { license: { created_at: noon }, subscription: undefined }, noon), plain)
  })

  it.each([{ period_start: noon }, { period_anchor: noon }, { rolled_over: 5 }])(
    "end with what is left of them, %j, when the period is removed",
    (left) => {
      const after = placed({ reset_period: undefined, periods_end_at: noon, resets_at: noon, ...left }, {})
      assert.deepInclude(after, { ...none, rolled_over: undefined, max_consumptions: 100 })
    }
  )

  it.each([
    ["the license's start", { starts_at: noon - 3 * day, term_began_at: noon - 2 * day }, noon - 3 * day],
    ["the beginning of its term", { term_began_at: noon - 2 * day }, noon - 2 * day],
    ["its creation", { created_at: noon - 4 * day }, noon - 4 * day],
    ["its creation, if its end is known", { created_at: noon - day, term_days: 9, expires_at: noon + day }, noon - day],
    [
      "its creation, if the end of its maintenance is known",
      { created_at: noon - day, term_days: 9, maintenance_expires_at: noon + day },
      noon - day
    ],
    ["a start, also while its term is pending", { starts_at: noon - day, term_days: 9 }, noon - day],
    ["nothing while its term is pending", { term_days: 9 }, undefined]
  ] as const)("begin with %s", (_, license, anchor) => {
    const assignment = placed({}, license)
    assert.strictEqual(assignment.period_anchor, anchor)
    assert.strictEqual(assignment.resets_at, anchor === undefined ? undefined : noon + day)
    assert.strictEqual(periodsWait(assignment), anchor === undefined)
  })

  it("wait only for a term, not without a period or for a subscription", () => {
    assert.isTrue(periodsWait(daily()))
    assert.isFalse(periodsWait(daily({ period_anchor: noon })))
    assert.isFalse(periodsWait(daily({ reset_anchor: "subscription" })))
    assert.isFalse(periodsWait(assignmentOf("api")))
  })

  it("begin with the first one at a start in the future, and else with the current one", () => {
    assert.deepInclude(placed({}, { starts_at: noon + 3 * day }), {
      period_start: noon + 3 * day,
      resets_at: noon + 4 * day
    })
    assert.deepInclude(placed({}, { starts_at: noon - 3 * day }, noon + 1), {
      period_start: noon,
      resets_at: noon + day
    })
    assert.deepInclude(placed({}, { starts_at: noon }), { period_start: noon, resets_at: noon + day })
  })

  it("move with a start in the future, and end there if they began before", () => {
    const first = placed({}, { starts_at: noon + 20 * day })
    for (const starts_at of [noon - 3 * day, noon, noon + 5 * day])
      assert.deepEqual(placed(first, { starts_at }), placed({}, { starts_at }))
    const current = { period_start: noon - day / 2, period_anchor: noon - day / 2, resets_at: noon + day / 2 }
    assert.deepInclude(placed(current, { starts_at: noon + 3 * day }), {
      period_start: noon - day / 2,
      resets_at: noon + 3 * day
    })
  })

  it("keep the start of the current one, and one that has ended until the clock closes it", () => {
    const current = { period_start: noon - day, period_anchor: noon - day, resets_at: noon }
    assert.deepInclude(placed(current, { starts_at: noon - day }), current)
    assert.strictEqual(placed({ ...current, resets_at: noon + 1 }, { starts_at: noon - day }).resets_at, noon + day)
    const last = bySubscription(
      { ...current, periods_end_at: noon },
      { period_start: noon, period_end: noon + 30 * day }
    )
    assert.notStrictEqual(last.periods_end_at, noon)
    const earlier = bySubscription(
      { ...current, periods_end_at: noon + 1 },
      { period_start: noon - day, period_end: noon + 30 * day }
    )
    assert.strictEqual(earlier.resets_at, noon)
  })

  it("are those of the subscription, and end with its period", () => {
    const subscription = { period_start: noon - day, period_end: noon + 2 * day }
    assert.deepInclude(bySubscription({}, subscription), {
      period_anchor: noon - day,
      periods_end_at: noon + 2 * day,
      period_start: noon,
      resets_at: noon + day
    })
    const whole = bySubscription({ reset_period: "subscription", reset_anchor: undefined }, subscription)
    assert.deepInclude(whole, { period_start: noon - day, resets_at: noon + 2 * day })
    const early = { period_start: noon + day, period_end: noon + 31 * day }
    const announced = bySubscription({ reset_period: "subscription", reset_anchor: undefined }, early)
    assert.deepInclude(announced, { period_start: noon + day, resets_at: noon + 31 * day })
  })

  it.each([undefined, {}])(
    "stop without a subscription's period, %j, but keep the start of the last one",
    (subscription) => {
      const started = { period_start: noon - day, period_anchor: noon - day, periods_end_at: noon, resets_at: noon }
      assert.deepInclude(bySubscription(started, subscription), { ...none, period_start: noon - day })
    }
  )
})

describe("The end of a period", () => {
  const ended = daily({
    period_anchor: noon - 5 * day,
    period_start: noon - day,
    resets_at: noon,
    total_consumptions: 70,
    credits_used: 4,
    overage: 6,
    extra_credits: 9
  })

  it("closes it at its instant: the count begins anew, bought credits stay", () => {
    assert.isUndefined(closePeriod(ended, false, noon - 1))
    assert.isUndefined(closePeriod(daily(), false, noon))
    const closed = closePeriod(ended, false, noon)
    assert.strictEqual(closed?.periods, 1)
    assert.strictEqual(closed?.before, ended)
    assert.deepStrictEqual(closed?.after, {
      ...ended,
      total_consumptions: 0,
      credits_used: undefined,
      overage: undefined,
      rolled_over: undefined,
      period_start: noon,
      resets_at: noon + day
    })
    assert.strictEqual(inCurrentPeriod(ended, false, noon).total_consumptions, 0)
    assert.strictEqual(inCurrentPeriod(ended, false, noon - 1), ended)
  })

  it.each([
    ["of a revoked license", {}, true],
    ["at the end of its subscription's period", { periods_end_at: noon }, false],
    ["of a quota that became unlimited", { max_consumptions: undefined }, false],
    ["without a period", { reset_period: undefined }, false],
    ["without a first instant", { period_anchor: undefined }, false]
  ] as const)("%s begins no other one, and the count stays", (_, given, isRevoked) => {
    const before = { ...ended, ...given }
    const after = { ...before, resets_at: undefined }
    assert.deepStrictEqual(closePeriod(before, isRevoked, noon), { before, after, periods: undefined })
  })

  it.each([
    [{ rollover_max: 500 }, noon, 40],
    [{ rollover_max: 30 }, noon, 30],
    [{ rollover_max: 500 }, noon + 2 * day, 240],
    [{ rollover_max: 500, rolled_over: 10 }, noon, 50],
    [{ rollover_max: 500, total_consumptions: 110 }, noon, undefined],
    [{ rollover_max: 500, total_consumptions: 150 }, noon, undefined],
    [{}, noon, undefined]
  ])("rolls over what is unused of %j", (given, now, rolled) => {
    assert.strictEqual(closePeriod({ ...ended, ...given }, false, now)?.after.rolled_over, rolled)
  })

  it("counts the periods that have passed since, at most those of the subscription", () => {
    const since = (now: number, end?: number) => {
      const closed = closePeriod({ ...ended, periods_end_at: end }, false, now)
      return [closed?.periods, closed?.after.period_start, closed?.after.resets_at]
    }
    assert.deepStrictEqual(since(noon + 3 * day - 1), [3, noon + 2 * day, noon + 3 * day])
    assert.deepStrictEqual(since(noon + 3 * day), [4, noon + 3 * day, noon + 4 * day])
    assert.deepStrictEqual(since(noon, noon + 2 * day), [1, noon, noon + day])
    assert.deepStrictEqual(since(noon + day, noon + 2 * day), [2, noon + day, noon + 2 * day])
    assert.deepStrictEqual(since(noon + 2 * day, noon + 2 * day), [2, noon + day, undefined])
    assert.deepStrictEqual(since(noon + 9 * day, noon + day + 5), [2, noon + day, undefined])
  })

  it("begins the subscription's period that is known by then", () => {
    const whole = (given: Partial<Assignment>, now: number) => {
      const before = { ...ended, reset_period: "subscription", ...given } as const
      const closed = closePeriod(before, false, now)
      return [closed?.periods, closed?.after.period_start, closed?.after.resets_at]
    }
    const next = { period_anchor: noon, periods_end_at: noon + 30 * day }
    assert.deepStrictEqual(whole(next, noon), [1, noon, noon + 30 * day])
    assert.deepStrictEqual(whole(next, noon + 30 * day), [1, noon, undefined])
    const later = { period_anchor: noon + day, periods_end_at: noon + 30 * day }
    assert.deepStrictEqual(whole(later, noon), [1, noon, noon + day])
    assert.deepStrictEqual(whole(later, noon + day), [2, noon + day, noon + 30 * day])
    assert.deepStrictEqual(whole({ ...later, period_anchor: noon - day }, noon), [1, noon, noon + 30 * day])
  })

  it("is a row of the ledger and an event", () => {
    const closed = closePeriod(daily({ ...ended, rollover_max: 25, rolled_over: 3 }), false, noon)!
    assert.deepStrictEqual(periodEntry(closed), {
      feature_id: "feat_api",
      action: "period_reset",
      amount: -70,
      balance_after: 0,
      max_after: 125
    })
    assert.deepStrictEqual(periodClosedEvent("lic_1", closed), {
      event_type: "usage.period_closed",
      resource_type: "license",
      resource_id: "lic_1",
      metadata: {
        feature_id: "feat_api",
        feature_code: "api",
        period_start: "2030-01-14T12:00:00.000Z",
        period_end: "2030-01-15T12:00:00.000Z",
        periods: 1,
        consumed: 70,
        credits_used: 4,
        overage: 6,
        rolled_over: 25,
        resets_at: "2030-01-16T12:00:00.000Z"
      }
    })
    const unused = closePeriod(
      daily({ period_anchor: noon - day, resets_at: noon, periods_end_at: noon }),
      false,
      noon
    )!
    assert.strictEqual(periodEntry(unused).amount, 0)
    assert.deepStrictEqual(periodClosedEvent("lic_1", unused).metadata, {
      feature_id: "feat_api",
      feature_code: "api",
      period_end: "2030-01-15T12:00:00.000Z",
      periods: 0,
      consumed: 0,
      credits_used: 0,
      overage: 0,
      rolled_over: 0
    })
  })

  it("comes in the order of the ends, then of the codes", () => {
    const features = [
      assignmentOf("c", { resets_at: noon }),
      assignmentOf("b", { resets_at: noon - 1 }),
      assignmentOf("a", { resets_at: noon }),
      assignmentOf("d", { resets_at: noon + 1 }),
      assignmentOf("e")
    ]
    const codes = (assignments: ReadonlyArray<Assignment>) =>
      endedPeriods(assignments, noon).map(({ feature_code }) => feature_code)
    assert.deepStrictEqual(codes(features), ["b", "a", "c"])
    assert.deepStrictEqual(codes(features.toReversed()), ["b", "a", "c"])
    assert.strictEqual(firstPeriodEnd(features), noon - 1)
    assert.strictEqual(firstPeriodEnd([{}, present({ resets_at: undefined })]), Number.POSITIVE_INFINITY)
  })
})
