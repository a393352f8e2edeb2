/** Limits of bodies that hold before anything is decoded, and of the faults that a refusal tells. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { assertAnswered, assertRefused } from "../../support/http/Http.ts"
import { TestServer } from "../../support/http/TestServer.ts"

const post = (path: string, body: unknown) =>
  Effect.flatMap(TestServer, (server) => server.send({ method: "POST", path: `/api/v1/${path}`, body }))

const numbered = <A>(count: number, value: A) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, value]))

const product = { name: "Editor", code: "editor" }

layer(TestServer.layer)("A body", (it) => {
  it.effect("with 128 names in one object is compared with the fields, with 129 it is not", () =>
    Effect.gen(function* () {
      const compared = yield* post("products", numbered(128, 1))
      assertRefused(compared, 400, "INVALID_JSON", "k0")
      assert.strictEqual(compared.error.details!.length, 10)
      const refused = yield* post("products", numbered(129, 1))
      assertRefused(refused, 400, "INVALID_JSON")
      assert.match(refused.error.message!, /more than 128 fields/)
      assert.notProperty(refused.error, "details")
    })
  )

  it.effect("is refused for 129 names before it is parsed", () =>
    Effect.gen(function* () {
      const unended = JSON.stringify(numbered(129, 1)).slice(0, -1)
      assert.match((yield* post("products", unended)).error.message!, /more than 128 fields/)
    })
  )

  it.effect("counts a name that it repeats", () =>
    Effect.gen(function* () {
      const { error } = yield* post("products", `{${Array(129).fill('"name":"x"').join(",")}}`)
      assert.match(error.message!, /more than 128 fields/)
    })
  )

  it.effect("has no names within its texts", () =>
    Effect.gen(function* () {
      const name = `${'\\":{[,'.repeat(40)}`
      assertAnswered(yield* post("products", { ...product, name, code: "texts" }), 201)
    })
  )

  it.effect("has at most 64 names in one object of metadata", () =>
    Effect.gen(function* () {
      assertAnswered(yield* post("products", { ...product, metadata: numbered(64, 1) }), 201)
      const many = yield* post("products", { ...product, metadata: numbered(65, 1) })
      assertRefused(many, 400, "INVALID_JSON", "metadata")
      const within = yield* post("products", { ...product, metadata: { list: [numbered(65, 1)] } })
      assertRefused(within, 400, "INVALID_JSON", "metadata")
      const spread = yield* post("products", { ...product, metadata: { a: numbered(40, 1), b: numbered(40, 1) } })
      assertRefused(spread, 422, "VALIDATION_ERROR", "metadata")
      const escaped = `{"name":"E","code":"e","meta\\u0064ata":${JSON.stringify(numbered(65, 1))}}`
      assertRefused(yield* post("products", escaped), 422, "VALIDATION_ERROR", "metadata")
    })
  )

  it.effect("has at most 10,000 fields and list elements, and in a batch 160,000", () =>
    Effect.gen(function* () {
      const list = (count: number) => ({ metadata: { list: Array(count).fill(1) } })
      assert.match((yield* post("products", list(10_000))).error.message!, /more than 10000 fields and list elements/)
      assertRefused(yield* post("products", list(9_990)), 422, "VALIDATION_ERROR")
      const licenses = (count: number) => ({ licenses: Array(count).fill({ a: 1 }) })
      assert.match((yield* post("licenses/batch", licenses(6_000))).error.message!, /licenses is not valid/)
      assert.match((yield* post("licenses/batch", licenses(81_000))).error.message!, /more than 160000 fields/)
    })
  )

  it.effect("with a list that is too long is refused for its length, not for its items", () =>
    Effect.gen(function* () {
      const key = { name: "CI", scopes: ["admin"] }
      for (const [field, items] of Object.entries({
        scopes: Array(65).fill("none"),
        allowed_cidrs: Array(2_000).fill("::/0"),
        product_ids: Array(2_000).fill("prod_x")
      })) {
        const { error } = yield* post("api-keys", { ...key, [field]: items })
        assert.deepStrictEqual(
          error.details!.map(({ path }) => path),
          [field]
        )
        assert.match(error.message!, /at most \d+ /)
      }
    })
  )
})

layer(TestServer.layer)("The faults of a body", (it) => {
  it.effect("are at most ten over all licenses of a batch", () =>
    Effect.gen(function* () {
      const licenses = Array.from({ length: 100 }, () => ({
        product_id: "",
        policy_id: "",
        metadata: 1,
        colour: "red"
      }))
      const answer = yield* post("licenses/batch", { licenses })
      assertRefused(answer, 400, "INVALID_JSON", "licenses[0].metadata")
      assert.strictEqual(answer.error.details!.length, 10)
    })
  )

  it.effect("begin with those of the JSON, also behind many others", () =>
    Effect.gen(function* () {
      const licenses: Array<object> = Array.from({ length: 100 }, () => ({ product_id: "", policy_id: "" }))
      licenses.push({ product_id: "p", policy_id: "p", colour: "red" })
      const answer = yield* post("licenses/batch", { licenses })
      assertRefused(answer, 400, "INVALID_JSON", "licenses[100].colour")
      assert.strictEqual(answer.error.details!.length, 10)
      assert.strictEqual(answer.error.details![1]!.path, "licenses[0].product_id")
    })
  )

  it.effect("have unknown fields at any depth of a batch", () =>
    Effect.gen(function* () {
      const right = { product_id: "p", policy_id: "p" }
      const feature = { feature_id: "f", colour: "red" }
      const refused = (body: object, detail: string) =>
        Effect.map(post("licenses/batch", body), (answer) => assertRefused(answer, 400, "INVALID_JSON", detail))
      yield* refused({ licenses: [right], colour: "red" }, "colour")
      yield* refused({ licenses: [right, { ...right, colour: "red" }] }, "licenses[1].colour")
      yield* refused({ licenses: [{ ...right, features: [feature] }] }, "licenses[0].features[0].colour")
    })
  )

  it.effect("have those of every license from the first faulty one on", () =>
    Effect.gen(function* () {
      const right = { product_id: "p", policy_id: "p", metadata: { list: [{ a: null }], text: "é" } }
      const features = [{ feature_id: "f" }, { feature_id: "" }, { feature_id: "f", metadata: { a: "\u0000" } }]
      const wrong = [{ ...right, features }, { ...right, customer_email: "" }, { policy_id: "p" }]
      const answer = yield* post("licenses/batch", { licenses: [right, right, wrong[0], right, wrong[1], wrong[2]] })
      assertRefused(answer, 422, "VALIDATION_ERROR", "licenses[2].features[1].feature_id")
      assert.deepStrictEqual(
        answer.error.details!.map(({ path }) => path),
        [
          "licenses[2].features[1].feature_id",
          "licenses[2].features[2].metadata",
          "licenses[4].customer_email",
          "licenses[5].product_id"
        ]
      )
    })
  )

  it.effect("have rules over several fields where the fields themselves are valid", () =>
    Effect.gen(function* () {
      const both = yield* post("licenses/none/usage/reset", {
        feature_id: "a",
        feature_code: "b",
        reset_consumed: true
      })
      assert.include([404, 422], both.status)
      const answer = yield* post("webhooks", { name: "Hook", url: "https://x.example", event_types: ["none", "none2"] })
      assert.deepStrictEqual(
        answer.error.details!.map(({ path }) => path),
        ["event_types[0]", "event_types[1]"]
      )
    })
  )
})

const trial = (body: unknown) =>
  Effect.flatMap(TestServer, (server) =>
    server.send({ method: "POST", path: "/api/v1/license/trial", body, anonymous: true })
  )

layer(TestServer.layerWith({ rateActivation: 2 }))("The limit of trials", (it) => {
  it.effect("counts requests before their bodies are decoded", () =>
    Effect.gen(function* () {
      assertRefused(yield* trial("{"), 400, "INVALID_JSON")
      assertRefused(yield* trial(numbered(129, 1)), 400, "INVALID_JSON")
      assertRefused(yield* trial("{"), 429, "RATE_LIMITED", "trial")
    })
  )
})

layer(TestServer.layer)("A trial", (it) => {
  it.effect("has a body of at most 8 KiB", () =>
    Effect.gen(function* () {
      assertRefused(yield* trial("{".padEnd(8_192)), 400, "INVALID_JSON")
      assertRefused(yield* trial("{".padEnd(8_193)), 413, "PAYLOAD_TOO_LARGE", "8192")
    })
  )
})
