/**
 * Checks a JSON text before it is parsed: its limits, because the cost of parsing grows with the number of names and values, of which
 * 256 KiB may contain 50,000; and the member names that the parser must not read (`JsonText`). One scan over the bytes checks
 * everything, and decodes nothing.
 *
 * What must stay true: brackets, colons and commas within strings do not count, and a quote after a backslash does not end a string.
 */
import { randomInt } from "node:crypto"
import { depthMax, differentNamesMax, metadataNamesMax, namesMax } from "./JsonLimits.ts"

export type ExceededLimit = "depth" | "names" | "metadata" | "values" | "different names"

export interface Scan {
  /** The first exceeded limit. The scan ends there. */
  readonly exceeded?: ExceededLimit
  /** The first member name that contains a backslash, as it is written: with quotes and escapes. */
  readonly withBackslash?: string | undefined
  /** Whether a member is named `__proto__`, written with escapes or without. */
  readonly hasPrototype?: boolean
}

// The state of each level. All scans share it, because a scan is never interrupted.
const names = new Uint32Array(depthMax + 1)
const limits = new Uint32Array(depthMax + 1).fill(namesMax)
/** Whether the last string contains a backslash. Few names do. */
let isEscaped = false

/** Other faults are left to the parser. */
export const scanJson = (bytes: Buffer, valuesMax: number): Scan => {
  let depth = 0
  let values = 0
  let isMetadata = false
  // The last string without its quotes: a name, if a colon follows.
  let begin = 0
  let end = 0
  let withBackslash: string | undefined
  let hasPrototype = false
  // A member takes at least six bytes, as in `"a":1,`, so most bodies are too short to contain too many different names.
  const mayExceed = bytes.length >= 6 * differentNamesMax
  let different = 0
  if (mayExceed) hashes.fill(0)
  names[0] = 0
  for (let index = 0; index < bytes.length; index++) {
    switch (bytes[index]) {
      case quote:
        begin = index + 1
        index = end = endOfString(bytes, begin)
        break
      case colon:
        if (++names[depth]! > limits[depth]!)
          return { exceeded: limits[depth] === metadataNamesMax ? "metadata" : "names" }
        if (mayExceed && isNew(hashOf(bytes, begin, end)) && ++different > differentNamesMax)
          return { exceeded: "different names" }
        isMetadata = bytes[begin] === letterM && isText(bytes, begin, end, metadata)
        hasPrototype ||= (bytes[begin] === underscore || bytes[begin] === backslash) && isPrototype(bytes, begin, end)
        if (isEscaped && withBackslash === undefined && writesBackslash(bytes, begin, end))
          withBackslash = bytes.toString("utf8", begin - 1, end + 1)
        // In a text that is no JSON, another colon may follow: a long name is not read again.
        begin = end
        break
      case comma:
        if (++values > valuesMax) return { exceeded: "values" }
        isMetadata = false
        break
      case openBrace:
      case openBracket:
        if (depth === depthMax) return { exceeded: "depth" }
        if (++values > valuesMax) return { exceeded: "values" }
        limits[depth + 1] = isMetadata ? metadataNamesMax : limits[depth]!
        names[++depth] = 0
        break
      case closeBrace:
      case closeBracket:
        if (depth > 0) depth--
        break
    }
  }
  return { withBackslash, hasPrototype }
}

/** The index of the closing quote of a string that begins at `begin`. Without one, an index beyond the text. */
const endOfString = (bytes: Buffer, begin: number): number => {
  let end = begin
  isEscaped = false
  for (; end < bytes.length && bytes[end] !== quote; end++) {
    if (bytes[end] !== backslash) continue
    isEscaped = true
    end++
  }
  return end
}

const isText = (bytes: Buffer, begin: number, end: number, text: string): boolean =>
  end - begin === text.length && bytes.toString("latin1", begin, end) === text

/** The hashes of the names of a scan, each in the first free place from its low bits on; 0 is a free place. A `Set` takes twice as long. */
const hashes = new Int32Array(8_192)

/** Whether no earlier name of the scan has this hash. It has one then. */
const isNew = (hash: number): boolean => {
  let at = hash % hashes.length
  for (; hashes[at] !== 0; at = (at + 1) % hashes.length) if (hashes[at] === hash) return false
  hashes[at] = hash
  return true
}

/** Of 30 bits, which V8 stores without an object. To make 30,000 texts for a comparison takes longer than to parse them. */
const hashOf = (bytes: Buffer, begin: number, end: number): number => {
  let hash = 0
  for (let index = begin; index < end; index++) {
    hash = Math.imul(hash ^ bytes[index]!, multiplier)
    hash ^= hash >>> 15
  }
  return (hash >>> 1) | 1
}

/** Random, so that colliding names cannot be prepared. It changes no response. */
const multiplier = 2 * randomInt(2 ** 31) + 1

/** Whether a name contains `\\` or `\u005c`. */
const writesBackslash = (bytes: Buffer, begin: number, end: number): boolean => {
  for (let at = begin; at < end; at++) {
    if (bytes[at] !== backslash) continue
    at++
    if (bytes[at] === backslash || (bytes[at] === letterU && codeUnit(bytes, at) === backslash)) return true
  }
  return false
}

const isPrototype = (bytes: Buffer, begin: number, end: number): boolean => {
  let at = begin
  for (let index = 0; index < prototypeName.length; index++) {
    const isEscaped = bytes[at] === backslash && bytes[at + 1] === letterU
    if ((isEscaped ? codeUnit(bytes, at + 1) : bytes[at]) !== prototypeName.charCodeAt(index)) return false
    at += isEscaped ? escapeLength : 1
  }
  return at === end
}

/** Bytes of an escape as `\\u005f`. */
const escapeLength = 6

/** The character of an escape that begins at its letter u; -1 if it is not one of the first 256. */
const codeUnit = (bytes: Buffer, at: number): number =>
  bytes[at + 1] === zero && bytes[at + 2] === zero ? 16 * hexValue(bytes[at + 3]) + hexValue(bytes[at + 4]) : -1

/** The result is meaningless for other bytes, because the parser refuses their escapes. */
const hexValue = (byte = 0): number => (byte <= 0x39 ? byte - zero : (byte | 0x20) - 0x57)

const metadata = "metadata"
export const prototypeName = "__proto__"

const openBrace = 0x7b
const closeBrace = 0x7d
const openBracket = 0x5b
const closeBracket = 0x5d
const quote = 0x22
const backslash = 0x5c
const colon = 0x3a
const comma = 0x2c
const letterM = 0x6d
const letterU = 0x75
const underscore = 0x5f
const zero = 0x30
