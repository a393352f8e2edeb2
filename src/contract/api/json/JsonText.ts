/**
 * Checks the text of a request body before it is parsed: UTF-8 without a byte order mark, one JSON object within the limits of
 * `JsonLimits`, no member named `__proto__` (code that reads it could change a prototype), and no member name that contains a
 * backslash.
 *
 * Names with a backslash trigger a fault of V8's parser (nodejs/node#63785, all of V8 13 and 14): after such a name, it may read a
 * later name with an escape, such as `\n` or `\u00e9`, as the earlier one. So no such name reaches `JSON.parse`.
 *
 * The checks scan the bytes and parse only suspicious parts: a valid body of 100 bytes takes half a microsecond.
 */
import { isUtf8 } from "node:buffer"
import { randomInt } from "node:crypto"
import { Result } from "effect"
import {
  depthMax,
  type ExceededLimit,
  endOfString,
  exceededLimit,
  metadataNamesMax,
  namesMax,
  valuesMaxDefault
} from "./JsonLimits.ts"

/** A fault of a body as JSON text. `detail` is the path of the faulty member, if known. */
export interface JsonFault {
  readonly message: string
  readonly detail?: string
}

/**
 * Different names in a body. V8 takes more than a microsecond to parse a new name, and almost no time for a repeated one. Lists of
 * records repeat their names.
 */
export const differentNamesMax = 2_000

/** Names in a request may be long. The beginning is enough to find the field. */
const detailLengthMax = 256

/** The faults that can be found without parsing the whole body. Syntax errors are left to `parseBody`. */
export const bodyFault = (bytes: Buffer, valuesMax: number = valuesMaxDefault): JsonFault | undefined => {
  if (bytes.length === 0) return { message: "The body is empty: send a JSON object." }
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) {
    return { message: "The body begins with a byte order mark: send JSON without one." }
  }
  if (!isUtf8(bytes)) return { message: "The body is not valid UTF-8: send JSON in UTF-8." }
  const exceeded = exceededLimit(bytes, valuesMax)
  if (exceeded !== undefined) return limitFault(exceeded, valuesMax)
  if (hasTooManyNames(bytes)) {
    return { message: `The body has more than ${differentNamesMax} different field names: use fewer.` }
  }
  const name = nameWithBackslash(bytes)
  if (name !== undefined) {
    return {
      message: "A field's name contains a backslash: remove or rename the field.",
      detail: name.slice(0, detailLengthMax)
    }
  }
  const isObject = bytes[afterWhitespace(bytes, 0)] === openBrace
  return !isObject || hasPrototypeName(bytes) ? parsedFault(bytes.toString()) : undefined
}

const limitFault = (exceeded: ExceededLimit, valuesMax: number): JsonFault => {
  switch (exceeded) {
    case "depth":
      return { message: `The body is nested deeper than ${depthMax} levels: use fewer.` }
    case "names":
      return { message: `An object in the body has more than ${namesMax} fields: send fewer.` }
    case "metadata":
      return { message: `The metadata has more than ${metadataNamesMax} keys: send fewer.`, detail: "metadata" }
    case "values":
      return { message: `The body has more than ${valuesMax} fields and list elements: send fewer.` }
  }
}

/** Finds the first member name that fulfils a condition, without its quotes. `end` is the index of the closing quote. */
const findName = <A>(bytes: Buffer, test: (begin: number, end: number) => A | undefined): A | undefined => {
  for (let quoteAt = bytes.indexOf(quote); quoteAt !== -1; ) {
    const end = endOfString(bytes, quoteAt)
    const found = bytes[afterWhitespace(bytes, end + 1)] === colon ? test(quoteAt + 1, end) : undefined
    if (found !== undefined) return found
    quoteAt = bytes.indexOf(quote, end + 1)
  }
  return undefined
}

const hasTooManyNames = (bytes: Buffer): boolean => {
  // A member takes at least six bytes, as in `"a":1,`, so most bodies are too short to contain too many.
  if (bytes.length < 6 * differentNamesMax) return false
  const names = new Set<number>()
  return (
    findName(bytes, (begin, end) => names.add(hashOf(bytes, begin, end)).size > differentNamesMax || undefined) ?? false
  )
}

/** Of 30 bits, which V8 stores without an object. To make 30,000 texts for a comparison takes longer than to parse them. */
const hashOf = (bytes: Buffer, begin: number, end: number): number => {
  let hash = 0
  for (let index = begin; index < end; index++) {
    hash = Math.imul(hash ^ bytes[index]!, multiplier)
    hash ^= hash >>> 15
  }
  return hash >>> 2
}

