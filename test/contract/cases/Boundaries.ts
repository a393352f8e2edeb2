/** The values at the limits of a published schema, and those just beyond them. */
import fc from "fast-check"
import { unroutedUrl } from "./Fixtures.ts"
import { type Json, resolved } from "./Surface.ts"

const seed = 20_300_131
const samplesOfPattern = 3

const bounds: { readonly [format: string]: readonly [minimum: number, maximum: number] } = {
  int32: [-(2 ** 31), 2 ** 31 - 1],
  int64: [Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER]
}

/** Values that a schema just allows: the shortest, the longest, the smallest, the largest, each of an enumeration. */
export const allowedBy = (given: Json): ReadonlyArray<unknown> => {
  const schema = resolved(given)
  const alternatives = (schema["anyOf"] ?? schema["oneOf"]) as ReadonlyArray<Json> | undefined
  if (alternatives !== undefined) return alternatives.flatMap(allowedBy)
  if ("const" in schema) return [schema["const"]]
  if (Array.isArray(schema["enum"])) return schema["enum"]
  switch (schema["type"]) {
    case "string":
      return textsAllowedBy(schema)
    case "integer": {
      const [minimum, maximum] = bounds[String(schema["format"])] ?? bounds["int64"]!
      return [Number(schema["minimum"] ?? minimum), Number(schema["maximum"] ?? maximum)]
    }
    case "boolean":
      return [true, false]
    case "null":
      return [null]
    case "array":
      return listsAllowedBy(schema)
    default:
      return []
  }
}

const textsAllowedBy = (schema: Json): ReadonlyArray<string> => {
  const { format, pattern } = schema as Record<string, string | undefined>
  const { maxLength = 2_000, minLength = 0 } = schema as Record<string, number>
  if (format === "date-time")
    return ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999Z", "2030-01-31T12:00:00+23:59", "2030-01-31t12:00:00z"]
  if (format === "uri") return [unroutedUrl, `${unroutedUrl}/`.padEnd(maxLength, "x")]
  if (pattern !== undefined) {
    const matching = fc.stringMatching(new RegExp(pattern, "u")).filter((text) => {
      const { length } = Array.from(text)
      return length >= minLength && length <= maxLength && text.isWellFormed() && !text.includes("\u0000")
    })
    return fc.sample(matching, { seed, numRuns: samplesOfPattern })
  }
  const lengths = minLength === maxLength ? [minLength] : [minLength, maxLength]
  return lengths.flatMap((length) => ["x", "😀"].map((one) => one.repeat(length)))
}

const listsAllowedBy = (schema: Json): ReadonlyArray<unknown> => {
  const items = allowedBy((schema["items"] ?? {}) as Json)
  const { minItems = 0, maxItems = 1_000 } = schema as Record<string, number>
  const ofLength = (length: number) => Array.from({ length }, (_, index) => items[index % items.length])
  // Many lists take each item once only.
  const longest = schema["uniqueItems"] === true ? Math.min(maxItems, new Set(items).size) : maxItems
  return items.length === 0 ? [] : [ofLength(minItems), ...items.map((item) => [item]), ofLength(longest)]
}

/** Texts of a query parameter that its schema just forbids. */
export const forbiddenBy = (given: Json): ReadonlyArray<string> => {
  const schema = resolved(given)
  const { maxLength, maximum, minLength, minimum } = schema as Record<string, number | undefined>
  const pattern = schema["pattern"] as string | undefined
  if (Array.isArray(schema["enum"])) return ["", "other", String(schema["enum"][0]).toUpperCase()]
  if (schema["type"] === "integer")
    return [
      "",
      "one",
      "1.5",
      ...(minimum === undefined ? [] : [String(minimum - 1)]),
      ...(maximum === undefined ? [] : [String(maximum + 1)])
    ]
  if (schema["format"] === "date-time") return ["", "2030-01-31", "2030-02-30T00:00:00Z", "10000-01-01T00:00:00Z"]
  return [
    ...(minLength === undefined ? [] : ["x".repeat(minLength - 1)]),
    ...(maxLength === undefined ? [] : ["x".repeat(maxLength + 1)]),
    ...(pattern === undefined ? [] : [" ", "\n", "é ", "/"].filter((text) => !new RegExp(pattern, "u").test(text)))
  ]
}
