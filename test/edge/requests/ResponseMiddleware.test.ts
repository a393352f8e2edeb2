import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { Answer } from "../../support/http/Http.ts"
import { assertAnswered, assertRefused } from "../../support/http/Http.ts"
import { TestServer } from "../../support/http/TestServer.ts"

const requestIdOf = (answer: Answer) => (answer.json as { meta: { request_id: string } }).meta.request_id

layer(TestServer.layer)("Request ids", (it) => {
  const withId = (id: string, path = "/health") =>
    Effect.flatMap(TestServer, (server) => server.send({ path, headers: { "x-request-id": id } }))

  for (const id of ["12345678", "a".repeat(64), "trace_01-ABC"]) {
    it.effect(`${id} is taken over, in answers and refusals`, () =>
      Effect.gen(function* () {
        for (const path of ["/health", "/api/v1/products", "/api/v1/products/none", "/nothing", "/%"]) {
          const answer = yield* withId(id, path)
          assert.strictEqual(answer.headers["x-request-id"], id)
          assert.strictEqual(requestIdOf(answer), id)
        }
      })
    )
  }

  for (const id of ["1234567", "a".repeat(65), "with space", "semi;colon", "uml\u00e4ut-x", "<script>", ""]) {
    it.effect(`${id || "an empty one"} is replaced`, () =>
      Effect.gen(function* () {
        const answer = yield* withId(id)
        assertAnswered(answer, 200)
        assert.match(requestIdOf(answer), /^req_[0-9A-HJKMNP-TV-Z]{26}$/)
      })
    )
  }

  it.effect("every request has its own", () =>
    Effect.gen(function* () {
      const server = yield* TestServer
      const answers = yield* Effect.all(
        Array.from({ length: 50 }, () => server.send({ path: "/health" })),
        { concurrency: 10 }
      )
      assert.strictEqual(new Set(answers.map(requestIdOf)).size, 50)
    })
  )
})

layer(TestServer.layer)("Headers", (it) => {
  it.effect("answers are for programs: not cached, not sniffed, not rendered", () =>
    Effect.gen(function* () {
      const server = yield* TestServer
      for (const path of ["/health", "/api/v1/products", "/nothing"]) {
        const { headers } = yield* server.send({ path })
        assert.strictEqual(headers["cache-control"], "no-store")
        assert.strictEqual(headers["x-content-type-options"], "nosniff")
        assert.strictEqual(headers["referrer-policy"], "no-referrer")
        assert.strictEqual(headers["content-security-policy"], "default-src 'none'; frame-ancestors 'none'")
      }
    })
  )

  it.effect("a 401 says what it wants", () =>
    Effect.gen(function* () {
      const server = yield* TestServer
      const answer = yield* server.send({ path: "/api/v1/products", anonymous: true })
      assertRefused(answer, 401, "TOKEN_MISSING")
      assert.match(String(answer.headers["www-authenticate"]), /^Bearer realm="licensing"/)
    })
  )

  it.effect("an answer without content has the headers too", () =>
    Effect.gen(function* () {
      const server = yield* TestServer
      const { id } = yield* server.client.products.create({ payload: { name: "Editor", code: "editor" } })
      const answer = yield* server.send({ method: "DELETE", path: `/api/v1/products/${id}` })
      assert.strictEqual(answer.status, 204)
      assert.strictEqual(answer.text, "")
      assert.match(String(answer.headers["x-request-id"]), /^req_/)
      assert.notProperty(answer.headers, "content-length")
    })
  )
})
