import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { bodyBytesMax } from "../../../src/contract/api/Requests.ts"
import { assertAnswered, assertRefused } from "../../support/http/Http.ts"
import { TestServer } from "../../support/http/TestServer.ts"

const path = "/api/v1/products"

/** A right body of exactly so many bytes, filled up with white space. */
const bodyOf = (length: number, code: string): string => JSON.stringify({ name: "Editor", code }).padEnd(length)

layer(TestServer.layer)("Sizes", (it) => {
  it.effect("a body of the largest size is read, with a length and in chunks", () =>
    Effect.gen(function* () {
      const server = yield* TestServer
      assertAnswered(yield* server.send({ method: "POST", path, body: bodyOf(bodyBytesMax, "whole") }), 201)
      const text = bodyOf(bodyBytesMax, "chunked")
      const chunks = [text.slice(0, 100_000), text.slice(100_000)]
      assertAnswered(yield* server.send({ method: "POST", path, chunks }), 201)
    })
  )

  it.effect("a body that an operation has no use for is bounded too, with a length and in chunks", () =>
    Effect.gen(function* () {
      const server = yield* TestServer
      const text = "x".repeat(bodyBytesMax + 1)
      const chunks = [text.slice(0, 100_000), text.slice(100_000)]
      // With a key the body is looked at, since the same key with another one is refused.
      for (const headers of [{}, { "idempotency-key": "bodyless" }]) {
        const request = { method: "DELETE", path: "/api/v1/customers/none", headers }
        const chunked = { ...request, headers: { ...headers, "transfer-encoding": "chunked" } }
        assertRefused(yield* server.send({ ...chunked, chunks }), 413, "PAYLOAD_TOO_LARGE")
        assertRefused(yield* server.send({ ...request, body: text }), 413, "PAYLOAD_TOO_LARGE")
        assertRefused(yield* server.send({ ...chunked, chunks: ["x"] }), 404, "NOT_FOUND")
      }
    })
  )

  it.effect("a body of a probe is not read beyond the limit", () =>
    Effect.gen(function* () {
      const server = yield* TestServer
      const chunks = [..."abc"].map((letter) => letter.repeat(100_000))
      for (const probe of ["/health", "/healthz", "/readyz", "/metrics"]) {
        const request = { method: "GET", path: probe, anonymous: true, headers: { "transfer-encoding": "chunked" } }
        assertRefused(yield* server.send({ ...request, chunks }), 413, "PAYLOAD_TOO_LARGE")
        assert.strictEqual((yield* server.send({ ...request, chunks: ["x"] })).status, 200)
      }
    })
  )

  it.effect("one byte more is PAYLOAD_TOO_LARGE, with a length to anyone, in chunks after the credential", () =>
    Effect.gen(function* () {
      const server = yield* TestServer
      const text = bodyOf(bodyBytesMax + 1, "large")
      for (const anonymous of [false, true]) {
        assertRefused(
          yield* server.send({ method: "POST", path, body: text, anonymous }),
          413,
          "PAYLOAD_TOO_LARGE",
          "262144"
        )
        const chunks = [text.slice(0, 100_000), text.slice(100_000)]
        const inChunks = yield* server.send({ method: "POST", path, chunks, anonymous })
        if (anonymous) assertRefused(inChunks, 401, "TOKEN_MISSING")
        else assertRefused(inChunks, 413, "PAYLOAD_TOO_LARGE")
      }
    })
  )

  it.effect("a length that is too large is refused before the body is sent", () =>
    Effect.gen(function* () {
      const server = yield* TestServer
      const answer = yield* server.exchange(
        `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000000000\r\nExpect: 100-continue\r\n\r\n`
      )
      assertRefused(answer, 413, "PAYLOAD_TOO_LARGE")
    })
  )

  it.effect("a body is not waited for from a caller whose credential is wrong", () =>
    Effect.gen(function* () {
      const server = yield* TestServer
      for (const [target, authorization, code] of [
        [path, "Bearer wrong", "TOKEN_MALFORMED"],
        ["/api/v1/license/validate", "License wrong", "LICENSE_KEY_INVALID"]
      ] as const) {
        for (const framing of [
          "Content-Length: 200000",
          "Content-Length: 200000\r\nExpect: 100-continue",
          "Transfer-Encoding: chunked",
          "Transfer-Encoding: chunked\r\nExpect: 100-continue"
        ]) {
          const answer = yield* server.exchange(
            `POST ${target} HTTP/1.1\r\nHost: x\r\nAuthorization: ${authorization}\r\nContent-Type: application/json\r\n` +
              `${framing}\r\nConnection: close\r\n\r\n`
          )
          assertRefused(answer, 401, code)
        }
      }
    })
  )

  it.effect("a client that waits for a 100 Continue gets it once its credential is right", () =>
    Effect.gen(function* () {
      const server = yield* TestServer
      const body = JSON.stringify({ name: "Editor", code: "continued" })
      const answer = yield* server.exchange(
        `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${server.adminToken}\r\nExpect: 100-continue\r\n` +
          `Content-Type: application/json\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`
      )
      assert.strictEqual(answer.status, 100)
      assert.match(answer.text, /^HTTP\/1\.1 201 /)
    })
  )

  it.effect("an operation that takes no body refuses a large one too", () =>
    Effect.gen(function* () {
      const server = yield* TestServer
      const answer = yield* server.send({ method: "DELETE", path: `${path}/x`, body: bodyOf(bodyBytesMax + 1, "x") })
      assertRefused(answer, 413, "PAYLOAD_TOO_LARGE")
    })
  )

  it.effect("a body without a member that is needed may be left out, also one in chunks", () =>
    Effect.gen(function* () {
      const server = yield* TestServer
      for (const target of ["rotate-key", "diagnose", "devices/none/reset"]) {
        const request = { method: "POST", path: `/api/v1/licenses/none/${target}` }
        assertRefused(yield* server.send(request), 404, "NOT_FOUND")
        const chunked = { ...request, headers: { "transfer-encoding": "chunked" }, chunks: [] }
        assertRefused(yield* server.send(chunked), 404, "NOT_FOUND")
      }
      assertRefused(yield* server.send({ method: "POST", path: "/api/v1/licenses/none/transfer" }), 400, "INVALID_JSON")
    })
  )

  it.effect("an operation that takes no body ignores a small one, whatever it is", () =>
    Effect.gen(function* () {
      const server = yield* TestServer
      const answer = yield* server.send({
        method: "DELETE",
        path: `${path}/x`,
        body: "{",
        headers: { "content-type": "text/plain" }
      })
      assertRefused(answer, 404, "NOT_FOUND")
    })
  )
})

