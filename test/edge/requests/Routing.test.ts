import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { openApiDocument } from "../../../src/edge/documents/Document.ts"
import { assertAnswered, assertRefused } from "../../support/http/Http.ts"
import { TestServer } from "../../support/http/TestServer.ts"

const send = (method: string, path: string) => Effect.flatMap(TestServer, (server) => server.send({ method, path }))

const unknownPaths = [
  "/api",
  "/api/v1",
  "/api/v2/products",
  "/api/v1/nothing",
  "/api/v1/products/x/y",
  "/api/v1/products/",
  "/api/v1/Products",
  "//api/v1/products",
  "/api/v1//products",
  "/api/v1/products%2Fx",
  "/API/v1/products",
  "/wp-login.php"
]

/** The router takes what follows a semicolon or a number sign for a query. */
const endedEarly = [
  ["GET", "/healthz;x=1"],
  ["GET", "/healthz#x"],
  ["GET", "/healthz;?x"],
  ["GET", "/api/v1/licenses;limit=1"],
  ["GET", "/api/v1/licenses/x;y/devices"],
  ["POST", "/api/v1/license/validate;x"]
] as const

layer(TestServer.layer)("Paths and methods", (it) => {
  for (const path of unknownPaths) {
    it.effect(`${path} is NOT_FOUND`, () =>
      Effect.map(send("GET", path), (answer) => assertRefused(answer, 404, "NOT_FOUND"))
    )
  }

  for (const [method, path] of endedEarly) {
    it.effect(`${method} ${path} is NOT_FOUND, before the credential`, () =>
      Effect.gen(function* () {
        const server = yield* TestServer
        const answer = yield* server.send({ method, path, anonymous: true })
        assertRefused(answer, 404, "NOT_FOUND")
        assert.include(answer.text, "no such path")
      })
    )
  }

  it.effect("a semicolon belongs to a value of the query", () =>
    Effect.map(send("GET", "/api/v1/customers?code=a;b"), (answer) => assertAnswered(answer, 200))
  )

  // What a balancer refuses as /metrics must not be reached by another spelling.
  for (const path of [
    "/%6Detrics",
    "/metrics;a",
    "/metrics#a",
    "http://localhost/a/../metrics",
    "http://localhost/a\\..\\metrics"
  ]) {
    it.effect(`${path} is not /metrics`, () =>
      Effect.map(send("GET", path), (answer) => assertRefused(answer, 404, "NOT_FOUND"))
    )
  }

  it.effect("/metrics may follow the address of the service", () =>
    Effect.map(send("GET", "http://localhost/metrics"), ({ status }) => assert.strictEqual(status, 200))
  )

  for (const [method, path, allow] of [
    ["PUT", "/api/v1/products", "GET, HEAD, POST"],
    ["DELETE", "/api/v1/products", "GET, HEAD, POST"],
    ["OPTIONS", "/api/v1/products", "GET, HEAD, POST"],
    ["PROPFIND", "/api/v1/products", "GET, HEAD, POST"],
    ["POST", "/api/v1/products/x", "GET, HEAD, PATCH, DELETE"],
    ["OPTIONS", "/api/v1/licenses/batch", "POST"],
    ["DELETE", "/api/v1/licenses/batch?x", "POST"],
    ["HEAD", "/api/v1/licenses/batch", "POST"],
    ["GET", "/api/v1/licenses/b%61tch", "POST"],
    ["POST", "/health", "GET, HEAD"],
    ["POST", "/api/v1/system/public-keys", "GET, HEAD"]
  ] as const) {
    it.effect(`${method} ${path} is METHOD_NOT_ALLOWED`, () =>
      Effect.map(send(method, path), (answer) => {
        if (method !== "HEAD") assertRefused(answer, 405, "METHOD_NOT_ALLOWED", allow)
        assert.strictEqual(answer.status, 405)
        assert.deepStrictEqual(String(answer.headers["allow"]).split(", ").sort(), allow.split(", ").sort())
      })
    )
  }

  it.effect("route and method come before the credential", () =>
    Effect.gen(function* () {
      const server = yield* TestServer
      assertRefused(yield* server.send({ path: "/api/v1/nothing", anonymous: true }), 404, "NOT_FOUND")
      assertRefused(
        yield* server.send({ method: "PUT", path: "/api/v1/products", anonymous: true }),
        405,
        "METHOD_NOT_ALLOWED"
      )
    })
  )

  it.effect("HEAD answers what GET answers, without the body", () =>
    Effect.gen(function* () {
      for (const path of ["/health", "/api/v1/products", "/api/v1/products/none", "/nothing"]) {
        const got = yield* send("GET", path)
        const head = yield* send("HEAD", path)
        assert.strictEqual(head.status, got.status)
        assert.strictEqual(head.text, "")
        assert.strictEqual(head.headers["content-type"], got.headers["content-type"])
        assert.strictEqual(head.headers["content-length"], got.headers["content-length"])
      }
      assertRefused(yield* send("POST", "/api/v1/system/public-keys"), 405, "METHOD_NOT_ALLOWED")
    })
  )
})

const documented = Object.entries(openApiDocument().paths).map(([path, item]) => ({
  path,
  methods: Object.keys(item).map((method) => method.toUpperCase()),
  pattern: new RegExp(`^${path.replaceAll(/\{\w+\}/g, "[^/]+")}$`)
}))

