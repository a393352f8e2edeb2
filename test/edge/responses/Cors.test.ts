import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { Answer } from "../../support/http/Http.ts"
import { assertAnswered, assertRefused } from "../../support/http/Http.ts"
import { TestServer } from "../../support/http/TestServer.ts"

const origin = "https://console.example.com"
const others = [
  "https://evil.example.com",
  "https://console.example.com.evil.example",
  "http://console.example.com",
  "null"
]
const corsHeaders = (answer: Answer) => Object.keys(answer.headers).filter((name) => name.startsWith("access-control-"))

const preflight = (from: string, path = "/api/v1/products") => ({
  method: "OPTIONS",
  path,
  anonymous: true,
  headers: {
    origin: from,
    "access-control-request-method": "POST",
    "access-control-request-headers": "authorization,content-type"
  }
})

layer(TestServer.layer)("Pages of other origins", (it) => {
  it.effect("may do nothing unless they are configured", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      assertRefused(yield* send(preflight(origin)), 405, "METHOD_NOT_ALLOWED")
      const answer = yield* send({ path: "/api/v1/products", headers: { origin } })
      assertAnswered(answer, 200)
      assert.deepStrictEqual(corsHeaders(answer), [])
      assert.notProperty(answer.headers, "vary")
    })
  )
})

layer(TestServer.layerWith({ corsOrigins: [origin, "http://localhost:3000"] }))("Pages of configured origins", (it) => {
  it.effect("may ask before they send", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      const answer = yield* send(preflight(origin))
      assert.deepStrictEqual([answer.status, answer.text], [204, ""])
      assert.strictEqual(answer.headers["access-control-allow-origin"], origin)
      assert.strictEqual(answer.headers["access-control-allow-methods"], "GET, HEAD, POST, PUT, PATCH, DELETE")
      assert.strictEqual(
        answer.headers["access-control-allow-headers"],
        "Authorization, Content-Type, Idempotency-Key, If-Match, X-Request-Id"
      )
      assert.strictEqual(answer.headers["vary"], "Origin")
      assert.notProperty(answer.headers, "access-control-allow-credentials")
    })
  )

  it.effect("may read answers and refusals, and the headers that clients need", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      for (const [path, status] of [
        ["/api/v1/products", 200],
        ["/api/v1/products/none", 404],
        ["/nothing", 404],
        ["/%", 400]
      ] as const) {
        const answer = yield* send({ path, headers: { origin: "http://localhost:3000" } })
        assert.strictEqual(answer.status, status)
        assert.strictEqual(answer.headers["access-control-allow-origin"], "http://localhost:3000")
        assert.include(String(answer.headers["access-control-expose-headers"]), "X-Request-Id")
        assert.strictEqual(answer.headers["vary"], "Origin")
      }
    })
  )

  it.effect("are alone in that", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      for (const other of others) {
        assertRefused(yield* send(preflight(other)), 405, "METHOD_NOT_ALLOWED")
        const answer = yield* send({ path: "/api/v1/products", headers: { origin: other } })
        assertAnswered(answer, 200)
        assert.deepStrictEqual(corsHeaders(answer), [])
        assert.strictEqual(answer.headers["vary"], "Origin")
      }
      const none = yield* send({ path: "/api/v1/products" })
      assert.deepStrictEqual(corsHeaders(none), [])
      const options = yield* send({ method: "OPTIONS", path: "/api/v1/products", headers: { origin } })
      assertRefused(options, 405, "METHOD_NOT_ALLOWED")
    })
  )
})

layer(TestServer.layerWith({ corsOrigins: ["app://editor", "null"] }))("Web views of applications", (it) => {
  it.effect("may call the API if their origin is configured", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      for (const allowed of ["app://editor", "null"]) {
        const answer = yield* send(preflight(allowed, "/api/v1/license/validate"))
        assert.deepStrictEqual([answer.status, answer.headers["access-control-allow-origin"]], [204, allowed])
      }
      for (const other of ["app://other", "file://", "tauri://editor"])
        assert.strictEqual((yield* send(preflight(other, "/api/v1/license/validate"))).status, 405)
    })
  )
})
