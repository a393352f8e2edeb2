import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { assertAnswered, assertRefused } from "../../support/http/Http.ts"
import { TestServer } from "../../support/http/TestServer.ts"

const nested = (levels: number): string => `${'{"a":'.repeat(levels - 1)}{}${"}".repeat(levels - 1)}`
const bytes = (...parts: ReadonlyArray<string | ReadonlyArray<number>>) =>
  Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(part) : Buffer.from(part))))

const right = { name: "Editor", code: "editor" }
const withMember = (member: string) => `{"name":"Editor","code":"editor",${member}}`

const notJson: Record<string, unknown> = {
  "an empty body": "",
  "white space": "  \n",
  "half of an object": '{"name":',
  "a trailing comma": '{"name":"Editor","code":"editor",}',
  "two values": `${JSON.stringify(right)}{}`,
  "single quotes": "{'name':'Editor'}",
  NaN: withMember('"metadata":{"a":NaN}'),
  "a byte order mark": bytes([0xef, 0xbb, 0xbf], JSON.stringify(right)),
  "invalid UTF-8 in text": bytes('{"name":"', [0xff, 0xfe], '","code":"editor"}'),
  "an overlong encoding": bytes('{"name":"', [0xc0, 0xaf], '","code":"editor"}'),
  "UTF-16": Buffer.from(JSON.stringify(right), "utf16le"),
  "an array": [right],
  "a text": '"editor"',
  "a number": "5",
  null: "null",
  "17 levels": nested(17),
  "17 levels of arrays": `{"metadata":${"[".repeat(16)}${"]".repeat(16)}}`,
  "100,000 levels": "[".repeat(100_000),
  "control characters in text": '{"name":"a\u0001b","code":"editor"}'
}

const wrongJson: ReadonlyArray<readonly [name: string, body: unknown, detail: string]> = [
  ["an unknown field", { ...right, colour: "red" }, "colour"],
  ["an unknown field beside a missing one", { colour: "red" }, "colour"],
  ["an unknown field beside a value that is not allowed", { ...right, name: "", colour: "red" }, "colour"],
  ["__proto__", withMember('"__proto__":{"admin":true}'), "__proto__"],
  ["__proto__ in depth", withMember('"metadata":{"list":[1,{"__proto__":1}]}'), "metadata.list[1].__proto__"],
  ["an escaped __proto__", withMember('"\\u005f_proto__":1'), "__proto__"],
  ["constructor", withMember('"constructor":1'), "constructor"],
  ["a number for text", { ...right, name: 5 }, "name"],
  ["an object for text", { ...right, name: { a: 1 } }, "name"],
  ["null", { ...right, name: null }, "name"],
  ["null for an optional field", { ...right, metadata: null }, "metadata"],
  ["text for an object", { ...right, metadata: "{}" }, "metadata"],
  ["an array for an object", { ...right, metadata: [] }, "metadata"]
]

const notValid: ReadonlyArray<readonly [name: string, body: unknown, detail: string]> = [
  ["a missing field", { name: "Editor" }, "code"],
  ["an empty text", { ...right, name: "" }, "name"],
  ["too long a text", { ...right, name: "x".repeat(256) }, "name"],
  ["a pattern that does not fit", { ...right, code: "Not A Code" }, "code"],
  ["NUL in text", withMember('"metadata":{"a":"x\\u0000y"}'), "metadata"],
  ["NUL in a name", '{"name":"a\\u0000","code":"editor"}', "name"],
  ["a lone surrogate", '{"name":"a\\ud800","code":"editor"}', "name"],
  ["NUL in a member's name", withMember('"metadata":{"a\\u0000":1}'), "metadata"],
  ["a number that is not finite", withMember('"metadata":{"a":1e999}'), "metadata.a"]
]

layer(TestServer.layer)("Request bodies", (it) => {
  const post = (body: unknown) =>
    Effect.flatMap(TestServer, (server) => server.send({ method: "POST", path: "/api/v1/products", body }))

  for (const [name, body] of Object.entries(notJson)) {
    it.effect(`${name} is INVALID_JSON`, () =>
      Effect.map(post(body), (answer) => assertRefused(answer, 400, "INVALID_JSON"))
    )
  }

  for (const [name, body, detail] of wrongJson) {
    it.effect(`${name} is INVALID_JSON at ${detail}`, () =>
      Effect.map(post(body), (answer) => assertRefused(answer, 400, "INVALID_JSON", detail))
    )
  }

  for (const [name, body, detail] of notValid) {
    it.effect(`${name} is VALIDATION_ERROR at ${detail}`, () =>
      Effect.map(post(body), (answer) => assertRefused(answer, 422, "VALIDATION_ERROR", detail))
    )
  }

  it.effect("no value of the request comes back in a refusal", () =>
    Effect.gen(function* () {
      for (const body of [
        { ...right, code: "S3CRET!" },
        { ...right, name: { a: "S3CRET!" } },
        { ...right, secret: "S3CRET!" }
      ]) {
        assert.notInclude((yield* post(body)).text, "S3CRET!")
      }
    })
  )

  it.effect("a member named __proto__ is text like any other where it is a value", () =>
    Effect.map(post({ name: "__proto__", code: "proto" }), (answer) => assertAnswered(answer, 201))
  )

  it.effect("16 levels and every JSON escape are read", () =>
    Effect.gen(function* () {
      const metadata = { text: '" \\ / \b \f \n \r \t é 😀', deep: { deep: { deep: 1 } } }
      const data = assertAnswered(yield* post({ name: "Escapes", code: "escapes", metadata }), 201)
      assert.deepInclude(data as object, { metadata })
      assertRefused(yield* post(nested(16)), 400, "INVALID_JSON", "a")
    })
  )
})

