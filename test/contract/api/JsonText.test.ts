/**
 * Member names with escapes, which V8's parser may misread once it has parsed a name with a backslash
 * (nodejs/node#63785).
 */
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect } from "effect"
import * as fc from "fast-check"
import { bodyFault, parseBody } from "../../../src/contract/api/json/JsonText.ts"
import { assertAnswered, assertRefused } from "../../support/http/Http.ts"
import { TestServer } from "../../support/http/TestServer.ts"

/** JSON text in which every character of names and texts that may be escaped is sometimes escaped and sometimes not. */
const jsonWith = (value: unknown, turn: () => boolean): string => {
  if (typeof value === "string") {
    const characters = value.split("").map((unit) => {
      const escaped = `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`
      return turn() || unit < " " || unit === '"' || unit === "\\" ? (short.get(unit) ?? escaped) : unit
    })
    return `"${characters.join("")}"`
  }
  if (Array.isArray(value)) return `[ ${value.map((item) => jsonWith(item, turn)).join(" ,")}]`
  if (typeof value !== "object" || value === null) return JSON.stringify(value)
  const members = Object.entries(value).map(([name, inner]) => `${jsonWith(name, turn)} :\n${jsonWith(inner, turn)}`)
  return `{${members.join(", ")} }`
}
const short = new Map([
  ["\n", "\\n"],
  ['"', '\\"'],
  ["/", "\\/"]
])

const body = (unit: fc.Arbitrary<string>) => {
  const text = fc.string({ unit: fc.constantFrom(...'\\\\\\"\n\u0001nu0a~:,{}/é€'), maxLength: 5 })
  const { value } = fc.letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 3 },
      fc.constantFrom(null, true, 0, -1.5),
      text,
      fc.array(tie("value"), { maxLength: 3 }),
      fc.dictionary(fc.string({ unit, maxLength: 5 }), tie("value"), { maxKeys: 5 })
    )
  }))
  return fc.dictionary(fc.string({ unit, maxLength: 5 }), value, { maxKeys: 5 })
}

const booleans = fc.infiniteStream(fc.boolean())
const nextBoolean = (stream: Iterator<boolean>) => () => stream.next().value === true

/**
 * A character that represents a backslash in names: no object of the tests itself has a name that triggers the parser's
 * fault.
 */
const backslashMark = "\u2572"
const restoreBackslashes = (text: string) => text.replaceAll(backslashMark, "\\\\").replaceAll("\\u2572", "\\u005C")

const faultOf = (text: string) => bodyFault(Buffer.from(text))

describe("member names", () => {
  it("with any escape except a backslash's are accepted and read as written, after any earlier bodies", () => {
    fc.assert(
      fc.property(body(fc.constantFrom(...'"\n\u0001nu0a~:,{}/é€')), booleans, (value, booleans) => {
        // Another client's body in between.
        for (const text of misleading) if (faultOf(text) === undefined) parseBody(text)
        const text = jsonWith(value, nextBoolean(booleans))
        assert.isUndefined(faultOf(text))
        assert.deepStrictEqual(JSON.parse(text), value)
      }),
      { numRuns: 2_000 }
    )
  })

  const misleading = [
    '{"\\\\":0}',
    '{"n":0,"\\\\":0}',
    '{"u":[],"\\u005c":0}',
    '{"a":{"0":0,"a\\\\":0}}',
    '{"a":1,"\\\\u00":0}'
  ]

  it("with a backslash are refused at every level and in every notation, and texts with one are not", () => {
    let refused = 0
    fc.assert(
      fc.property(body(fc.constantFrom(backslashMark, ...'"\nnu:{}é')), booleans, (value, booleans) => {
        const names = (value: unknown): ReadonlyArray<string> =>
          typeof value !== "object" || value === null
            ? []
            : Object.entries(value).flatMap(([name, inner]) => [name, ...names(inner)])
        const expected = names(value).find((name) => name.includes(backslashMark))
        const fault = faultOf(restoreBackslashes(jsonWith(value, nextBoolean(booleans))))
        assert.strictEqual(fault?.detail, expected?.replaceAll(backslashMark, "\\"))
        if (fault !== undefined) refused++
      }),
      { numRuns: 1_000 }
    )
    assert.isAbove(refused, 300)
  })

  it("are searched without a fault in long texts of any content", () => {
    const textLength = 262_144
    for (const text of [
      `{"a":"${'\\"'.repeat(textLength / 2)}`,
      `{"a":"${"\\".repeat(textLength)}`,
      '"\\"'.repeat(textLength / 3),
      `{"\\n"${" ".repeat(textLength)}`,
      `{${'"\\n" '.repeat(textLength / 5)}`
    ]) {
      assert.isUndefined(faultOf(text)?.detail)
    }
  })
})

layer(TestServer.layer)("Metadata", (it) => {
  it.effect("keeps names with escapes, after any bodies of other clients", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      const post = (code: string, metadata: string) =>
        send({ method: "POST", path: "/api/v1/products", body: `{"name":"P","code":"${code}","metadata":${metadata}}` })
      for (const name of ["\\\\", "\\u005c"])
        assertRefused(yield* post("refused", `{"before":0,"${name}":0}`), 400, "INVALID_JSON", "\\")
      const created = yield* post("taken", String.raw`{"before":0,"\n":1,"\"":2,"\u00e9":3}`)
      assertAnswered(created, 201)
      const { id } = (created.json as { readonly data: { readonly id: string } }).data
      for (const { text } of [created, yield* send({ path: `/api/v1/products/${id}` })]) {
        for (const member of [String.raw`"\n":1`, String.raw`"\"":2`, '"é":3']) assert.include(text, member)
      }
    })
  )
})