layer(TestServer.layer)("Media types", (it) => {
  const post = (headers: Record<string, string>, code: string) =>
    Effect.flatMap(TestServer, (server) =>
      server.send({ method: "POST", path, body: { name: "Editor", code }, headers })
    )

  const taken = [
    "application/json",
    "Application/JSON",
    "application/json; charset=utf-8",
    "application/json;charset=UTF-8",
    'application/json ; charset="utf-8"',
    "application/json; version=1"
  ]
  for (const [index, type] of taken.entries()) {
    it.effect(`${type} is read`, () =>
      Effect.map(post({ "content-type": type }, `taken-${index}`), (answer) => assertAnswered(answer, 201))
    )
  }

  it.effect("a body without a media type is read as JSON", () =>
    Effect.gen(function* () {
      const server = yield* TestServer
      const body = JSON.stringify({ name: "Editor", code: "untyped" })
      const answer = yield* server.exchange(
        `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${server.adminToken}\r\nConnection: close\r\n` +
          `Content-Length: ${body.length}\r\n\r\n${body}`
      )
      assertAnswered(answer, 201)
    })
  )

  const refused = [
    "text/plain",
    "text/json",
    "application/jsonp",
    "application/merge-patch+json",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "application/json; charset=iso-8859-1",
    "application/json; charset=utf-16",
    "",
    ";"
  ]
  for (const type of refused) {
    it.effect(`${type || "an empty media type"} is UNSUPPORTED_MEDIA_TYPE, to anyone`, () =>
      Effect.gen(function* () {
        const server = yield* TestServer
        for (const anonymous of [false, true]) {
          const answer = yield* server.send({
            method: "POST",
            path,
            body: "{",
            headers: { "content-type": type },
            anonymous
          })
          assertRefused(answer, 415, "UNSUPPORTED_MEDIA_TYPE", "Content-Type")
        }
      })
    )
  }

  it.effect("content encodings other than identity are UNSUPPORTED_MEDIA_TYPE", () =>
    Effect.gen(function* () {
      for (const encoding of ["gzip", "br", "deflate", "identity, gzip", ""]) {
        assertRefused(
          yield* post({ "content-encoding": encoding }, "encoded"),
          415,
          "UNSUPPORTED_MEDIA_TYPE",
          "Content-Encoding"
        )
      }
      assertAnswered(yield* post({ "content-encoding": "Identity" }, "identity"), 201)
    })
  )
})

layer(TestServer.layer)("Bodies that end early", (it) => {
  it.effect("a client that goes away in the middle leaves the service well", () =>
    Effect.gen(function* () {
      const server = yield* TestServer
      const head = `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"name":`
      yield* Effect.all(
        Array.from({ length: 20 }, () => server.abandon(head)),
        { concurrency: "unbounded" }
      )
      assertAnswered(yield* server.send({ path: "/readyz" }), 200)
    })
  )

  it.effect("a broken chunk is BAD_REQUEST", () =>
    Effect.gen(function* () {
      const server = yield* TestServer
      const answer = yield* server.exchange(
        `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${server.adminToken}\r\n` +
          "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"
      )
      assert.strictEqual(answer.status, 400)
      assert.strictEqual(answer.error.code, "BAD_REQUEST")
    })
  )
})
