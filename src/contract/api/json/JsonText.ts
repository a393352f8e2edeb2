/**
 * Checks the text of a request body before it is parsed: UTF-8 without a byte order mark, one JSON object within the limits of
 * `JsonLimits`, no member named `__proto__` (code that reads it could change a prototype), and no member name that contains a
 * backslash.
 *
 * A name with a backslash makes V8's parser wrong for others (nodejs/node#63785, all of V8 13 and 14): after it parsed
 * one, it may read a later name with an escape, such as `\n` or `\u00e9`, as that name. So no such name reaches
 * `JSON.parse`.
 *
 * The checks scan the bytes and parse only suspicious parts: a valid body of 100 bytes takes half a microsecond.
 */
import { isUtf8 } from "node:buffer"
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
import { syntaxFaultAt } from "./JsonSyntax.ts"

/** What is wrong with a body as JSON text; `detail` is a path where there is one. */
export interface JsonFault {
  readonly message: string
  readonly detail?: string
}

/**
 * Different names in a body. V8 takes more than a microsecond to parse a name that it has not read before, and almost none for
 * one that it has: lists of records repeat their names.
 */
export const differentNamesMax = 2_000

/** Names that a request makes up may be long: the beginning tells which one is meant. */
const detailLengthMax = 256

/** The fault of a body that is no JSON object, as far as its bytes tell; syntax errors are left to `parseBody`. */
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

/** A member takes six bytes at least, as in `"a":1,`: most bodies are too short to be searched. */
const hasTooManyNames = (bytes: Buffer): boolean => {
  if (bytes.length < 6 * differentNamesMax) return false
  const names = new Set<string>()
  for (let begin = bytes.indexOf(quote); begin !== -1; ) {
    const end = endOfString(bytes, begin)
    if (bytes[afterWhitespace(bytes, end + 1)] === colon) {
      names.add(bytes.toString("latin1", begin + 1, end))
      if (names.size > differentNamesMax) return true
    }
    begin = bytes.indexOf(quote, end + 1)
  }
  return false
}

/**
 * The first member name of a JSON text that contains a backslash, written `\\` or `\u005c`. Whether the text is JSON is left to
 * the parser.
 */
export const nameWithBackslash = (bytes: Buffer): string | undefined => {
  if (!bytes.includes(backslash)) return undefined
  for (let begin = bytes.indexOf(quote); begin !== -1; ) {
    let end = begin + 1
    let mayContain = false
    for (; end < bytes.length && bytes[end] !== quote; end++) {
      if (bytes[end] !== backslash) continue
      end++
      if (!mayContain) mayContain = writesBackslash(bytes, end)
    }
    end++
    if (mayContain && bytes[afterWhitespace(bytes, end)] === colon) {
      const name = parseBody(bytes.toString("utf8", begin, end))
      if (Result.isSuccess(name) && String(name.success).includes("\\")) return String(name.success)
    }
    begin = bytes.indexOf(quote, end)
  }
  return undefined
}

/** Whether an escape, from the byte after its backslash on, is that of a backslash. */
const writesBackslash = (bytes: Buffer, at: number): boolean =>
  bytes[at] === backslash || (bytes[at] === letterU && codeUnit(bytes, at) === backslash)

/** Whether a string begins at one of the quotes that is a member's name and reads `__proto__`, with escapes or without. */
const hasPrototypeName = (bytes: Buffer): boolean => {
  if (!bytes.includes(prototypeName) && !bytes.includes("\\u")) return false
  for (let begin = bytes.indexOf(quote); begin !== -1; ) {
    const end = endOfString(bytes, begin)
    if (readsPrototype(bytes, begin + 1, end) && bytes[afterWhitespace(bytes, end + 1)] === colon) return true
    begin = bytes.indexOf(quote, end + 1)
  }
  return false
}

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

/** The character of an escape, from its letter u on; -1 if it is not one of the first 256, which are the ones looked for. */
const codeUnit = (bytes: Buffer, at: number): number =>
  bytes[at + 1] === zero && bytes[at + 2] === zero ? 16 * hexValue(bytes[at + 3]) + hexValue(bytes[at + 4]) : -1

/** Of another byte some number: the parser refuses such an escape. */
const hexValue = (byte = 0): number => (byte <= 0x39 ? byte - zero : (byte | 0x20) - 0x57)

/** The value of a body's text, or undefined where it is no JSON. */
export const parseBody = (text: string): Result.Result<unknown, JsonFault> =>
  Result.try({
    try: () => JSON.parse(text) as unknown,
    catch: () => ({ message: `The body is not valid JSON: ${placeOf(text, syntaxFaultAt(text))}.` })
  })

/** Where a text is wrong. Only the position is shown: the text may contain secrets. */
const placeOf = (text: string, at: number): string => {
  if (at >= text.length) return "it ends too early"
  let line = 1
  let column = 1
  // Without an array of the lines or characters, which would take ten times as long as the parser.
  for (let index = 0; index < at; index++) {
    const unit = text.charCodeAt(index)
    if (unit === newline) {
      line++
      column = 1
    } else if (unit < 0xdc00 || unit > 0xdfff) column++
  }
  return `look at line ${line}, column ${column}`
}

const openBrace = 0x7b
const quote = 0x22
const backslash = 0x5c
const colon = 0x3a
const letterU = 0x75
const zero = 0x30
const newline = 0x0a

/** The index of the first byte from `index` on that is not one of the four characters that JSON calls whitespace. */
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