/** Methods of paths with parameters that also match a path without: /licenses/{id} matches /licenses/batch. */
const shadowed = documented
  .filter(({ path }) => !path.includes("{"))
  .flatMap(({ methods, path }) =>
    documented
      .filter((other) => other.path !== path && other.pattern.test(path))
      .flatMap((other) => other.methods.filter((method) => !methods.includes(method)))
      .map((method) => ({ method, path, allow: methods.join(", ") }))
  )

layer(TestServer.layer)("Fixed paths", (it) => {
  it("a fixed path has the pattern of others", () =>
    assert.deepInclude(shadowed, { method: "GET", path: "/api/v1/licenses/batch", allow: "POST" }))
  for (const { allow, method, path } of shadowed) {
    it.effect(`${method} ${path} is METHOD_NOT_ALLOWED, although another path's pattern takes it`, () =>
      Effect.gen(function* () {
        const server = yield* TestServer
        const answer = yield* server.send({ method, path })
        assertRefused(answer, 405, "METHOD_NOT_ALLOWED", allow)
        assert.strictEqual(answer.headers["allow"], allow)
        assertRefused(yield* server.send({ method, path, anonymous: true }), 405, "METHOD_NOT_ALLOWED")
      })
    )
  }
})

layer(TestServer.layer)("Request targets", (it) => {
  for (const path of [
    "/api/v1/products/%",
    "/api/v1/products/%zz",
    "/api/v1/products/%C0%AF",
    "/api/v1/products/%E0%A4%A",
    "/%ff",
    "/api/v1/products?code=%",
    "/api/v1/products?code=%F0%9F"
  ]) {
    it.effect(`${path} is BAD_REQUEST`, () =>
      Effect.map(send("GET", path), (answer) => assertRefused(answer, 400, "BAD_REQUEST"))
    )
  }

  it.effect("a target with scheme and host is read as its path", () =>
    Effect.gen(function* () {
      const server = yield* TestServer
      const answer = yield* server.exchange(
        "GET http://example.com/health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
      )
      assertAnswered(answer, 200)
    })
  )

  it.effect("an asterisk is NOT_FOUND with any method", () =>
    Effect.gen(function* () {
      const server = yield* TestServer
      for (const method of ["OPTIONS", "GET", "POST"]) {
        const answer = yield* server.exchange(`${method} * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
        assertRefused(answer, 404, "NOT_FOUND")
      }
    })
  )

  it.effect("an upgrade that we do not know is ignored", () =>
    Effect.gen(function* () {
      const server = yield* TestServer
      const answer = yield* server.exchange(
        "GET /health HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, close\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n\r\n"
      )
      assertAnswered(answer, 200)
    })
  )
})

layer(TestServer.layer)("Requests that are no HTTP", (it) => {
  const malformed: Record<string, string | Uint8Array> = {
    garbage: "\x00\x01\x02 garbage\r\n\r\n",
    "TLS on the plain port": Buffer.from("16030100f1010000ed0303", "hex"),
    "a request line of two words": "GET /health\r\n\r\n",
    "a path without a slash": "GET health HTTP/1.1\r\nHost: x\r\n\r\n",
    "a space in the path": "GET /a b HTTP/1.1\r\nHost: x\r\n\r\n",
    "a control character in the path": "GET /a\x01 HTTP/1.1\r\nHost: x\r\n\r\n",
    "an unknown version": "GET /health HTTP/9.9\r\nHost: x\r\n\r\n",
    "an unknown method": "FROB /health HTTP/1.1\r\nHost: x\r\n\r\n",
    "a header without a name": "GET /health HTTP/1.1\r\nHost: x\r\n: y\r\n\r\n",
    "a space before the colon": "GET /health HTTP/1.1\r\nHost: x\r\nA : y\r\n\r\n",
    "a length that is no number": "POST /api/v1/products HTTP/1.1\r\nHost: x\r\nContent-Length: ten\r\n\r\n",
    "two lengths": "POST /api/v1/products HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
    "a length and chunks":
      "POST /api/v1/products HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a head of 100 KiB": `GET /health HTTP/1.1\r\nHost: x\r\nX-Long: ${"x".repeat(100_000)}\r\n\r\n`,
    "a target of 100 KiB": `GET /${"x".repeat(100_000)} HTTP/1.1\r\nHost: x\r\n\r\n`,
    "no host": "GET /health HTTP/1.1\r\nConnection: close\r\n\r\n"
  }
  for (const [name, bytes] of Object.entries(malformed)) {
    it.effect(`${name} is BAD_REQUEST, and the connection is closed`, () =>
      Effect.gen(function* () {
        const server = yield* TestServer
        const answer = yield* server.exchange(bytes)
        assertRefused(answer, 400, "BAD_REQUEST")
        assert.strictEqual(answer.headers["connection"], "close")
      })
    )
  }

  it.effect("HTTP/1.0 needs no host", () =>
    Effect.gen(function* () {
      const server = yield* TestServer
      assertAnswered(yield* server.exchange("GET /health HTTP/1.0\r\n\r\n"), 200)
    })
  )

  it.effect("an expectation that we do not know is ignored", () =>
    Effect.gen(function* () {
      const server = yield* TestServer
      assertAnswered(yield* server.send({ path: "/health", headers: { expect: "the-unexpected" } }), 200)
    })
  )
})
