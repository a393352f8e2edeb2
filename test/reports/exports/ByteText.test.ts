import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { formatTimestamp } from "../../../src/api/Timestamp.ts"
import { ByteText, utf8 } from "../../../src/reports/exports/ByteText.ts"

const dayMillis = 86_400_000

const written = (write: (text: ByteText) => void): string => {
  const text = new ByteText(64)
  write(text)
  return Buffer.from(text.written()).toString()
}

describe("A text of bytes", () => {
  it("writes whole numbers as JSON does", () => {
    const edges = [0, 9, 10, 99, 100, 999_999_999, 1_000_000_000, 2 ** 31 - 1, 2 ** 31, Number.MAX_SAFE_INTEGER]
    const number = fc.oneof(fc.constantFrom(...edges, ...edges.map((edge) => -edge)), fc.integer(), fc.maxSafeInteger())
    fc.assert(
      fc.property(number, (value) => {
        assert.strictEqual(
          written((text) => text.integer(value)),
          JSON.stringify(value)
        )
      })
    )
  })

  it("writes the time of a day as timestamps are written", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: dayMillis - 1 }), (millis) => {
        assert.strictEqual(
          written((text) => text.timeOfDay(millis)),
          formatTimestamp(millis).slice("1970-01-01T".length)
        )
      })
    )
  })

  it("grows, and begins anew", () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: "grapheme", maxLength: 80 })), (parts) => {
        const text = new ByteText(1)
        text.text("gone")
        text.clear()
        for (const part of parts) {
          const bytes = utf8(part)
          text.reserve(bytes.length)
          text.bytes(bytes)
          text.text(part)
        }
        assert.strictEqual(Buffer.from(text.written()).toString(), parts.map((part) => part + part).join(""))
      })
    )
  })
})
