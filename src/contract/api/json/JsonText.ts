/**
 * Checks the text of a request body before it is parsed: UTF-8 without a byte order mark, one JSON object within the limits of
 * `JsonScan`, no member named `__proto__` (code that reads it could change a prototype), and no member name that contains a
 * backslash.
 *
 * Names with a backslash trigger a fault of V8's parser (nodejs/node#63785, all of V8 13 and 14): after such a name, it may read a
 * later name with an escape, such as `\n` or `\u00e9`, as the earlier one. So no such name reaches `JSON.parse`.
 *
 * The checks scan the bytes and parse only suspicious parts: a valid body of 100 bytes takes half a microsecond.
 */
import { isUtf8 } from "node:buffer"
import { Result } from "effect"
import { depthMax, differentNamesMax, metadataNamesMax, namesMax, valuesMaxDefault } from "./JsonLimits.ts"
import { type ExceededLimit, prototypeName, scanJson } from "./JsonScan.ts"

/** A fault of a body as JSON text. `detail` is the path of the faulty member, if known. */
export interface JsonFault {
  readonly message: string
  readonly detail?: string
}

/** Names in a request may be long. The beginning is enough to find the field. */
const detailLengthMax = 256

/** The faults that can be found without parsing the whole body. Syntax errors are left to `parseBody`. */
export const bodyFault = (bytes: Buffer, valuesMax: number = valuesMaxDefault): JsonFault | undefined => {
  if (bytes.length === 0) return { message: "The body is empty: send a JSON object." }
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) {
    return { message: "The body begins with a byte order mark: send JSON without one." }
  }
  if (!isUtf8(bytes)) return { message: "The body is not valid UTF-8: send JSON in UTF-8." }
  const { exceeded, hasPrototype, withBackslash } = scanJson(bytes, valuesMax)
  if (exceeded !== undefined) return limitFault(exceeded, valuesMax)
  if (withBackslash !== undefined) return backslashFault(withBackslash)
  return hasPrototype || bytes[afterWhitespace(bytes)] !== openBrace ? parsedFault(bytes.toString()) : undefined
}

const limitFault = (exceeded: ExceededLimit, valuesMax: number): JsonFault => {
  switch (exceeded) {
    case "depth":
      return { message: `The body is nested deeper than ${depthMax} levels: use fewer.` }
    case "names":
      return { message: `An object in the body has more than ${namesMax} fields: send fewer.` }
    case "metadata":
      return { message: `The metadata has more than ${metadataNamesMax} keys: send fewer.`, detail: "metadata" }
    case "different names":
      return { message: `The body has more than ${differentNamesMax} different field names: use fewer.` }
    case "values":
      return { message: `The body has more than ${valuesMax} fields and list elements: send fewer.` }
  }
}

/** A wrong escape in the name is left to the parser, which reads nothing after it. */
const backslashFault = (written: string): JsonFault | undefined =>
  Result.match(parseBody(written), {
    onFailure: () => undefined,
    onSuccess: (name) => ({
      message: "A field's name contains a backslash: remove or rename the field.",
      detail: String(name).slice(0, detailLengthMax)
    })
  })

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

/** The index of the first byte that is not JSON whitespace. */
const afterWhitespace = (bytes: Buffer): number => {
  let index = 0
  while (bytes[index] === 0x20 || bytes[index] === 0x0a || bytes[index] === 0x0d || bytes[index] === 0x09) index++
  return index
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
