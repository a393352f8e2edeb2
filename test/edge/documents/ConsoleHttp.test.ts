/** How the service serves the files of the console. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { gunzipSync } from "node:zlib"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { ConsoleFolder } from "../../../src/edge/documents/publishing/ConsoleHttp.ts"
import { startServer, TestServer } from "../../support/http/TestServer.ts"

const page = "<!doctype html><title>Console</title>"
const script = "export const name = 1\n".repeat(100)

/** A folder like the one that the build makes. */
const built = Layer.effect(
  ConsoleFolder,
  Effect.acquireRelease(
    Effect.sync(() => {
      const folder = mkdtempSync(join(tmpdir(), "licensing-console-"))
      mkdirSync(join(folder, "assets"))
      writeFileSync(join(folder, "index.html"), page)
      writeFileSync(join(folder, "assets", "index-12ab.js"), script)
      writeFileSync(join(folder, "assets", "font-34cd.woff2"), "wOF2")
      return pathToFileURL(`${folder}/`)
    }),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
  )
)

layer(TestServer.layer.pipe(Layer.provideMerge(built)))("The console's files", (it) => {
  it.effect("are one page at every address of a screen, which browsers ask for again each time", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      for (const path of ["/console", "/console/", "/console/licenses/lic_1?tab=devices"]) {
        const { headers, status, text } = yield* send({ path, anonymous: true })
        assert.strictEqual(status, 200, path)
        assert.strictEqual(text, page)
        assert.strictEqual(headers["content-type"], "text/html; charset=utf-8")
        assert.strictEqual(headers["cache-control"], "no-cache")
        const seen = yield* send({ path, anonymous: true, headers: { "if-none-match": String(headers.etag) } })
        assert.strictEqual(seen.status, 304)
        assert.strictEqual(seen.headers["content-security-policy"], headers["content-security-policy"])
      }
    })
  )

  it.effect("run and style nothing but themselves, make no text into markup, and call this service only", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      const { headers } = yield* send({ path: "/console", anonymous: true })
      const directives = String(headers["content-security-policy"]).split("; ")
      assert.includeMembers(directives, [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "font-src 'self'",
        "connect-src 'self'",
        "form-action 'none'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'"
      ])
      assert.notInclude(String(headers["content-security-policy"]), "unsafe")
      assert.isUndefined(headers["set-cookie"])
      const { headers: others } = yield* send({ path: "/docs", anonymous: true })
      assert.notInclude(String(others["content-security-policy"]), "trusted-types")
    })
  )

  it.effect("are kept by browsers for good if their name has a digest, and sent compressed", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      const path = "/console/assets/index-12ab.js"
      const plain = yield* send({ path, anonymous: true })
      assert.strictEqual(plain.text, script)
      assert.strictEqual(plain.headers["content-type"], "text/javascript; charset=utf-8")
      assert.strictEqual(plain.headers["cache-control"], "public, max-age=31536000, immutable")
      const { bytes, headers } = yield* send({ path, anonymous: true, headers: { "accept-encoding": "gzip" } })
      assert.strictEqual(headers["content-encoding"], "gzip")
      assert.strictEqual(gunzipSync(bytes).toString(), script)
      const font = yield* send({ path: "/console/assets/font-34cd.woff2", anonymous: true })
      assert.strictEqual(font.headers["content-type"], "font/woff2")
      const head = yield* send({ method: "HEAD", path, anonymous: true })
      assert.strictEqual(head.headers["content-length"], String(script.length))
    })
  )

  it.effect("that do not exist are refused with the error envelope", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      for (const path of ["/console/assets/index-0000.js", "/console/assets/..%2F..%2Findex.html"]) {
        const { error, status } = yield* send({ path, anonymous: true })
        assert.strictEqual(status, 404, path)
        assert.strictEqual(error.code, "NOT_FOUND")
      }
    })
  )

  it.effect("are not served if the setting says so, and how to build them is said if they are missing", () =>
    Effect.gen(function* () {
      const without = yield* startServer({ console: false })
      const off = yield* without.send({ path: "/console", anonymous: true })
      assert.strictEqual(off.status, 404)
      const unbuilt = yield* startServer().pipe(
        Effect.provideService(ConsoleFolder, new URL("file:///nowhere/licensing-console/"))
      )
      const missing = yield* unbuilt.send({ path: "/console", anonymous: true })
      assert.strictEqual(missing.status, 503)
      assert.strictEqual(missing.error.code, "NOT_READY")
      assert.include(missing.error.message, "npm ci")
    }).pipe(Effect.scoped)
  )
})