/** Random, so that nobody can choose names of one hash. It changes no response. */
const multiplier = 2 * randomInt(2 ** 31) + 1

/** The first member name that contains a backslash, written `\\` or `\u005c`. Other faults are left to the parser. */
export const nameWithBackslash = (bytes: Buffer): string | undefined =>
  bytes.includes(backslash)
    ? findName(bytes, (begin, end) => {
        if (!writesBackslash(bytes, begin, end)) return undefined
        const name = parseBody(bytes.toString("utf8", begin - 1, end + 1))
        return Result.isSuccess(name) && String(name.success).includes("\\") ? String(name.success) : undefined
      })
    : undefined

const writesBackslash = (bytes: Buffer, begin: number, end: number): boolean => {
  for (let at = begin; at < end; at++) {
    if (bytes[at] !== backslash) continue
    at++
    if (bytes[at] === backslash || (bytes[at] === letterU && codeUnit(bytes, at) === backslash)) return true
  }
  return false
}

/** Whether a member is named `__proto__`, written with escapes or without. */
const hasPrototypeName = (bytes: Buffer): boolean =>
  (bytes.includes(prototypeName) || bytes.includes("\\u")) &&
  (findName(bytes, (begin, end) => readsPrototype(bytes, begin, end) || undefined) ?? false)

const readsPrototype = (bytes: Buffer, begin: number, end: number): boolean => {
  let at = begin
  for (let index = 0; index < prototypeName.length; index++) {
    const isEscaped = bytes[at] === backslash && bytes[at + 1] === letterU
    if ((isEscaped ? codeUnit(bytes, at + 1) : bytes[at]) !== prototypeName.charCodeAt(index)) return false
    at += isEscaped ? escapeLength : 1
  }
  return at === end
}

const prototypeName = "__proto__"
/** Bytes of an escape as `\\u005f`. */
const escapeLength = 6

/** The character of an escape that begins at its letter u; -1 if it is not one of the first 256. */
const codeUnit = (bytes: Buffer, at: number): number =>
  bytes[at + 1] === zero && bytes[at + 2] === zero ? 16 * hexValue(bytes[at + 3]) + hexValue(bytes[at + 4]) : -1

/** The result is meaningless for other bytes, because the parser refuses their escapes. */
const hexValue = (byte = 0): number => (byte <= 0x39 ? byte - zero : (byte | 0x20) - 0x57)

/** Parses the text of a body. */
export const parseBody = (text: string): Result.Result<unknown, JsonFault> =>
  Result.try({
    try: () => JSON.parse(text) as unknown,
    catch: (error) => ({ message: `The body is not valid JSON: ${syntaxFaultOf(error)}.` })
  })

/** V8's sentence where it has a position. Its other sentences quote the text, which may contain secrets. */
const syntaxFaultOf = (error: unknown): string => {
  const [, fault, line, column] =
    /^(.*) in JSON at position \d+ \(line (\d+) column (\d+)\)$/.exec(String((error as Error).message)) ?? []
  return fault === undefined
    ? "it has a misplaced character, or ends too early"
    : `${fault.replace(/^./, (letter) => letter.toLowerCase())} at line ${line}, column ${column}`
}

const openBrace = 0x7b
const quote = 0x22
const backslash = 0x5c
const colon = 0x3a
const letterU = 0x75
const zero = 0x30

/** The index of the first byte at or after `index` that is not JSON whitespace. */
const afterWhitespace = (bytes: Buffer, index: number): number => {
  let after = index
  while (bytes[after] === 0x20 || bytes[after] === 0x0a || bytes[after] === 0x0d || bytes[after] === 0x09) after++
  return after
}

const parsedFault = (text: string): JsonFault | undefined => {
  const parsed = parseBody(text)
  if (Result.isFailure(parsed)) return parsed.failure
  const body = parsed.success
  if (typeof body !== "object" || body === null || Array.isArray(body))
    return { message: "The body is not a JSON object: send one." }
  const path = prototypePath(body, "")
  return path === undefined ? undefined : { message: "A field is named __proto__: remove or rename it.", detail: path }
}

const prototypePath = (value: unknown, path: string): string | undefined => {
  if (typeof value !== "object" || value === null) return undefined
  for (const [member, inner] of Object.entries(value)) {
    const place = Array.isArray(value) ? `${path}[${member}]` : path === "" ? member : `${path}.${member}`
    const found = member === prototypeName ? place : prototypePath(inner, place)
    if (found !== undefined) return found
  }
  return undefined
}
