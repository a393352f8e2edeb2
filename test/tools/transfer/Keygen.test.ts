/** An account in the shape of Keygen's API, imported beside a running instance: from a folder and from an address. */
import { readdirSync, readFileSync } from "node:fs"
import { createServer } from "node:http"
import { fileURLToPath } from "node:url"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { assertAnswered, assertRefused } from "../../support/http/Http.ts"
import { TestServer } from "../../support/http/TestServer.ts"
import { operatorSettings, runLine } from "../../support/processes/CommandLine.ts"

const folder = fileURLToPath(new URL("keygen", import.meta.url))

const command = Effect.fnUntraced(function* (environment: Record<string, string>, ...args: ReadonlyArray<string>) {
  const { code, error, out } = yield* runLine({ ...(yield* operatorSettings), ...environment }, ...args, "--json")
  return { code, error, ...JSON.parse(out) } as {
    readonly code: number
    readonly imported: Record<string, number>
    readonly existed_already: number
    readonly unmapped: ReadonlyArray<{ readonly message: string; readonly count: number; readonly example: string }>
    readonly faults: ReadonlyArray<{ readonly message: string }>
    readonly error: string
  }
})

/** Serves the folder's resources as Keygen's API does, two on a page. */
const keygenApi = Effect.acquireRelease(
  Effect.callback<{ readonly url: string; readonly seen: Array<string>; readonly close: () => void }>((resume) => {
    const seen: Array<string> = []
    const account = "/v1/accounts/demo"
    const lists = new Map<string, ReadonlyArray<unknown>>()
    for (const name of readdirSync(folder)) {
      const { data, links } = JSON.parse(readFileSync(`${folder}/${name}`, "utf8"))
      lists.set(links.self.replace(/^\/v1\/accounts\/[^/]+/, ""), data)
    }
    const server = createServer((request, response) => {
      const url = new URL(request.url ?? "", "http://localhost")
      seen.push(request.headers.authorization ?? "")
      const path = url.pathname.slice(account.length)
      const number = Number(url.searchParams.get("page[number]"))
      const all = lists.get(path) ?? []
      const link = (page: number) => `${url.pathname}?page[number]=${page}&page[size]=2`
      // Another host in a link must not get the token.
      const next = number * 2 < all.length ? `https://elsewhere.example${link(number + 1)}` : null
      const data = all.slice((number - 1) * 2, number * 2)
      response.end(JSON.stringify({ data, links: { self: link(number), next } }))
    }).listen(0, "127.0.0.1", () => {
      const { port } = server.address() as { readonly port: number }
      resume(Effect.succeed({ url: `http://127.0.0.1:${port}${account}/`, seen, close: () => void server.close() }))
    })
  }),
  ({ close }) => Effect.sync(close)
)

const unmapped: ReadonlyArray<RegExp> = [
  /^1 policies' maxCores/,
  /^1 keys of policies with a scheme/,
  /^1 policies' durations are rounded up/,
  /^1 policies' expirationBasis FROM_FIRST_VALIDATION/,
  /^1 a policy was skipped .*product is missing/,
  /^1 users with the role admin/,
  /^1 entitlements that no policy has/,
  /^1 groups are not imported/,
  /^1 licenses' uses/,
  /^1 licenses were skipped: their policy is missing/,
  /^1 licenses were skipped: their key is missing, has spaces/,
  /^1 licenses were skipped: another license has their key/,
  /^1 machines' cores/,
  /^1 machines were skipped: fingerprint/,
  /^1 machines were skipped: their license is missing/
]

const assertUnmapped = (messages: ReadonlyArray<string>) => {
  for (const wanted of unmapped) {
    assert.isTrue(
      messages.some((message) => wanted.test(message)),
      `${wanted} in ${messages.join("\n")}`
    )
  }
}

