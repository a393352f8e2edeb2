/**
 * The package's documentation site, and the light reference page, in a browser: search, reference, a request from its form, the
 * size of the first view, nothing from other origins. A machine without Chromium skips the tests in it.
 */
import { spawn } from "node:child_process"
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer, Redacted } from "effect"
import type { TestContext } from "vitest"
import { Database } from "../../support/database/Database.ts"
import { untilReady } from "../../support/http/Http.ts"
import { masterKey, PublishedSite, TestServer } from "../../support/http/TestServer.ts"
import { type Page, Reader } from "../../support/processes/Browser.ts"
import { unpack } from "../../support/processes/Packed.ts"
import { tools } from "../../support/processes/Tools.ts"

const root = fileURLToPath(new URL("../../../", import.meta.url))
const minutes = 20 * 60_000
const firstViewMax = 300_000

/** The site of the package. */
class Site extends Context.Service<Site, { readonly folder: string }>()("licensing/test/Site") {
  static readonly layer = Layer.effect(
    Site,
    Effect.gen(function* () {
      const folder = yield* Effect.acquireRelease(
        Effect.sync(() => mkdtempSync(join(tmpdir(), "licensing-site-"))),
        (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
      )
      yield* unpack("service", "package/dist/site", folder)
      return { folder }
    }).pipe(Effect.orDie)
  )
}

const published = Layer.effect(
  PublishedSite,
  Effect.map(Site, ({ folder }) => pathToFileURL(`${folder}/`))
)
const withSite = TestServer.layer.pipe(
  Layer.provide(published),
  Layer.fresh,
  Layer.provideMerge(Site.layer),
  Layer.provideMerge(Reader.layer)
)

/** The page, or the test is skipped. */
const page = ({ skip }: TestContext) => Effect.map(Reader, ({ page }) => page ?? skip("this machine lacks chromium"))

/** The page was complete with its own origin alone, within the limit, and the browser has nothing to complain of. */
const assertSmallAndOwn = Effect.fnUntraced(function* ({ loaded }: Page, origin: string) {
  const { addresses, bytes, complaints } = yield* loaded
  assert.deepStrictEqual(complaints, [])
  assert.deepStrictEqual(
    addresses.filter((address) => !address.startsWith(`${origin}/`) && !address.startsWith("data:")),
    []
  )
  assert.isAbove(bytes, 500)
  assert.isBelow(bytes, firstViewMax)
})

layer(withSite, { timeout: minutes, excludeTestServices: true })("The documentation site", (it) => {
  it.effect(
    "is led to from /, small, and complete without other hosts",
    (context) =>
      Effect.gen(function* () {
        const { baseUrl } = yield* TestServer
        const browser = yield* page(context)
        yield* browser.open(`${baseUrl}/`)
        yield* assertSmallAndOwn(browser, baseUrl)
        yield* browser.open(yield* browser.evaluate<string>(`document.querySelector('a[href="docs/"]').href`))
        yield* browser.until(`document.querySelector(".VPNavBarTitle") !== null`)
        yield* assertSmallAndOwn(browser, baseUrl)
        yield* browser.open(`${baseUrl}/docs/reference/products.html`)
        yield* assertSmallAndOwn(browser, baseUrl)
      }).pipe(Effect.scoped),
    minutes
  )

  it.effect(
    "finds a page by another word for its topic, and an error code",
    (context) =>
      Effect.gen(function* () {
        const { baseUrl } = yield* TestServer
        const browser = yield* page(context)
        yield* browser.open(`${baseUrl}/docs/`)
        yield* browser.until(`document.querySelector("#local-search button, .VPNavBarSearch button") !== null`)
        yield* browser.evaluate(`document.querySelector("#local-search button, .VPNavBarSearch button").click()`)
        yield* browser.until(`document.querySelector("#localsearch-input") !== null`)
        const type = (text: string) =>
          browser.evaluate(
            `{ const input = document.querySelector("#localsearch-input"); input.value = "${text}"
               input.dispatchEvent(new Event("input", { bubbles: true })) }`
          )
        // No page has this word.
        yield* type("hwid")
        yield* browser.until(`document.querySelector("a.result")?.href.endsWith("guides/kit.html#machine-id")`)
        yield* type("LICENSE_EXPIRED")
        const link = `document.querySelector('a.result[href$="errors.html#license_expired"]')`
        yield* browser.until(`${link} !== null`)
        yield* browser.evaluate(`${link}.click()`)
        yield* browser.until(
          `location.pathname === "/docs/errors.html" && document.querySelector("#license_expired") !== null`
        )
        const { addresses, complaints } = yield* browser.loaded
        assert.deepStrictEqual(complaints, [])
        assert.isTrue(addresses.every((address) => address.startsWith(`${baseUrl}/`) || address.startsWith("data:")))
      }).pipe(Effect.scoped),
    minutes
  )

  it.effect("has no link to nothing", () =>
    Effect.gen(function* () {
      const { folder } = yield* Site
      const names = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".html"))
      assert.isAbove(names.length, 40)
      const idsOf = new Map<string, ReadonlySet<string>>()
      const ids = (path: string) => {
        const known =
          idsOf.get(path) ??
          new Set(Array.from(readFileSync(path, "utf8").matchAll(/ id="([^"]+)"/g), ([, id]) => String(id)))
        idsOf.set(path, known)
        return known
      }
      const broken: Array<string> = []
      for (const name of names) {
        const html = readFileSync(join(folder, name), "utf8")
        for (const [, href = ""] of html.matchAll(/ (?:href|src)="([^"]*)"/g)) {
          if (/^(https?:|data:|mailto:)/.test(href)) continue
          const url = new URL(href.replaceAll("&amp;", "&"), `http://site/docs/${name}`)
          const path = join(
            folder,
            decodeURIComponent(url.pathname.replace(/^\/docs\//, "")).replace(/^$|\/$/, (end) => `${end}index.html`)
          )
          const isThere = url.pathname.startsWith("/docs/") && existsSync(path)
          const id = decodeURIComponent(url.hash.slice(1))
          if (!isThere || (id !== "" && path.endsWith(".html") && !ids(path).has(id))) broken.push(`${name} -> ${href}`)
        }
        assert.notMatch(html, /<script(?![^>]*\ssrc=)[^>]*>/, `${name} has an inline script`)
      }
      assert.deepStrictEqual([...new Set(broken)], [])
    })
  )

  it.effect("is served with types, caching and refusals, on HEAD, too", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      const { folder } = yield* Site
      const redirected = yield* send({ path: "/docs", anonymous: true })
      assert.deepStrictEqual([redirected.status, redirected.headers["location"]], [302, "docs/"])
      const [script] = readdirSync(join(folder, "assets")).filter((name) => name.endsWith(".js"))
      const asset = yield* send({ path: `/docs/assets/${script}`, anonymous: true })
      assert.strictEqual(asset.headers["content-type"], "text/javascript; charset=utf-8")
      assert.include(String(asset.headers["cache-control"]), "immutable")
      const text = yield* send({ path: "/docs/webhooks.md", anonymous: true })
      assert.strictEqual(text.headers["content-type"], "text/markdown; charset=utf-8")
      const file = yield* send({ method: "HEAD", path: "/docs/files/docs/clients/licensing.py" })
      assert.strictEqual(file.headers["content-type"], "text/plain; charset=utf-8")
      for (const path of [
        "/docs/none.html",
        "/docs/assets",
        "/docs/../package.json",
        "/docs/%2e%2e/package.json",
        "/docs//etc/passwd"
      ]) {
        const { json, status } = yield* send({ path, anonymous: true })
        assert.strictEqual(status, 404, path)
        assert.strictEqual((json as { readonly error: { readonly code: string } }).error.code, "NOT_FOUND", path)
      }
      const index = yield* untilReady(send({ path: "/llms.txt", anonymous: true }))
      assert.include(index.text, "/docs/webhooks.md): For developers who receive webhooks")
    })
  )

