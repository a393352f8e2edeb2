import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { type Answer, untilReady } from "../../support/http/Http.ts"
import { TestServer } from "../../support/http/TestServer.ts"

/** Of every kind of answer one: an operation's, a refusal's, none found, no HTTP, a document. */
const everyKind = Effect.gen(function* () {
  const { exchange, send } = yield* TestServer
  const answers: Record<string, Answer> = {
    "an answer": yield* send({ path: "/api/v1/products" }),
    "a list of keys": yield* send({ path: "/api/v1/system/public-keys", anonymous: true }),
    "a refusal": yield* send({ path: "/api/v1/products", anonymous: true }),
    "an unknown path": yield* send({ path: "/nothing" }),
    "a wrong method": yield* send({ method: "TRACE", path: "/api/v1/products" }),
    "a malformed target": yield* send({ path: "/%" }),
    "a probe": yield* send({ path: "/health" }),
    "the document": yield* untilReady(send({ path: "/openapi.yaml" })),
    "the reference": yield* send({ path: "/docs/" }),
    "the page at /": yield* send({ path: "/" }),
    "an icon": yield* send({ path: "/favicon.ico" }),
    "no HTTP": yield* exchange("garbage\r\n\r\n"),
    "a proxy's request": yield* exchange("CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n")
  }
  return answers
})

layer(TestServer.layer)("Every answer", (it) => {
  it.effect("says what browsers and caches may do with it: nothing", () =>
    Effect.gen(function* () {
      for (const [name, { headers }] of Object.entries(yield* everyKind)) {
        assert.strictEqual(headers["x-content-type-options"], "nosniff", name)
        assert.strictEqual(headers["referrer-policy"], "no-referrer", name)
        assert.strictEqual(headers["cross-origin-resource-policy"], "same-origin", name)
        assert.include(String(headers["content-security-policy"]), "default-src 'none'", name)
        assert.include(String(headers["content-security-policy"]), "frame-ancestors 'none'", name)
        assert.isDefined(headers["cache-control"], name)
        assert.isDefined(headers["content-type"], name)
      }
    })
  )

  it.effect("tells nothing of what made it, and sets no cookie", () =>
    Effect.gen(function* () {
      const telling = ["server", "x-powered-by", "via", "x-runtime", "x-aspnet-version", "set-cookie"]
      for (const { headers, text } of Object.values(yield* everyKind)) {
        for (const name of telling) assert.notProperty(headers, name)
        assert.notMatch(text, /node(\.js)? ?v?\d|effect[@/ ]\d|PostgreSQL \d|at \w+ \(|\.ts:\d/i)
      }
    })
  )

  it.effect("does not ask for TLS where the service's address is not known to have it", () =>
    Effect.gen(function* () {
      for (const { headers } of Object.values(yield* everyKind))
        assert.notProperty(headers, "strict-transport-security")
    })
  )
})

layer(TestServer.layerWith({ baseUrl: "https://licenses.example.com" }))("Behind https", (it) => {
  it.effect("every answer asks for TLS from then on", () =>
    Effect.gen(function* () {
      for (const [name, { headers }] of Object.entries(yield* everyKind)) {
        assert.strictEqual(headers["strict-transport-security"], "max-age=31536000; includeSubDomains", name)
      }
    })
  )
})