layer(TestServer.layer)("What is answered first", (it) => {
  const unknown = "/api/v1/products/prod_unknown"

  it.effect("faults of the JSON come before an unknown path id, which comes before the fields", () =>
    Effect.gen(function* () {
      const server = yield* TestServer
      const patch = (body: unknown) => server.send({ method: "PATCH", path: unknown, body })
      assertRefused(yield* patch("{"), 400, "INVALID_JSON")
      assertRefused(yield* patch({ colour: 1 }), 400, "INVALID_JSON", "colour")
      assertRefused(yield* patch({ name: "" }), 404, "NOT_FOUND", "id")
      assertRefused(yield* patch({ name: "x" }), 404, "NOT_FOUND", "id")
      const product = yield* server.client.products.create({ payload: right })
      assertRefused(
        yield* server.send({ method: "PATCH", path: `/api/v1/products/${product.id}`, body: { name: "" } }),
        422,
        "VALIDATION_ERROR",
        "name"
      )
    })
  )

  it.effect("the credential comes before the body", () =>
    Effect.gen(function* () {
      const server = yield* TestServer
      const answer = yield* server.send({ method: "PATCH", path: unknown, body: "{", anonymous: true })
      assertRefused(answer, 401, "TOKEN_MISSING")
      assert.match(String(answer.headers["www-authenticate"]), /^Bearer realm="licensing"/)
    })
  )

  for (const id of ["%00", "a%00b", "%F0%9F%98%80", "%2F", "%2e%2e", "x".repeat(8_000), "'%3B--", "%25", " %20"]) {
    it.effect(`an id of ${id.slice(0, 20)} is unknown`, () =>
      Effect.gen(function* () {
        const server = yield* TestServer
        const path = `/api/v1/products/${id.replaceAll(" ", "%20")}`
        assertRefused(yield* server.send({ path }), 404, "NOT_FOUND", "id")
        assertRefused(yield* server.send({ path, anonymous: true }), 401, "TOKEN_MISSING")
      })
    )
  }
})

layer(TestServer.layer)("Query parameters", (it) => {
  const wrong: ReadonlyArray<readonly [query: string, detail: string]> = [
    ["limit=0", "limit"],
    ["limit=-1", "limit"],
    ["limit=1.5", "limit"],
    ["limit=ten", "limit"],
    ["limit=", "limit"],
    ["limit=1&limit=2", "limit"],
    ["cursor=nonsense", "cursor"],
    ["cursor=", "cursor"],
    ["code=a&code=b", "code"],
    ["code=%00", "code"],
    ["unknown=1", "unknown"],
    ["unknown=%00", "unknown"],
    ["unknown=1&unknown=2", "unknown"],
    ["cod=editor", "cod"],
    ["Code=editor", "Code"],
    ["%63od%65s=editor", "codes"],
    ["__proto__=1", "__proto__"],
    ["constructor=1", "constructor"],
    ["=1", ""],
    ["limit=1&unknown", "unknown"]
  ]
  for (const [query, detail] of wrong) {
    it.effect(`${query} is INVALID_QUERY`, () =>
      Effect.gen(function* () {
        const server = yield* TestServer
        assertRefused(yield* server.send({ path: `/api/v1/products?${query}` }), 400, "INVALID_QUERY", detail)
      })
    )
  }

  for (const query of [
    "limit=1",
    "limit=200",
    "limit=1000000",
    "limit=99999999999999999999",
    "",
    "&&",
    "code=nothing+here"
  ]) {
    it.effect(`${query || "an empty query"} is answered`, () =>
      Effect.gen(function* () {
        const server = yield* TestServer
        assertAnswered(yield* server.send({ path: `/api/v1/products?${query}` }), 200)
      })
    )
  }

  it.effect("an unknown one is named in the message with those that the operation takes", () =>
    Effect.gen(function* () {
      const server = yield* TestServer
      const { error } = yield* server.send({ path: "/api/v1/products?cod=editor" })
      assert.match(error.message!, /cod is not known.* takes limit, cursor, .*\bcode\b.*\./)
      const none = yield* server.send({ path: "/api/v1/products/none?colour=red" })
      assertRefused(none, 400, "INVALID_QUERY", "colour")
      assert.match(none.error.message!, /takes none\./)
    })
  )

  it.effect("an unknown one of a request that is no GET is ignored", () =>
    Effect.gen(function* () {
      const server = yield* TestServer
      const path = "/api/v1/products?colour=red"
      assertAnswered(yield* server.send({ method: "POST", path, body: { name: "Query", code: "query" } }), 201)
    })
  )
})
