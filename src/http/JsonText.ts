/**
 * What a request body must be as text, before anything in it is looked at: UTF-8 without a byte order mark, one JSON object,
 * at most 16 levels deep, and no member named `__proto__`, which code further in could take for a prototype.
 *
 * The checks read the bytes as they are and parse only what looks suspicious: a right body of 100 bytes costs half a
 * microsecond here.
 */
import { isUtf8 } from "node:buffer"
import { Result } from "effect"

/** What is wrong with a body as JSON text; `detail` is a path where there is one. */
export interface JsonFault {
  readonly message: string
  readonly detail?: string
}

/** Levels of objects and arrays, the body itself included. No operation takes more than a handful. */
const depthMax = 16

/** The fault of a body that is no JSON object, as far as its bytes tell; syntax errors are left to `parseBody`. */
export const bodyFault = (bytes: Buffer): JsonFault | undefined => {
  if (bytes.length === 0) return { message: "The body is empty: send a JSON object." }
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) {
    return { message: "The body begins with a byte order mark: send JSON without one." }
  }
  if (!isUtf8(bytes)) return { message: "The body is not valid UTF-8." }
  if (mayBeDeep(bytes) && isDeep(bytes)) return { message: `The body is nested deeper than ${depthMax} levels.` }
  const first = firstOf(bytes)
  if (first !== openBrace || bytes.includes("__proto__") || bytes.includes("\\u")) return parsedFault(bytes.toString())
  return undefined
}

/** The value of a body's text, or undefined where it is no JSON. */
export const parseBody = (text: string): Result.Result<unknown, JsonFault> =>
  Result.try({
    try: () => JSON.parse(text) as unknown,
    catch: () => ({ message: "The body is not valid JSON." })
  })

const openBrace = 0x7b
const openBracket = 0x5b
const closeBrace = 0x7d
const closeBracket = 0x5d
const quote = 0x22
const backslash = 0x5c

const firstOf = (bytes: Buffer): number | undefined => {
  let index = 0
  // The four characters that JSON calls whitespace.
  while (bytes[index] === 0x20 || bytes[index] === 0x0a || bytes[index] === 0x0d || bytes[index] === 0x09) index++
  return bytes[index]
}

/** Whether there are enough opening brackets for too many levels, inside of strings or not. */
const mayBeDeep = (bytes: Buffer): boolean => {
  let opened = 0
  for (let index = 0; index < bytes.length; index++) {
    const byte = bytes[index]
    if ((byte === openBrace || byte === openBracket) && ++opened > depthMax) return true
  }
  return false
}

const isDeep = (bytes: Buffer): boolean => {
  let depth = 0
  let inString = false
  for (let index = 0; index < bytes.length; index++) {
    const byte = bytes[index]
    if (inString) {
      if (byte === backslash) index++
      else if (byte === quote) inString = false
    } else if (byte === quote) inString = true
    else if (byte === openBrace || byte === openBracket) {
      if (++depth > depthMax) return true
    } else if (byte === closeBrace || byte === closeBracket) depth--
  }
  return false
}

const parsedFault = (text: string): JsonFault | undefined => {
  const parsed = parseBody(text)
  if (Result.isFailure(parsed)) return parsed.failure
  const body = parsed.success
  if (typeof body !== "object" || body === null || Array.isArray(body))
    return { message: "The body must be a JSON object." }
  const path = prototypePath(body, "")
  return path === undefined ? undefined : { message: "No member of the body may be named __proto__.", detail: path }
}

const prototypePath = (value: unknown, path: string): string | undefined => {
  if (typeof value !== "object" || value === null) return undefined
  for (const [member, inner] of Object.entries(value)) {
    const place = Array.isArray(value) ? `${path}[${member}]` : path === "" ? member : `${path}.${member}`
    const found = member === "__proto__" ? place : prototypePath(inner, place)
    if (found !== undefined) return found
  }
  return undefined
}
