import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { delayAfter, retryAfterMillis } from "../../../src/ledger/webhooks/RetrySchedule.ts"

const delays = fc.array(fc.nat(604_800), { maxLength: 12 })
const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })

describe("delayAfter", () => {
  it("is within a tenth of the schedule's delay, and undefined after the last attempt", () => {
    fc.assert(
      fc.property(delays, random, (schedule, random) => {
        for (const [index, seconds] of schedule.entries()) {
          const delay = delayAfter(schedule, index + 1, random)!
          assert.isAtLeast(delay, Math.floor(seconds * 900))
          assert.isAtMost(delay, Math.ceil(seconds * 1_100))
        }
        assert.isUndefined(delayAfter(schedule, schedule.length + 1, random))
      })
    )
  })

  it("covers the whole range", () => {
    assert.deepStrictEqual(
      [0, 0.5, 0.999_999].map((random) => delayAfter([100], 1, random)),
      [90_000, 100_000, 110_000]
    )
  })

  it("is longer if the receiver asks for it, up to a day, and never adds an attempt", () => {
    assert.strictEqual(delayAfter([5], 1, 0.5, 60_000), 60_000)
    assert.strictEqual(delayAfter([5], 1, 0.5, 1), 5_000)
    assert.strictEqual(delayAfter([5], 1, 0.5, 10 ** 12), 86_400_000)
    assert.strictEqual(delayAfter([5], 1, 0.5, Number.POSITIVE_INFINITY), 86_400_000)
    assert.strictEqual(delayAfter([604_800], 1, 0.5, 10 ** 12), 604_800_000)
    assert.isUndefined(delayAfter([5], 2, 0.5, 60_000))
  })
})

describe("retryAfterMillis", () => {
  it("reads seconds and dates, and ignores all other values", () => {
    const now = Date.UTC(2030, 0, 1)
    const cases: ReadonlyArray<readonly [string | undefined, number]> = [
      [undefined, 0],
      ["", 0],
      ["0", 0],
      ["120", 120_000],
      ["1.5", 0],
      ["-5", 0],
      ["9".repeat(11), 99_999_999_999_000],
      ["9".repeat(400), Number.POSITIVE_INFINITY],
      ["Tue, 01 Jan 2030 00:02:00 GMT", 120_000],
      ["Mon, 31 Dec 2029 23:59:00 GMT", 0],
      ["soon", 0]
    ]
    for (const [header, millis] of cases) assert.strictEqual(retryAfterMillis(header, now), millis, header)
  })
})