layer(TestServer.layerWith({}), { timeout: 120_000 })("`licensing import keygen`", (it) => {
  it.effect("maps an account, lists what has no counterpart, and changes nothing when it is repeated", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      const taken = yield* client.products.create({ payload: { name: "Other", code: "other" } })
      const { id: policy_id } = yield* client.policies.create({
        params: { id: taken.id },
        payload: { name: "Other", code: "other", license_type: "perpetual" }
      })
      yield* client.licenses.create({
        payload: { product_id: taken.id, policy_id, license_key: "TAKEN-0001-0001-0001" }
      })
      const rehearsed = yield* command({}, "import", "keygen", folder, "--dry-run")
      const expected = {
        ...{ product: 2, feature: 1, policy: 3, policy_feature: 1, customer: 1, license: 4, license_feature: 2 },
        device: 2
      }
      assert.deepStrictEqual([rehearsed.imported, rehearsed.faults], [expected, []])
      assert.lengthOf((yield* client.products.list({ query: {} })).items, 1)
      const done = yield* command({}, "import", "keygen", folder)
      assert.deepStrictEqual([done.code, done.imported], [0, expected])
      assert.deepStrictEqual(done.unmapped, rehearsed.unmapped)
      assertUnmapped(done.unmapped.map(({ count, message }) => `${count} ${message}`))
      const again = yield* command({}, "import", "keygen", folder)
      assert.deepStrictEqual([again.imported, again.existed_already], [{}, 10])

      // The keys that customers have work at once, in the running instance.
      const call = (key: string, operation: string, fingerprint: string) =>
        send({
          ...{ method: "POST", path: `/api/v1/license/${operation}`, anonymous: true, body: { fingerprint } },
          headers: { authorization: `License ${key}` }
        })
      const key = "A1B2C3-D4E5F6-A7B8C9-V3"
      const validated = assertAnswered(yield* call(key, "validate", "4d:Eq:UV:D3:XZ"), 200) as {
        readonly license_id: string
        readonly product_code: string
        readonly features: ReadonlyArray<{ readonly code: string }>
      }
      assert.deepStrictEqual(
        [validated.product_code, validated.features.map(({ code }) => code)],
        ["photo", ["raw_files"]]
      )
      const license = yield* client.licenses.get({ params: { id: validated.license_id } })
      assert.deepInclude(license, { active_device_count: 1, max_activations: 5, customer_email: "ada@example.com" })
      assert.deepStrictEqual(license.metadata, { name: "Studio", order: "17" })
      assert.strictEqual(license.created_at, Date.UTC(2024, 2, 1, 10))
      assertAnswered(yield* call(key, "activate", "aa:bb"), 200)
      assertRefused(yield* call("F00DF0-0DF00D-F00DF0-V3", "activate", "m"), 403, "LICENSE_EXPIRED")
      assertRefused(yield* call("TRIAL-0001-0001-0001", "activate", "m"), 403, "LICENSE_SUSPENDED")
      const signed = assertAnswered(yield* call("key/eyJhY2NvdW50Ijp7fX0=.c2lnbmF0dXJl", "activate", "m"), 200) as {
        readonly license_type: string
      }
      assert.strictEqual(signed.license_type, "perpetual")
      const { items } = yield* client.events.list({ query: { resource_id: license.id, event_type: "license.created" } })
      assert.deepInclude(items[0]?.metadata, { imported: true, devices: 2, license_features: 1 })
    })
  )

  it.effect("reads the same from the API, page by page, and sends the token to no other host", () =>
    Effect.gen(function* () {
      const { seen, url } = yield* keygenApi
      const missing = yield* command({}, "import", "keygen", url)
      assert.deepStrictEqual([missing.code, /KEYGEN_TOKEN/.test(missing.error)], [1, true])
      const { code, existed_already } = yield* command({ KEYGEN_TOKEN: "admin-secret" }, "import", "keygen", url)
      assert.deepStrictEqual([code, existed_already], [0, 10])
      assert.deepStrictEqual([...new Set(seen)], ["Bearer admin-secret"])
      assert.isAbove(seen.length, 12)
    }).pipe(Effect.scoped)
  )
})
