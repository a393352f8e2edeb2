import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { earliest, latest, parseTimestamp } from "../../../src/contract/api/Timestamp.ts"
import {
  allowanceFault,
  boundaryAfter,
  boundaryOf,
  type CalendarPeriod,
  periodsSince
} from "../../../src/vendor/policies/ResetPeriod.ts"

const at = (text: string) => parseTimestamp(text)!

const periods: ReadonlyArray<CalendarPeriod> = ["day", "week", "month", "year"]

const instants = fc.integer({ min: earliest + 40_000_000_000, max: latest - 40_000_000_000 })

describe("Reset periods", () => {
  it("end on the last day of a month that is shorter than the anchor's day, and return to that day", () => {
    const anchor = at("2027-10-31T13:00:00Z")
    const boundaries = [1, 2, 3, 4, 5, 6].map((number) => boundaryOf("month", anchor, number))
    assert.deepStrictEqual(boundaries, [
      at("2027-11-30T13:00:00Z"),
      at("2027-12-31T13:00:00Z"),
      at("2028-01-31T13:00:00Z"),
      at("2028-02-29T13:00:00Z"),
      at("2028-03-31T13:00:00Z"),
      at("2028-04-30T13:00:00Z")
    ])
  })

  it("of a year from February 29 end on February 28 of other years", () => {
    const anchor = at("2028-02-29T00:00:00Z")
    assert.strictEqual(boundaryOf("year", anchor, 1), at("2029-02-28T00:00:00Z"))
    assert.strictEqual(boundaryOf("year", anchor, 4), at("2032-02-29T00:00:00Z"))
  })

  it("contain the instant that they are asked for", () => {
    fc.assert(
      fc.property(fc.constantFrom(...periods), instants, instants, (period, anchor, instant) => {
        const number = periodsSince(period, anchor, instant)
        assert.isAtMost(boundaryOf(period, anchor, number), instant)
        assert.isAbove(boundaryOf(period, anchor, number + 1), instant)
        assert.strictEqual(boundaryAfter(period, anchor, instant), boundaryOf(period, anchor, number + 1))
      })
    )
  })

  it("keep the time of day, and the day of the month where the month has it", () => {
    fc.assert(
      fc.property(instants, fc.integer({ min: -300, max: 300 }), (anchor, number) => {
        const [from, to] = [new Date(anchor), new Date(boundaryOf("month", anchor, number))]
        const month = 12 * from.getUTCFullYear() + from.getUTCMonth() + number
        assert.strictEqual(12 * to.getUTCFullYear() + to.getUTCMonth(), month)
        const last = new Date(Date.UTC(2000 + (Math.floor(month / 12) % 400), (month % 12) + 1, 0)).getUTCDate()
        assert.strictEqual(to.getUTCDate(), Math.min(from.getUTCDate(), last))
        assert.strictEqual(to.toISOString().slice(-13), from.toISOString().slice(-13))
      })
    )
  })
})

describe("An allowance", () => {
  it.each([
    [{}, undefined],
    [{ max_consumptions: 10, reset_period: "month", rollover_max: 10, overage_max: -1 }, undefined],
    [{ max_consumptions: 10, overage_max: 5 }, undefined],
    [{ reset_period: "month" }, "reset_period"],
    [{ overage_max: 5 }, "overage_max"],
    [{ max_consumptions: 10, rollover_max: 5 }, "rollover_max"],
    [{ max_consumptions: 10, reset_anchor: "license" }, "reset_anchor"],
    [{ max_consumptions: 10, reset_period: "month", rollover_max: 11 }, "rollover_max"]
  ] as const)("%j is refused for its field %s", (allowance, field) => {
    assert.strictEqual(allowanceFault(allowance)?.field, field)
  })
})
