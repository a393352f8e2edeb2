import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { isRefusal } from "../../../src/contract/api/Failure.ts"
import { assertRefused } from "../../support/http/Http.ts"
import { TestServer } from "../../support/http/TestServer.ts"

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

  it.effect("begin with the fault that the message tells, also where a rule over several fields finds it again", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      const answer = yield* send({
        method: "POST",
        path: "/api/v1/licenses/none/renew",
        headers: { "idempotency-key": "renew-1" },
        body: { extend_by_days: 365, order_id: 7, expires_at: 0.5 }
      })
      assertRefused(answer, 400, "INVALID_JSON")
      const [{ path, message } = assert.fail("no details")] = answer.error.details ?? []
      assert.deepStrictEqual([path, message], [answer.error.detail, answer.error.message])
    })
  )

  it.effect("are lines, also if a name that they repeat has a line break", () =>
    Effect.gen(function* () {
      const field = yield* post("products", { name: "Editor", code: "editor", "a\nb": 1 })
      assertRefused(field, 400, "INVALID_JSON", "a\nb")
      assert.match(field.error.message!, /^The field a\uFFFDb is not known/)
      const parameter = yield* get("products?a%0Ab=1")
      assertRefused(parameter, 400, "INVALID_QUERY", "a\nb")
      assert.match(parameter.error.message!, /^The query parameter a\uFFFDb is not known/)
      const metadata = yield* get("customers?metadata%5Ba%0Ab%5D=1&metadata%5Ba%0Ab%5D=2")
      assertRefused(metadata, 400, "INVALID_QUERY", "metadata[a\nb]")
      assert.match(metadata.error.message!, /^The query parameter metadata\[a\uFFFDb\] is given more than once/)
      const filter = { report_kind: "usage-summary", filters: { "a\nb": 1 } }
      const exported = yield* post("reports/exports", filter)
      assertRefused(exported, 422, "VALIDATION_ERROR", "filters.a\nb")
      assert.match(exported.error.message!, /^The report usage-summary does not take the filter a\uFFFDb/)
    })
  )

  it.effect("are at most ten", () =>
    Effect.gen(function* () {
      const fields = Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`field_${index}`, index]))
      const answer = yield* post("products", { name: "Editor", code: "editor", ...fields })
      assertRefused(answer, 400, "INVALID_JSON", "field_0")
      assert.strictEqual(answer.error.details!.length, 10)
      const query = yield* get(`products?${Object.keys(fields).join("&")}`)
      assertRefused(query, 400, "INVALID_QUERY", "field_0")
      assert.strictEqual(query.error.details!.length, 10)
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

  it.effect("have every wrong filter of an export", () =>
    Effect.gen(function* () {
      const filters = { from: "soon", group_by: ["product_id", "colour"], bucket: "1w", product_id: "\u0000" }
      const answer = yield* post("reports/exports", { report_kind: "usage-summary", filters })
      assertRefused(answer, 422, "VALIDATION_ERROR")
      assert.sameMembers(
        answer.error.details!.map(({ path }) => path),
        ["filters.from", "filters.group_by", "filters.bucket", "filters.product_id"]
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

  it.effect("has the position of a JSON fault, and nothing of the text", () =>
    Effect.gen(function* () {
      const place = (body: string) => Effect.map(post("products", body), ({ error }) => error.message)
      assert.strictEqual(
        yield* place('{"name":"S3CRET",\n "code": "S3CRET" 1}'),
        "The body is not valid JSON: expected ',' or '}' after property value at line 2, column 19."
      )
      for (const body of ['{"name":"S3CRET', '{"name":"S3CRET","code":S3CRET}'])
        assert.match(String(yield* place(body)), /^The body is not valid JSON: [^S]*\.$/)
    })
  )

  it.effect("says in words which JSON type is expected", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const product = yield* client.products.create({ payload: { name: "Types", code: "types" } })
      const wrong = { name: 1, code: null, license_type: {}, max_floating_users: "1", allow_vm: 0, metadata: [] }
      const answer = yield* post(`products/${product.id}/policies`, wrong)
      assertRefused(answer, 400, "INVALID_JSON", "name")
      const types = answer.error.details!.map(({ message, path }) => [
        path,
        /type: expected (.*)\.$/.exec(message)?.[1]
      ])
      assert.deepStrictEqual(Object.fromEntries(types), {
        name: "a string",
        code: "a string",
        license_type: "a string",
        max_floating_users: "a number",
        allow_vm: "true or false",
        metadata: "an object"
      })
    })
  )

  it.effect("says the largest integer wherever a count is too large", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const product = yield* client.products.create({ payload: { name: "Large", code: "large" } })
      const beyond = (field: string) => `{"feature_id":"x","${field}":9007199254740992}`
      const paths = ["add_credits", "max_consumptions", "total_consumptions"]
      const policy = yield* client.policies.create({
        params: { id: product.id },
        payload: { name: "P", code: "p", license_type: "perpetual" }
      })
      const { license } = yield* client.licenses.create({ payload: { product_id: product.id, policy_id: policy.id } })
      for (const field of paths) {
        const { error } = yield* post(`licenses/${license.id}/usage/reset`, beyond(field))
        assert.match(error.message!, /is not valid: expected an integer from [01] to 9007199254740991\.$/)
      }
    })
  )

  it.effect("says the limits of an integer", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const product = yield* client.products.create({ payload: { name: "Limits", code: "limits" } })
      const policy = { name: "P", code: "p", license_type: "perpetual" }
      for (const days of ["9007199254740993", "1.5", "-1"]) {
        const body = JSON.stringify({ ...policy, grace_period_days: 0 }).replace(/:0}/, `:${days}}`)
        const { error } = yield* post(`products/${product.id}/policies`, body)
        assert.match(error.message!, /grace_period_days is not valid: expected an integer from 0 to 36500\.$/)
      }
    })
  )

  it.effect("says that an id is missing in the path", () =>
    Effect.gen(function* () {
      for (const path of ["products/", "licenses/", "customers//custom-fields"]) {
        const answer = yield* get(path)
        assertRefused(answer, 404, "NOT_FOUND", "id")
        assert.match(answer.error.message!, /^The path has no id: /)
      }
    })
  )

  it.effect("names the path that takes the request", () =>
    Effect.gen(function* () {
      const server = yield* TestServer
      const cases = [
        ["POST", "/api/v1/licenses/validate", 405, "/api/v1/license/validate"],
        ["POST", "/api/v1/licenses/floating/checkout", 404, "/api/v1/license/floating/checkout"],
        ["POST", "/license/validate", 404, "/api/v1/license/validate"],
        ["POST", "/licenses/validate?x=1", 404, "/api/v1/license/validate"],
        ["GET", "/products/prod_1", 404, "/api/v1/products/{id}"],
        ["POST", "/api/v1/license/none/suspend", 404, "/api/v1/licenses/{id}/suspend"],
        ["POST", "/api/v1/products/?x", 405, "/api/v1/products"],
        ["PUT", "/api/v1/licenses/validate", 405, "POST /api/v1/license/validate"],
        ["GET", "/api/v1/licenses/floating/checkout", 404, "POST /api/v1/license/floating/checkout"]
      ] as const
      for (const [method, path, status, hint] of cases) {
        const answer = yield* server.send({ method, path })
        assertRefused(answer, status, status === 404 ? "NOT_FOUND" : "METHOD_NOT_ALLOWED")
        assert.isTrue(answer.error.message!.endsWith(` use ${hint}.`), answer.error.message)
      }
      // Of a known path of applications, the path of the same name under licenses is another operation.
      const get = yield* server.send({ path: "/api/v1/license/validate" })
      assert.strictEqual(get.error.message, "This path does not take GET: use POST.")
      const unknown = yield* server.send({ method: "POST", path: "/nothing" })
      assert.strictEqual(unknown.error.message, "There is no such path: /openapi.yaml lists all paths.")
      const put = yield* server.send({ method: "PUT", path: "/api/v1/products" })
      assert.strictEqual(put.error.message, "This path does not take PUT: use GET, HEAD or POST.")
    })
  )
})

layer(TestServer.layer)("Lengths", (it) => {
  it.effect("count characters, not UTF-16 units", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const name = "😀".repeat(255)
      const product = yield* client.products.create({ payload: { name, code: "emoji" } })
      assert.strictEqual((yield* client.products.get({ params: { id: product.id } })).name, name)
      const long = yield* post("products", { name: `${name}😀`, code: "long" })
      assertRefused(long, 422, "VALIDATION_ERROR", "name")
      assert.strictEqual(long.error.message, "The field name is not valid: expected at most 255 characters.")
      assertRefused(yield* post("products", { name: `${name}x`, code: "long" }), 422, "VALIDATION_ERROR", "name")
      // Columns with an index take the longest texts, too.
      const id = product.id
      yield* client.versions.create({ params: { id }, payload: { version: name } })
      yield* client.customers.create({ payload: { name, code: "emoji", email: `${"😀".repeat(252)}@x` } })
    })
  )
})
