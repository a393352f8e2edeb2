/**
 * Limits of a JSON text that are checked before it is parsed. The cost of parsing grows with the number of names and values, and
 * 256 KiB may contain 50,000 of them. One scan over the bytes checks all limits, and decodes nothing.
 *
 * What must stay true: brackets, colons and commas within strings do not count, and a quote after a backslash does not end a string.
 */

/** Levels of objects and lists, the body itself included. No operation takes more than a handful. */
export const depthMax = 16
/** Names of one object, repeated ones included. No operation needs a tenth of this. */
export const namesMax = 500
/** Names of one object within `metadata`. */
export const metadataNamesMax = 64
/** Members and list elements of a body, unless an operation takes lists of records. An empty object or list counts twice. */
export const valuesMaxDefault = 10_000

export type ExceededLimit = "depth" | "names" | "metadata" | "values"

// The state of each level. All scans share it, because a scan is never interrupted.
const names = new Uint32Array(depthMax + 1)
const limits = new Uint32Array(depthMax + 1).fill(namesMax)

/** The first limit that a text exceeds. Other faults are left to the parser. */
export const exceededLimit = (bytes: Uint8Array, valuesMax: number): ExceededLimit | undefined => {
  let depth = 0
  let values = 0
  let followsMetadata = false
  names[0] = 0
  for (let index = 0; index < bytes.length; index++) {
    switch (bytes[index]) {
      case quote: {
        const end = endOfString(bytes, index)
        followsMetadata = end - index === metadata.length - 1 && isMetadata(bytes, index)
        index = end
        break
      }
      case colon:
        if (++names[depth]! > limits[depth]!) return limits[depth] === metadataNamesMax ? "metadata" : "names"
        break
      case comma:
        if (++values > valuesMax) return "values"
        followsMetadata = false
        break
      case openBrace:
      case openBracket:
        if (depth === depthMax) return "depth"
        if (++values > valuesMax) return "values"
        limits[depth + 1] = followsMetadata ? metadataNamesMax : limits[depth]!
        names[++depth] = 0
        break
      case closeBrace:
      case closeBracket:
        if (depth > 0) depth--
        break
    }
  }
  return undefined
}

/** The index of a string's closing quote. Without one, an index beyond the text. */
export const endOfString = (bytes: Uint8Array, begin: number): number => {
  let end = begin + 1
  for (; end < bytes.length && bytes[end] !== quote; end++) if (bytes[end] === backslash) end++
  return end
}

const isMetadata = (bytes: Uint8Array, begin: number): boolean => {
  for (let index = 0; index < metadata.length; index++) if (bytes[begin + index] !== metadata[index]) return false
  return true
}

const metadata = new TextEncoder().encode('"metadata"')
const openBrace = 0x7b
const openBracket = 0x5b
const closeBrace = 0x7d
const closeBracket = 0x5d
const quote = 0x22
const backslash = 0x5c
const colon = 0x3a
const comma = 0x2c
