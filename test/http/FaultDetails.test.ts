import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { isRefusal } from "../../src/api/Failure.ts"
import { assertRefused } from "../support/Http.ts"
import { TestServer } from "../support/TestServer.ts"

const post = (path: string, body: unknown) =>
  Effect.flatMap(TestServer, (server) => server.send({ method: "POST", path: `/api/v1/${path}`, body }))
const get = (path: string) => Effect.flatMap(TestServer, (server) => server.send({ path: `/api/v1/${path}` }))

layer(TestServer.layer)("A refusal's details", (it) => {
  it.effect("have every wrong field of a body", () =>
    Effect.gen(function* () {
      const { error, ...rest } = yield* post("api-keys", {
        scopes: ["admin", "license:raed"],
        allowed_cidrs: ["10.0.0.0/8", "10.0.0.1/8"],
        expires_at: "soon"
      })
      assertRefused({ error, ...rest }, 422, "VALIDATION_ERROR")
      assert.sameMembers(
        error.details!.map(({ path }) => path),
        ["name", "scopes[1]", "allowed_cidrs[1]", "expires_at"]
      )
      const network = error.details!.find(({ path }) => path === "allowed_cidrs[1]")!
      assert.match(network.message, /^The field allowed_cidrs\[1\] is not valid: expected a network in CIDR notation/)
    })
  )

  it.effect("begin with the faults of the JSON", () =>
    Effect.gen(function* () {
      const answer = yield* post("products", { name: "", colour: "red", code: 5, metadata: null })
      assertRefused(answer, 400, "INVALID_JSON")
      const paths = answer.error.details!.map(({ path }) => path)
      assert.sameMembers(paths.slice(0, 3), ["colour", "code", "metadata"])
      assert.deepStrictEqual(paths.slice(3), ["name"])
    })
  )

  it.effect("are at most 20", () =>
    Effect.gen(function* () {
      const fields = Object.fromEntries(Array.from({ length: 300 }, (_, index) => [`field_${index}`, index]))
      const answer = yield* post("products", { name: "Editor", code: "editor", ...fields })
      assertRefused(answer, 400, "INVALID_JSON", "field_0")
      assert.strictEqual(answer.error.details!.length, 20)
      const query = yield* get(`products?${Object.keys(fields).join("&")}`)
      assertRefused(query, 400, "INVALID_QUERY", "field_0")
      assert.strictEqual(query.error.details!.length, 20)
    })
  )

  it.effect("have every wrong parameter of a query", () =>
    Effect.gen(function* () {
      const answer = yield* get("licenses?custmer_id=1&status=ACTIVE&limit=0&q=a&q=b&expires_before=soon")
      assertRefused(answer, 400, "INVALID_QUERY", "custmer_id")
      const details = new Map(answer.error.details!.map(({ path, message }) => [path, message]))
      assert.sameMembers([...details.keys()], ["custmer_id", "status", "limit", "q", "expires_before"])
      assert.match(details.get("status")!, /expected one of: .*active/)
      assert.match(details.get("q")!, /more than once/)
    })
  )

  it.effect("are there for a field of an operation without fields, and for a name that no body may have", () =>
    Effect.gen(function* () {
      const suspended = yield* post("licenses/none/suspend", { reason: "x", until: "y" })
      assert.deepStrictEqual(
        suspended.error.details!.map(({ path }) => path),
        ["reason", "until"]
      )
      const answer = yield* post("products", '{"name":"Editor","code":"editor","__proto__":1}')
      assert.deepStrictEqual(
        answer.error.details!.map(({ path }) => path),
        ["__proto__"]
      )
    })
  )

  it.effect("are absent where nothing is wrong with a field", () =>
    Effect.gen(function* () {
      for (const answer of [yield* post("products", "{"), yield* get("products/none")]) {
        assert.notProperty(answer.error, "details")
      }
    })
  )

  it.effect("reach the typed client", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const refusal = yield* Effect.flip(client.products.list({ query: { code: "\u0000" } }))
      assert.isTrue(isRefusal(refusal))
      assert.deepStrictEqual(
        (refusal as { readonly details?: ReadonlyArray<{ readonly path: string }> }).details?.map(({ path }) => path),
        ["code"]
      )
    })
  )
})

layer(TestServer.layer)("A message", (it) => {
  it.effect("lists the values of an enumeration", () =>
    Effect.gen(function* () {
      const product = yield* (yield* TestServer).client.products.create({ payload: { name: "Editor", code: "editor" } })
      const answer = yield* post(`products/${product.id}/policies`, { name: "P", code: "p", license_type: "lifetime" })
      assertRefused(answer, 422, "VALIDATION_ERROR", "license_type")
      assert.strictEqual(
        answer.error.message,
        "The field license_type is not valid: expected one of: perpetual, time_limited, subscription, trial, consumption."
      )
    })
  )
})