  it.effect(
    "is served on Deno",
    () =>
      Effect.gen(function* () {
        const { url } = yield* Database
        const address = yield* denoService(Redacted.value(url))
        const fetched = (path: string) =>
          Effect.promise(() =>
            fetchReady(`${address}${path}`).then(async (response) => ({
              status: response.status,
              text: await response.text()
            }))
          )
        // The service reads its own folder, which may have no site: then /docs/ is the light page.
        for (const path of ["/", "/docs/", "/favicon.ico", "/docs/operations/createLicense.md"]) {
          const { status, text } = yield* fetched(path)
          assert.strictEqual(status, 200, path)
          assert.isAbove(text.length, 100, path)
        }
      }).pipe(Effect.scoped),
    minutes
  )
})

/** Documents are made at the first request, which a busy machine may not await. */
const fetchReady = async (address: string): Promise<Response> => {
  for (;;) {
    const response = await fetch(address)
    if (response.status !== 503) return response
  }
}

/** The service on Deno, on the test's database; its address. */
const denoService = Effect.fnUntraced(function* (database: string) {
  const deno = join(yield* tools("deno"), "deno")
  const child = yield* Effect.acquireRelease(
    Effect.sync(() =>
      spawn(deno, ["run", "--allow-all", "src/main.ts", "serve"], {
        cwd: root,
        env: {
          PATH: process.env["PATH"],
          DENO_NO_UPDATE_CHECK: "1",
          LICENSING_PORT: "0",
          LICENSING_DATABASE_URL: database,
          LICENSING_MASTER_KEY: Redacted.value(masterKey),
          LICENSING_LOG_FORMAT: "json"
        },
        stdio: ["ignore", "pipe", "pipe"]
      })
    ),
    (process) =>
      Effect.callback<void>((resume) => {
        process.once("exit", () => resume(Effect.void))
        process.kill("SIGTERM")
      })
  )
  return yield* Effect.callback<string>((resume) => {
    let written = ""
    const listen = (chunk: unknown) => {
      written += chunk
      const [, address] = /"api":"(http:\/\/[^/]+)\//.exec(written) ?? []
      if (address !== undefined) resume(Effect.succeed(address))
    }
    child.stdout.on("data", listen)
    child.stderr.on("data", listen)
    child.once("exit", () => resume(Effect.die(new Error(written))))
  })
})

layer(Layer.merge(TestServer.layer, Layer.fresh(Reader.layer)), { timeout: minutes, excludeTestServices: true })(
  "The light reference page",
  (it) => {
    it.effect(
      "is small, and complete without other hosts",
      (context) =>
        Effect.gen(function* () {
          const { baseUrl, send } = yield* TestServer
          const browser = yield* page(context)
          yield* untilReady(send({ path: "/docs/" }))
          yield* browser.open(`${baseUrl}/docs`)
          yield* assertSmallAndOwn(browser, baseUrl)
          assert.include(yield* browser.evaluate<string>(`document.querySelector("#listProducts").textContent`), "curl")
        }).pipe(Effect.scoped),
      minutes
    )
  }
)
