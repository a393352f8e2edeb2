/** The devices of all licenses, over HTTP. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { readMax } from "../../../src/licensing/devices/AllDevices.ts"
import { assertAnswered } from "../../support/http/Http.ts"
import { TestServer } from "../../support/http/TestServer.ts"

const makeProduct = Effect.fnUntraced(function* (code: string, more: object = {}) {
  const { client } = yield* TestServer
  const product = yield* client.products.create({ payload: { name: code, code } })
  const policy = yield* client.policies.create({
    params: { id: product.id },
    payload: { name: code, code, license_type: "perpetual", max_activations: 0, max_floating_users: 5, ...more }
  })
  return { product_id: product.id, policy_id: policy.id }
})

interface Sold {
  readonly product_id: string
  readonly policy_id: string
  readonly customer_id?: string
}

const makeLicense = Effect.fnUntraced(function* (ids: Sold) {
  const { client, send } = yield* TestServer
  const { license, license_key } = yield* client.licenses.create({ payload: ids })
  const headers = { authorization: `License ${license_key}` }
  const call = (operation: string, body: object) =>
    Effect.map(send({ method: "POST", path: `/api/v1/license/${operation}`, headers, body }), (answer) =>
      assertAnswered(answer, 200)
    )
  return { id: license.id, call }
})

const list = Effect.fnUntraced(function* (query: object) {
  const { client } = yield* TestServer
  return yield* client.devices.listAll({ query })
})

const hosts = (query: object) => Effect.map(list(query), ({ items }) => items.map(({ hostname }) => hostname))

layer(TestServer.layer)("The devices of all licenses", (it) => {
  it.effect("are found by license, product, kind, host, fingerprint, state and last use", () =>
    Effect.gen(function* () {
      const { advance, client } = yield* TestServer
      const sold = yield* makeProduct("sold")
      const one = yield* makeLicense(sold)
      const other = yield* makeLicense(yield* makeProduct("other"))
      yield* one.call("activate", { fingerprint: "fp \\ é", hostname: "Alpha" })
      yield* advance(10)
      yield* one.call("activate", { is_container: true, pod_name: "p", hostname: "beta" })
      yield* advance(10)
      yield* other.call("activate", { fingerprint: "fp \\ é", hostname: "gamma" })
      yield* advance(10)
      yield* other.call("floating/checkout", { fingerprint: "fp-2", hostname: "delta" })
      yield* advance(10)
      yield* one.call("deactivate", { fingerprint: "fp \\ é" })
      const all = ["delta", "gamma", "beta", "Alpha"]
      assert.deepStrictEqual(yield* hosts({}), all)
      assert.deepStrictEqual(yield* hosts({ sort: "created_at" }), all.toReversed())
      assert.deepStrictEqual(yield* hosts({ license_id: one.id }), ["beta", "Alpha"])
      assert.deepStrictEqual(yield* hosts({ product_id: sold.product_id }), ["beta", "Alpha"])
      assert.deepStrictEqual(yield* hosts({ binding_kind: "container" }), ["beta"])
      assert.deepStrictEqual(yield* hosts({ hostname: "ALPHA" }), ["Alpha"])
      assert.deepStrictEqual(yield* hosts({ fingerprint: "fp \\ é" }), ["gamma", "Alpha"])
      assert.deepStrictEqual(yield* hosts({ fingerprint: "fp \\ é", license_id: other.id }), ["gamma"])
      assert.deepStrictEqual(yield* hosts({ status: "active" }), ["delta", "gamma", "beta"])
      assert.deepStrictEqual(yield* hosts({ status: "deactivated" }), ["Alpha"])
      const [, gamma] = (yield* list({})).items
      assert.deepStrictEqual(yield* hosts({ last_seen_before: gamma!.last_seen_at, status: "active" }), ["beta"])
      assert.deepStrictEqual(yield* hosts({ last_seen_after: gamma!.last_seen_at }), ["delta", "Alpha"])
      yield* client.devices.blacklist({ params: { id: other.id, device_id: gamma!.id } })
      assert.deepStrictEqual(yield* hosts({ status: "blacklisted" }), ["gamma"])
      const counted = yield* list({ include_total: "true", license_id: one.id, limit: 1 })
      assert.deepInclude(counted, { total: 2, total_is_capped: false })
      const uncounted = yield* list({ include_total: "true", status: "active", limit: 1 })
      assert.notProperty(uncounted, "total")
    })
  )

  it.effect("are listed with their licenses and customers if they are asked for", () =>
    Effect.gen(function* () {
      const { advance, client } = yield* TestServer
      const sold = yield* makeProduct("expanded")
      const customer = yield* client.customers.create({ payload: { name: "Ada", code: "ada" } })
      const bought = yield* makeLicense({ ...sold, customer_id: customer.id })
      const other = yield* makeLicense(sold)
      yield* bought.call("activate", { fingerprint: "one", hostname: "one" })
      yield* advance(1)
      yield* other.call("activate", { fingerprint: "two", hostname: "two" })
      const shown = (query: object) =>
        Effect.map(list({ product_id: sold.product_id, ...query }), ({ items }) =>
          items.map(({ expanded }) => expanded && [expanded.license?.id, expanded.customer?.name])
        )
      assert.deepStrictEqual(yield* shown({}), [undefined, undefined])
      assert.deepStrictEqual(yield* shown({ expand: ["license"] }), [
        [other.id, undefined],
        [bought.id, undefined]
      ])
      assert.deepStrictEqual(yield* shown({ expand: ["license", "customer"] }), [
        [other.id, undefined],
        [bought.id, "Ada"]
      ])
    })
  )

  it.effect("have the state by the clock before a sweep has recorded it", () =>
    Effect.gen(function* () {
      const { advance } = yield* TestServer
      const heartbeats = { require_heartbeat: true, validation_interval_minutes: 1 }
      const license = yield* makeLicense(yield* makeProduct("silent", heartbeats))
      yield* license.call("activate", { fingerprint: "silent", hostname: "silent" })
      const query = { license_id: license.id }
      assert.deepStrictEqual(yield* hosts({ ...query, status: "active" }), ["silent"])
      yield* advance(3_600)
      assert.deepStrictEqual(yield* hosts({ ...query, status: "active" }), [])
      assert.deepStrictEqual(yield* hosts({ ...query, status: "expired" }), ["silent"])
    })
  )

  it.effect("are all found, page by page, where few of many match", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { id } = yield* makeLicense(yield* makeProduct("many"))
      const count = 2 * readMax + 50
      yield* sql`
        INSERT INTO devices (id, license_id, binding_kind, binding_key, fingerprint, is_vm, is_container, status, holds_slot,
          activated_at, first_seen_at, last_seen_at, metadata, created_at, updated_at)
        SELECT 'dev_' || n, ${id}, 'hardware', n::text, n::text, FALSE, FALSE, 'active', TRUE, t, t,
          CASE WHEN n % 700 = 0 THEN t - interval '1 year' ELSE t END, '{}', t, t
        FROM generate_series(1, ${count}) n, LATERAL (SELECT date_trunc('seconds', now()) + n * interval '1 s' AS t) at`
      const last_seen_before = Date.now() - 100 * 86_400_000
      const found: Array<string> = []
      let [pages, cursor] = [0, {}]
      do {
        const page = yield* list({ license_id: id, last_seen_before, limit: 1, ...cursor })
        assert.isAtMost(page.items.length, 1)
        found.push(...page.items.map((device) => device.id))
        cursor = page.next === undefined ? {} : { cursor: page.next }
        pages++
      } while ("cursor" in cursor)
      assert.deepStrictEqual(found, ["dev_1400", "dev_700"])
      assert.isAtMost(pages, 6)
      const plain = yield* list({ license_id: id, limit: 200, include_total: "true" })
      assert.deepStrictEqual([plain.items.length, plain.total], [200, count])
    })
  )
})
