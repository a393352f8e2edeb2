/**
 * Faults of a single place in a request, derived from its published schema. The values are not judged here: the
 * oracle determines the expected answer to each.
 */
import { Raw } from "./Conversation.ts"
import { type Json, nameOf, resolved } from "./Surface.ts"

export interface Mutation {
  /** The name in the message of a failure: `metadata: 65 keys`. */
  readonly name: string
  readonly body: unknown
}

/** One of each JSON type. */
const jsonTypes: ReadonlyArray<unknown> = [null, true, 5, "text", [], {}]

const texts: ReadonlyArray<string> = [
  "",
  " ",
  "\u0000",
  "nul\u0000within",
  "\ud800",
  "low first \udc00\ud800",
  "Not A Code",
  "../../../etc/passwd",
  "__proto__",
  "a@",
  "'; DROP TABLE licenses; --",
  "x".repeat(5_000)
]

const dates: ReadonlyArray<string> = [
  "soon",
  "",
  "2030-01-31",
  "2030-01-31T12:00:00",
  "2030-02-30T00:00:00Z",
  "2030-01-31T24:00:00Z",
  "2030-13-01T00:00:00Z",
  "2030-01-31T12:00:60Z",
  "2030-01-31T12:00:00+24:00",
  "0000-01-01T00:00:00Z",
  "10000-01-01T00:00:00Z",
  "1893456000"
]

const numbers: ReadonlyArray<unknown> = [
  -1,
  0.5,
  1.000_000_1,
  2 ** 31,
  Number.MAX_SAFE_INTEGER + 1,
  -(2 ** 53),
  new Raw("9223372036854775807"),
  new Raw("9223372036854775808"),
  1e308,
  new Raw("1e400"),
  new Raw("-1e400"),
  1e-7
]

const nested = (levels: number): unknown => (levels === 0 ? 1 : { deeper: nested(levels - 1) })

const metadata: ReadonlyArray<readonly [name: string, value: unknown]> = [
  ["5 levels", nested(5)],
  ["5 levels of arrays", { deep: [[[[1]]]] }],
  ["12 levels", nested(12)],
  ["40 levels", nested(40)],
  ["65 keys", Object.fromEntries(Array.from({ length: 65 }, (_, index) => [`k${index}`, index]))],
  ["65 keys in two objects", { a: keys(32), b: keys(31) }],
  ["more than 16 KiB", { text: "x".repeat(16_400) }],
  ["more than 16 KiB of two bytes each", { text: "é".repeat(8_200) }],
  ["NUL", { text: "a\u0000b" }],
  ["NUL in a key", { "a\u0000b": 1 }],
  ["a backslash in a key", new Raw('{"list":[{"a\\\\b":1}]}')],
  ["an escaped backslash in a key", new Raw('{"a\\u005cb":1}')],
  ["other escapes in a key", new Raw('{"\\"\\n\\u00e9":1}')],
  ["a lone surrogate", { list: ["\udfff"] }],
  ["a number without end", { list: [new Raw("1e999")] }],
  ["__proto__", new Raw('{"__proto__":{"admin":true}}')],
  ["__proto__ in depth", new Raw('{"list":[{"__proto__":1}]}')]
]

function keys(count: number) {
  return Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, index]))
}

/** Values to put in place of this schema. */
export const valuesFor = (given: Json): ReadonlyArray<readonly [name: string, value: unknown]> => {
  const schema = resolved(given)
  const alternatives = (schema["anyOf"] ?? schema["oneOf"]) as ReadonlyArray<Json> | undefined
  const types = jsonTypes.map((value) => [`${JSON.stringify(value)}`, value] as const)
  if (alternatives !== undefined) return [...types, ...alternatives.flatMap((alternative) => ofType(alternative))]
  return [...types, ...ofType(given)]
}

const ofType = (given: Json): ReadonlyArray<readonly [name: string, value: unknown]> => {
  const schema = resolved(given)
  const { minLength, maxLength, minimum, maximum, maxItems } = schema as Record<string, number>
  if (nameOf(given) === "Metadata") return metadata
  switch (schema["type"] ?? (Array.isArray(schema["enum"]) ? typeof schema["enum"][0] : undefined)) {
    case "string": {
      const lengths = [minLength === undefined ? [] : [minLength - 1], maxLength === undefined ? [] : [maxLength + 1]]
      const bounds = lengths
        .flat()
        .flatMap((length) =>
          ["x", "😀"].map((one) => [`${length} times ${one}`, one.repeat(Math.max(0, length))] as const)
        )
      const special = schema["format"] === "date-time" ? [...texts, ...dates] : texts
      const cased = ((schema["enum"] ?? []) as ReadonlyArray<string>).slice(0, 1).map((text) => text.toUpperCase())
      return [...bounds, ...[...special, ...cased].map((text) => [shownText(text), text] as const)]
    }
    case "integer":
    case "number": {
      const bounds = [minimum === undefined ? [] : [minimum - 1], maximum === undefined ? [] : [maximum + 1]].flat()
      return [...bounds, ...numbers].map((value) => [value instanceof Raw ? value.text : String(value), value] as const)
    }
    case "array": {
      const items = valuesFor((schema["items"] ?? {}) as Json)
      const many = Array.from({ length: (maxItems ?? 10_000) + 1 }, (_, index) => `item ${index}`)
      return [["too many items", many], ...items.map(([name, value]) => [`[${name}]`, [value]] as const)]
    }
    case "object":
      return memberMutations(schema, {}).map(({ name, body }) => [`{${name}}`, body] as const)
    default:
      return []
  }
}

const shownText = (text: string): string =>
  JSON.stringify(text.length > 40 ? `${text.slice(0, 8)}… (${text.length})` : text)

/** A valid body with one change. */
export const memberMutations = (given: Json, right: object): ReadonlyArray<Mutation> => {
  const schema = resolved(given)
  const properties = (schema["properties"] ?? {}) as { readonly [name: string]: Json }
  const required = (schema["required"] ?? []) as ReadonlyArray<string>
  return [
    ...required.map((field) => ({ name: `without ${field}`, body: { ...right, [field]: undefined } })),
    ...Object.entries(properties).flatMap(([field, member]) =>
      valuesFor(member).map(([name, value]) => ({ name: `${field}: ${name}`, body: { ...right, [field]: value } }))
    ),
    { name: "an unknown field", body: { ...right, colour: "red" } },
    { name: "constructor", body: { ...right, constructor: 1 } },
    { name: "an unknown field of 5,000 characters", body: { ...right, ["x".repeat(5_000)]: 1 } }
  ]
}

/** Bodies that are invalid as a whole, for any operation. */
export const wholeBodies: ReadonlyArray<Mutation> = [
  { name: "an empty body", body: "" },
  { name: "half of an object", body: '{"name":' },
  { name: "an array", body: "[]" },
  { name: "an array with an object", body: "[{}]" },
  { name: "a text", body: '"text"' },
  { name: "a number", body: "5" },
  { name: "null", body: "null" },
  { name: "a byte order mark", body: Buffer.from("\ufeff{}") },
  { name: "invalid UTF-8", body: Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]) },
  { name: "two objects", body: "{}{}" },
  { name: "17 levels", body: `{"a":${"[".repeat(17)}${"]".repeat(17)}}` },
  { name: "8,000 levels", body: "[".repeat(8_000) },
  { name: "__proto__", body: '{"__proto__":{"admin":true}}' },
  { name: "an escaped __proto__", body: '{"\\u005f_proto__":1}' }
]
