/**
 * Every character of Unicode, in the values and with the shrinking of fast-check's unit "binary". That one keeps a table of all
 * 1,112,064 characters for each process: 86 MB, which every garbage collection reads, and a second of CPU time to fill.
 */
import * as fc from "fast-check"

const surrogates = { from: 0xd800, count: 0x800 }

export const character = fc.integer({ min: 0, max: 0x10ffff - surrogates.count }).map(
  (index) => String.fromCodePoint(index < surrogates.from ? index : index + surrogates.count),
  (text) => {
    const point = typeof text === "string" && text.isWellFormed() ? text.codePointAt(0) : undefined
    if (point === undefined || text !== String.fromCodePoint(point)) throw new Error("not one character")
    return point < surrogates.from ? point : point - surrogates.count
  }
)
