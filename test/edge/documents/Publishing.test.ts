/** The documents as a running service publishes them. */
import { gunzipSync } from "node:zlib"
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { parse } from "yaml"
import { statuses } from "../../../src/contract/api/ErrorCode.ts"
import { openApiDocument } from "../../../src/edge/documents/Document.ts"
import { operations } from "../../../src/edge/documents/DocumentedOperations.ts"
import { assertRefused, untilReady } from "../../support/http/Http.ts"
import { TestServer } from "../../support/http/TestServer.ts"

const document = openApiDocument()

/** The service has made the documents. */
const published = Layer.tap(TestServer.layer, (context) =>
  untilReady(Context.get(context, TestServer).send({ path: "/openapi.json" }))
)

layer(published)("The published documents", (it) => {
  it.effect("are the document as JSON and YAML", () =>
    Effect.gen(function* () {
      const server = yield* TestServer
      const json = yield* server.send({ path: "/openapi.json", anonymous: true })
      assert.strictEqual(json.status, 200)
      assert.strictEqual(json.headers["content-type"], "application/json")
      assert.deepStrictEqual(json.json, JSON.parse(JSON.stringify(document)))
      const yaml = yield* server.send({ path: "/openapi.yaml", anonymous: true })
      assert.strictEqual(yaml.headers["content-type"], "application/yaml")
      assert.deepStrictEqual(parse(yaml.text, { maxAliasCount: 0 }), json.json)
    })
  )

  it.effect("are texts that contain the address of the request", () =>
    Effect.gen(function* () {
      const server = yield* TestServer
      for (const path of ["/llms.txt", "/llms-full.txt"]) {
        const { headers, text } = yield* server.send({
          path,
          anonymous: true,
          headers: { host: "licenses.example.com:81" }
        })
        assert.strictEqual(headers["content-type"], "text/plain; charset=utf-8")
        assert.include(text, "Base address: http://licenses.example.com:81\n")
        for (const id of operations().keys()) assert.include(text, id)
        const withInvalidHost = yield* server.send({ path, anonymous: true, headers: { host: "a](javascript:x)" } })
        assert.notInclude(withInvalidHost.text, "javascript")
      }
    })
  )

  it.effect("are compressed for clients that accept it, and not sent again to those that have them", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      for (const path of ["/docs/", "/openapi.json", "/openapi.yaml", "/llms.txt", "/llms-full.txt"]) {
        const plain = yield* send({ path, anonymous: true })
        const compressed = yield* send({ path, anonymous: true, headers: { "accept-encoding": "br;q=1, gzip;q=0.5" } })
        assert.strictEqual(compressed.headers["content-encoding"], "gzip")
        assert.isTrue(gunzipSync(compressed.bytes).equals(plain.bytes))
        assert.isBelow(compressed.bytes.length, plain.bytes.length / 2)
        assert.notStrictEqual(plain.headers.etag, compressed.headers.etag)
        for (const refused of ["gzip;q=0", "identity", "br"]) {
          const { headers } = yield* send({ method: "HEAD", path, headers: { "accept-encoding": refused } })
          assert.notProperty(headers, "content-encoding")
          assert.strictEqual(headers["content-length"], String(plain.bytes.length))
        }
        for (const { headers } of [plain, compressed]) {
          assert.strictEqual(headers["cache-control"], "public, max-age=300")
          assert.include(headers.vary, "Accept-Encoding")
          const again = yield* send({
            path,
            headers: {
              "if-none-match": `"other", W/${headers.etag}`,
              "accept-encoding": headers["content-encoding"] ?? ""
            }
          })
          assert.deepStrictEqual([again.status, again.bytes.length], [304, 0])
          for (const name of ["etag", "content-security-policy", "cache-control", "vary"])
            assert.strictEqual(again.headers[name], headers[name])
        }
      }
    })
  )

  it.effect("have a page with all operations that loads files of this service only", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      const { headers, text } = yield* send({ path: "/docs/", anonymous: true })
      assert.match(String(headers["content-type"]), /^text\/html/)
      const policy = String(headers["content-security-policy"])
      for (const part of ["default-src 'none'", "script-src 'self';", "connect-src 'self'"])
        assert.include(policy, part)
      const loaded = Array.from(
        text.matchAll(/<(?:script|link|img)[^>]+(?:src|href)="([^"]+)"/g),
        ([, address]) => address
      )
      assert.deepStrictEqual(loaded, ["../favicon.svg", "../docs/reference.css"])
      assert.notMatch(text, /<script>| on\w+=| style=/)
      for (const id of operations().keys()) assert.include(text, `id="${id}"`)
      for (const code of Object.keys(statuses)) assert.include(text, `id="${code}"`)
      assertRefused(yield* send({ method: "POST", path: "/docs/" }), 405, "METHOD_NOT_ALLOWED")
      assertRefused(yield* send({ path: "/docs/none" }), 404, "NOT_FOUND")
      assertRefused(yield* send({ path: "/docs/operations/none.md" }), 404, "NOT_FOUND")
    })
  )

  it.effect("are led to from the page at /, which has an icon", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      const { text } = yield* send({ path: "/", anonymous: true })
      assert.include(text, 'href="console"')
      for (const [, address = ""] of text.matchAll(/(?:src|href)="([^"]+)"/g)) {
        const { headers, status } = yield* send({ path: `/${address}`, anonymous: true })
        assert.strictEqual(status, 200, address)
        if (address.startsWith("favicon")) assert.strictEqual(headers["content-type"], "image/svg+xml")
      }
      const icon = yield* send({ path: "/favicon.ico", anonymous: true })
      assert.strictEqual(icon.headers["content-type"], "image/svg+xml")
      const { headers, status } = yield* send({ path: "/docs", anonymous: true })
      assert.deepStrictEqual([status, headers["location"]], [302, "docs/"])
    })
  )

  it.effect("have a text for each operation with the address of the request", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      const { headers, text } = yield* send({
        path: "/docs/operations/createLicense.md",
        anonymous: true,
        headers: { host: "licenses.example.com" }
      })
      assert.strictEqual(headers["content-type"], "text/markdown; charset=utf-8")
      assert.include(text, "curl -X POST http://licenses.example.com/api/v1/licenses")
    })
  )
})

layer(TestServer.layerWith({ baseUrl: "https://licenses.example.com/base" }))("With a public address", (it) => {
  it.effect("documents contain it", () =>
    Effect.gen(function* () {
      const server = yield* TestServer
      const { json } = yield* untilReady(server.send({ path: "/openapi.json", headers: { host: "other" } }))
      assert.deepStrictEqual((json as { servers: unknown }).servers, [{ url: "https://licenses.example.com/base" }])
      const { text } = yield* server.send({ path: "/llms.txt", headers: { host: "other" } })
      assert.include(text, "Base address: https://licenses.example.com/base\n")
    })
  )
})

layer(TestServer.layerWith({ requestTimeoutSeconds: 0.05 }))("Documents that take longer than a request may", (it) => {
  it.effect("are waited for", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      const message = { path: "/openapi.json", anonymous: true }
      assert.strictEqual((yield* send(message)).status, 200)
    })
  )
})
