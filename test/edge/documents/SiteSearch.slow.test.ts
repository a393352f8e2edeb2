/** What readers type into the search of the documentation site, and the page that they should find first. */
import { mkdtempSync, readdirSync, rmSync } from "node:fs"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { ranked, type SearchIndex } from "../../../infra/scripts/pages/Ranking.ts"
import { unpack } from "../../support/processes/Packed.ts"
import { tools } from "../../support/processes/Tools.ts"

const applications = "guides/applications"

const firstPages: { readonly [page: string]: ReadonlyArray<string> } = {
  [`${applications}/electron`]: ["electron", "electron license key"],
  [`${applications}/tauri`]: ["tauri", "cors", "web view"],
  [`${applications}/cli`]: ["cli", "command line tool", "exit code"],
  [`${applications}/web-application`]: ["saas", "tenant", "web application"],
  [`${applications}/swift`]: ["swift", "ios"],
  "guides/kit": ["offline", "no internet", "node-locked", "device", "machine", "machine id", "grace", "borrow a seat"],
  "guides/floating-seats": ["seat", "seats", "floating", "concurrent", "concurrent users", "lease"],
  "guides/quotas": ["quota", "credits", "monthly credits", "overage", "metered usage", "top up"],
  "guides/scenarios": ["air gap", "air-gapped", "trial", "demo", "perpetual", "containers", "subscription", "renew"],
  "guides/stripe": ["stripe", "payment"],
  "guides/customer-page": ["key lost", "lost license key", "customer portal"],
  "guides/upgrade": ["backup", "upgrade", "restore"],
  "guides/testing": ["testing", "mock"],
  "guides/import-csv": ["csv"],
  "guides/mail": ["smtp"],
  "guides/personal-data": ["gdpr"],
  "guides/console-sign-in": ["sso"],
  webhooks: ["webhook signature", "webhook"],
  "verifying-responses": ["verify signature"],
  "clients/": ["rust", "client library"],
  "clients/csharp": ["c#", ".NET", "dotnet"],
  "clients/python": ["python"],
  "clients/go": ["golang"],
  "clients/java": ["java"],
  "clients/cpp": ["c++"],
  deployment: ["docker", "kubernetes"],
  security: ["master key"],
  api: ["rate limit"],
  errors: ["LICENSE_EXPIRED", "FLOATING_LIMIT_REACHED"],
  "reference/licenses": ["createLicense"]
}

interface MiniSearch {
  readonly loadJSON: (json: string, options: object) => SearchIndex<{ readonly id: string }>
}

/** The site's own index, searched as its search box does. */
const search = Effect.gen(function* () {
  const folder = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "licensing-search-"))),
    (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
  )
  yield* unpack("service", "package/dist/site/assets/chunks", folder)
  const name = readdirSync(folder).find((file) => file.startsWith("@localSearchIndex")) ?? assert.fail("no index")
  const { default: json } = yield* Effect.promise(() => import(pathToFileURL(join(folder, name)).href))
  const miniSearch: MiniSearch = createRequire(join(yield* tools("pages"), "minisearch"))("minisearch")
  const index = miniSearch.loadJSON(json, {
    fields: ["title", "titles", "text"],
    storeFields: ["title", "titles"],
    searchOptions: { fuzzy: 0.2, prefix: true, boost: { title: 4, text: 2, titles: 1 } }
  })
  return (text: string) => ranked(index, text, "/docs/").map(({ id }) => id.slice("/docs/".length))
})

it.live(
  "The site's search shows the page that a reader wants first",
  () =>
    Effect.gen(function* () {
      const found = yield* search
      const wrong = Object.entries(firstPages).flatMap(([page, queries]) =>
        queries.flatMap((query) => {
          const [first = "nothing"] = found(query)
          return first.replace(/(\.html)?#.*$/, "") === page ? [] : [`${query}: ${first}, not ${page}`]
        })
      )
      assert.deepStrictEqual(wrong, [])
    }).pipe(Effect.scoped),
  10 * 60_000
)
