/** Member names with escapes, which the engine's own parser may read as others (nodejs/node#63785). */
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect } from "effect"
import * as fc from "fast-check"
import { parseNames } from "../../src/http/JsonNames.ts"
import { assertAnswered } from "../support/Http.ts"
import { TestServer } from "../support/TestServer.ts"

const parse = JSON.parse

/** What is parsed here leaves behind in the engine what misleads it later. */
const misleading = String.raw`[{"\\":0},{"h":[],"\\":0},{"\\u00":0},{"h":1,"\\n":0},{"m":{"\\":0}}]`

/** JSON text with every character of names and texts that may be escaped written so, or not, by turns. */
const written = (value: unknown, turn: () => boolean): string => {
  if (typeof value === "string") {
    const characters = value.split("").map((unit) => {
      const escaped = `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`
      return turn() || unit < " " || unit === '"' || unit === "\\" ? escaped : unit
    })
    return `"${characters.join("")}"`
  }
  if (Array.isArray(value)) return `[ ${value.map((item) => written(item, turn)).join(" ,")}]`
  if (typeof value !== "object" || value === null) return JSON.stringify(value)
  const members = Object.entries(value).map(([name, inner]) => `${written(name, turn)} :\n${written(inner, turn)}`)
  return `{${members.join(", ")} }`
}

describe("names with escapes", () => {
  const name = fc.string({ unit: fc.constantFrom(...'\\\\\\"\n\u0001nu0a~:,{}é€'), maxLength: 5 })
  const value = fc.letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 3 },
      fc.constantFrom(null, true, 0, -1.5),
      name,
      fc.array(tie("value"), { maxLength: 3 }),
      fc.dictionary(name, tie("value"), { maxKeys: 5 })
    )
  })).value

  it("are read as they are written, whatever was read before", () => {
    const parseWhole = parseNames(parse)
    fc.assert(
      fc.property(value, fc.infiniteStream(fc.boolean()), (value, turns) => {
        const turn = () => turns.next().value === true
        parse(misleading)
        assert.deepStrictEqual(parseWhole(written(value, turn)), value)
      }),
      { numRuns: 2_000 }
    )
  })

  it("keep the rules of JSON: the last of a name counts, and __proto__ is a name like any other", () => {
    const parseWhole = parseNames(parse)
    assert.deepStrictEqual(Object.entries(parseWhole(String.raw`{"a":1,"\u0061":2,"b":3}`) as object), [
      ["a", 2],
      ["b", 3]
    ])
    const odd = parseWhole(String.raw`{"__pr\u006fto__":{"x":1}}`) as object
    assert.deepStrictEqual(Object.keys(odd), ["__proto__"])
    assert.strictEqual(Object.getPrototypeOf(odd), Object.prototype)
  })

  it("take no longer than their length, whatever a text is made of", () => {
    const parseWhole = parseNames(parse)
    const most = 262_144
    const marks = Array.from({ length: 20_000 }, (_, nth) => `~${nth}~`).join("")
    const names = Array.from({ length: 20_000 }, (_, nth) => `"${nth}\\n":0`).join()
    for (const [text, name] of [
      [`{"~":"${"~".repeat(most)}",${names}}`, "19999\n"],
      [`{"~":"${marks}","\\n":{${names}}}`, "\n"],
      [`{"\\n":"${'\\"'.repeat(most / 2)}"${" ".repeat(most)}}`, "\n"]
    ] as const) {
      assert.include(Object.keys(parseWhole(text) as object), name)
    }
    assert.throws(() => parseWhole('"\\"'.repeat(most / 3)), SyntaxError)
  })

  it("refuse what is no JSON", () => {
    const parseWhole = parseNames(parse)
    for (const text of [
      String.raw`{"\q":1}`,
      String.raw`{"\u00":1}`,
      String.raw`{"\n":}`,
      String.raw`"\n":1`,
      String.raw`{"\n":1`,
      String.raw`{"\n" 1}`,
      String.raw`["\n":1]`,
      '{"\\\n":1}',
      "\\"
    ]) {
      assert.throws(() => parseWhole(text), SyntaxError)
    }
  })
})

layer(TestServer.layer)("Metadata", (it) => {
  it.effect("keeps names with escapes, whatever names came before them", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      const ask = (code: string, metadata: string) =>
        Effect.gen(function* () {
          const body = `{"name":"P","code":"${code}","metadata":${metadata}}`
          const made = yield* send({ method: "POST", path: "/api/v1/products", body })
          assertAnswered(made, 201)
          const { id } = (made.json as { readonly data: { readonly id: string } }).data
          return [made.text, (yield* send({ path: `/api/v1/products/${id}` })).text]
        })
      yield* ask("first", String.raw`{"before":0,"\\":0}`)
      for (const text of yield* ask("second", String.raw`{"before":0,"\n":0}`)) {
        assert.include(text, String.raw`"\n":0`)
        assert.notInclude(text, String.raw`"\\":0`)
      }
    })
  )
})
