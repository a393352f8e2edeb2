import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { earliest, formatTimestamp, latest, parseTimestamp } from "../../../src/contract/api/Timestamp.ts"

/** The years that a response can write with four digits, complete in UTC, for any offset in the request. */
const first = "0001-01-01T00:00:00.000Z"
const last = "9999-12-31T23:59:59.999Z"

describe("a date-time", () => {
  it("is accepted with any offset, in either case, and truncated to milliseconds", () => {
    for (const [text, utc] of [
      [first, first],
      [last, last],
      ["2030-01-01T00:00:00+14:00", "2029-12-31T10:00:00.000Z"],
      ["2030-01-01t00:00:00.1239z", "2030-01-01T00:00:00.123Z"],
      ["9999-12-31T23:59:59+00:01", "9999-12-31T23:58:59.000Z"],
      ["0001-01-01T00:00:00-00:01", "0001-01-01T00:01:00.000Z"]
    ] as const) {
      const millis = parseTimestamp(text)
      assert.strictEqual(millis === undefined ? undefined : formatTimestamp(millis), utc, text)
    }
  })

  it("whose offset moves it outside the years 1 to 9999 is refused: no response could represent it", () => {
    for (const text of [
      "9999-12-31T23:59:59-01:00",
      "9999-12-31T23:59:59.999-00:01",
      "0001-01-01T00:00:00+00:01",
      "0001-01-01T22:59:59+23:00"
    ]) {
      assert.isUndefined(parseTimestamp(text), text)
    }
  })

  it("that no calendar or clock contains is refused", () => {
    for (const text of [
      "0000-06-01T00:00:00Z",
      "10000-01-01T00:00:00Z",
      "+010000-01-01T00:00:00Z",
      "2030-02-29T00:00:00Z",
      "2030-06-30T23:59:60Z",
      "2030-01-01T24:00:00Z",
      "2030-01-01T00:00:00",
      "2030-01-01"
    ]) {
      assert.isUndefined(parseTimestamp(text), text)
    }
  })

  it("is accepted exactly for the days of the calendar", () => {
    for (const year of [1, 4, 100, 400, 1900, 2000, 2024, 2030, 9999]) {
      for (let month = 1; month <= 12; month++) {
        const days = new Date(Date.UTC(2000 + (year % 400), month, 0)).getUTCDate()
        for (let day = 27; day <= 32; day++) {
          const text = `${String(year).padStart(4, "0")}-${String(month).padStart(2, "0")}-${day}T00:00:00Z`
          assert.strictEqual(parseTimestamp(text) !== undefined, day <= days, text)
        }
      }
    }
  })

  it("is read as JavaScript reads it, with any fraction and offset", () => {
    const offset = fc
      .tuple(fc.constantFrom("+", "-"), fc.integer({ min: 0, max: 23 }), fc.integer({ min: 0, max: 59 }))
      .map(([sign, hours, minutes]) => `${sign}${String(hours).padStart(2, "0")}:${String(minutes).padStart(2, "0")}`)
    fc.assert(
      fc.property(
        fc.integer({ min: earliest + 86_400_000, max: latest - 86_400_000 }),
        fc.stringMatching(/^(\.\d{1,9})?$/),
        fc.oneof(fc.constantFrom("Z", "z"), offset),
        (millis, fraction, zone) => {
          const text = `${new Date(millis).toISOString().slice(0, 19)}${fraction}${zone}`
          assert.strictEqual(parseTimestamp(text), Date.parse(text.toUpperCase()), text)
        }
      ),
      { numRuns: 2000 }
    )
  })

  it("is formatted as JavaScript formats it, after any earlier instant", () => {
    const dayMillis = 86_400_000
    const year1 = Date.parse(first)
    const instants = fc.oneof(
      fc.integer({ min: year1, max: latest }),
      fc.double({ min: year1, max: latest, noNaN: true }),
      // Days whose numbers share their low bits, the edges of days, and the days around 1970.
      fc
        .tuple(fc.integer({ min: -600, max: 2000 }), fc.integer({ min: -1, max: 1 }))
        .map(([n, by]) => n * 1024 * dayMillis + by),
      fc.integer({ min: -3 * dayMillis, max: 3 * dayMillis })
    )
    fc.assert(
      fc.property(fc.array(instants, { minLength: 2, maxLength: 20 }), (instants) => {
        for (const millis of instants) assert.strictEqual(formatTimestamp(millis), new Date(millis).toISOString())
      }),
      { numRuns: 500 }
    )
  })

  it("outside the years 1 to 9999 is formatted as JavaScript formats it, and undefined when that has no text", () => {
    for (const millis of [latest + 1, Date.parse(first) - 1, 8.64e15, -8.64e15]) {
      assert.strictEqual(formatTimestamp(millis), new Date(millis).toISOString())
    }
    for (const millis of [Number.NaN, Number.POSITIVE_INFINITY, 8.64e15 + 1]) {
      assert.throws(() => formatTimestamp(millis), RangeError)
    }
  })
})
