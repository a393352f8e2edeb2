/** The reference's forms on a page that another host shows: they reach a service that allows its origin, and no other. */
import { readFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { Database } from "../../support/database/Database.ts"
import { startServer } from "../../support/http/TestServer.ts"
import { findChromium, openPage } from "../../support/processes/Browser.ts"

const minutes = 3 * 60_000
const script = readFileSync(new URL("../../../src/edge/documents/reference/TryIt.js", import.meta.url))
const operation = { method: "GET", path: "/api/v1/products", credential: "token", query: [], headers: [] }
const html = `<!doctype html><meta charset="utf-8">
<details class="try" data-operation='${JSON.stringify(operation)}'><summary>Try it</summary></details>
<script src="/reference.js"></script>`

/** Shows the page at any path; the address of its origin. */
const host = Effect.gen(function* () {
  const server = createServer(({ url = "" }, response) => {
    if (url === "/favicon.ico") return response.writeHead(204).end()
    const isScript = url.endsWith(".js")
    return response
      .writeHead(200, { "content-type": isScript ? "text/javascript" : "text/html" })
      .end(isScript ? script : html)
  })
  yield* Effect.acquireRelease(
    Effect.callback<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void))),
    () =>
      Effect.callback<void>((resume) => {
        server.close(() => resume(Effect.void))
        server.closeAllConnections()
      })
  )
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})

it.live(
  "a form on another host sends requests to services that allow its origin",
  ({ skip }) =>
    Effect.gen(function* () {
      const chromium = yield* findChromium
      if (chromium === undefined) return skip("this machine lacks chromium")
      const origin = yield* host
      const allowing = yield* startServer({ corsOrigins: [origin] })
      const other = yield* startServer()
      const { evaluate, open, until } = yield* openPage(chromium)
      const tried = Effect.fnUntraced(function* (address: string, token: string) {
        yield* open(`${origin}/below/docs/reference/products.html`)
        yield* evaluate(`document.querySelector("summary").click()`)
        yield* until(`document.querySelector("form") !== null`)
        const own = yield* evaluate<string>(`document.querySelector("[data-memory=address]").value`)
        assert.strictEqual(own, `${origin}/below`)
        for (const [name, value] of [
          ["address", address],
          ["token", token]
        ]) {
          yield* evaluate(`{ const input = document.querySelector("[data-memory=${name}]"); input.value = ${JSON.stringify(value)}
            input.dispatchEvent(new Event("input", { bubbles: true })) }`)
        }
        yield* evaluate(`document.querySelector("button").click()`)
        const output = `document.querySelector("output").textContent`
        yield* until(`${output} !== "" && !${output}.startsWith("Sending")`)
        return yield* evaluate<string>(output)
      })
      assert.match(yield* tried(allowing.baseUrl, allowing.adminToken), /^200 OK.*"data": \[\]/s)
      const refused = yield* tried(other.baseUrl, other.adminToken)
      assert.match(refused, /^No response: /)
      assert.include(refused, `LICENSING_CORS_ORIGINS has ${origin}.`)
    }).pipe(Effect.scoped, Effect.provide(Database.layerUrl)),
  minutes
)
