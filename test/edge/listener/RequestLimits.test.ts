/** The limits of requests in progress and of connections of one client. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { IpNetwork } from "effect/net"
import { assertAnswered, assertRefused, hold } from "../../support/http/Http.ts"
import { TestServer } from "../../support/http/TestServer.ts"
import { poll } from "../../support/rules/Poll.ts"

layer(TestServer.layerWith({ requestsPerAddress: 2 }), { timeout: 60_000 })("A client", (it) => {
  it.effect("with too many requests in progress gets 503 for more, but for probes, until one has ended", () =>
    Effect.gen(function* () {
      const { adminToken, port, send } = yield* TestServer
      const body = JSON.stringify({ name: "P", code: "held" })
      const begun = (code: string) =>
        hold(
          port,
          `POST /api/v1/products HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${adminToken}\r\nConnection: close\r\n` +
            `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body.replace("held", code).slice(0, 5)}`
        )
      const first = yield* begun("helo")
      yield* begun("held")
      const refused = poll(send({ path: "/api/v1/products" }), ({ status }) => status === 503)
      const answer = yield* refused
      assertRefused(answer, 503, "NOT_READY")
      assert.strictEqual(answer.headers["retry-after"], "1")
      assertAnswered(yield* send({ path: "/healthz" }), 200)
      assertAnswered(yield* send({ path: "/readyz" }), 200)
      yield* first.write(body.replace("held", "helo").slice(5))
      assert.strictEqual((yield* first.answer).status, 201)
      assertAnswered(yield* poll(send({ path: "/api/v1/products" }), ({ status }) => status === 200), 200)
    })
  )
})

const trustedProxies = [IpNetwork.fromStringUnsafe("127.0.0.0/8")]

layer(TestServer.layerWith({ requestsPerAddress: 1, trustedProxies }).pipe(Layer.fresh), { timeout: 60_000 })(
  "A client with IPv6",
  (it) => {
    it.effect("is all addresses with the same first half, of which its host can choose any", () =>
      Effect.gen(function* () {
        const { adminToken, port, send } = yield* TestServer
        yield* hold(
          port,
          `POST /api/v1/products HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 2001:db8:0:1::1\r\n` +
            `Authorization: Bearer ${adminToken}\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{`
        )
        const from = (address: string) => send({ path: "/api/v1/products", headers: { "x-forwarded-for": address } })
        const neighbour = yield* poll(from("2001:db8:0:1:ffff::2"), ({ status }) => status === 503)
        assertRefused(neighbour, 503, "NOT_READY")
        for (const other of ["2001:db8::1", "2001:db8:0:2::1", "203.0.113.1"]) assertAnswered(yield* from(other), 200)
      })
    )
  }
)

layer(TestServer.layerWith({ connectionsPerAddress: 2 }).pipe(Layer.fresh), { timeout: 60_000 })("A client", (it) => {
  it.effect("with too many connections has further ones closed", () =>
    Effect.gen(function* () {
      const { exchange, port } = yield* TestServer
      yield* hold(port, "GET /healthz HTTP/1.1\r\n")
      yield* hold(port, "GET /healthz HTTP/1.1\r\n")
      assert.strictEqual((yield* exchange("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")).text, "")
    })
  )
})

layer(TestServer.layer)("A connection", (it) => {
  it.effect("on which many requests wait is closed after their responses", () =>
    Effect.gen(function* () {
      const { exchange } = yield* TestServer
      const first = yield* exchange("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n".repeat(1_000))
      assert.strictEqual(first.status, 200)
      const heads = first.text.split("HTTP/1.1 200 OK").slice(1)
      assert.strictEqual(heads.length, 16)
      for (const [index, head] of heads.entries())
        assert.strictEqual(/connection: close/i.test(head), index === 15, String(index))
    })
  )
})

layer(TestServer.layer.pipe(Layer.fresh), { timeout: 60_000 })("The path of batches", (it) => {
  const post = (path: string, token: string, length: number) =>
    `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\n` +
    `Content-Length: ${length}\r\n\r\n{`
  const spellings = [
    "/api/v1/licenses/batch",
    "/%61pi/v1/licenses/batch",
    "http://x/api/v1/licenses/batch",
    "/api/v1/%6cicenses/%62%61%74%63%68",
    "/api/v1/licenses/batch?x=%20"
  ]

  it.effect("may be written with percent signs or after a host, and takes large bodies then, too", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      const body = JSON.stringify({ licenses: [] }).padEnd(300_000)
      for (const path of spellings)
        assertRefused(yield* send({ method: "POST", path, body }), 422, "VALIDATION_ERROR", "licenses")
      // Percent signs make no other operation take them.
      const other = yield* send({ method: "POST", path: "/api/v1/%6cicenses", body })
      assertRefused(other, 413, "PAYLOAD_TOO_LARGE", "262144")
    })
  )

  it.effect("has as many requests in progress of a client in any spelling", () =>
    Effect.gen(function* () {
      const { adminToken, port, send } = yield* TestServer
      for (const path of spellings.slice(0, 4)) yield* hold(port, post(path, adminToken, 1_000_000))
      const body = JSON.stringify({ licenses: [] }).padEnd(300_000)
      for (const path of spellings) {
        const refused = poll(send({ method: "POST", path, body }), ({ status }) => status === 503)
        assertRefused(yield* refused, 503, "NOT_READY")
      }
      const product = { name: "P", code: "beside", metadata: { note: "n".repeat(15_000) } }
      assertAnswered(yield* send({ method: "POST", path: "/api/v1/products", body: product }), 201)
    })
  )
})
