/** An export, imported into an empty database: everything is there, works, and exports again as the same lines. */
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { Postgres } from "../../../src/platform/postgres/driver/Postgres.ts"
import { leftOut, tableGroups } from "../../../src/tools/transfer/Tables.ts"
import { Database } from "../../support/database/Database.ts"
import { assertAnswered } from "../../support/http/Http.ts"
import { masterKey, startServer, TestServer } from "../../support/http/TestServer.ts"
import { runLine } from "../../support/processes/CommandLine.ts"
import { assertQuotas, fillQuotas } from "./QuotaRows.ts"

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "licensing-transfer-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

const dayMillis = 86_400_000

/** One record of each kind at least, with everything that may be on a license. */
const fill = Effect.gen(function* () {
  const { client } = yield* TestServer
  const product = yield* client.products.create({ payload: { name: "Editor", code: "editor", metadata: { a: null } } })
  const params = { id: product.id }
  const feature = yield* client.features.create({ params, payload: { name: "Exports", code: "exports" } })
  yield* client.versions.create({ params, payload: { version: "1.0.0" } })
  const field = yield* client["custom-fields"].create({
    params,
    payload: { resource_type: "license", code: "seat", name: "Seat", value_type: "string" }
  })
  const ofCustomer = yield* client["custom-fields"].create({
    params,
    payload: { resource_type: "customer", code: "vat", name: "VAT", value_type: "integer" }
  })
  const policy = yield* client.policies.create({
    params,
    payload: { name: "Team", code: "team", license_type: "subscription", max_activations: 3, max_floating_users: 2 }
  })
  yield* client.policies.setFeature({
    params: { id: policy.id, feature_id: feature.id },
    payload: { enabled: true, max_consumptions: 10, expires_after_days: 90 }
  })
  return yield* fillLicense({ product, policy, field, ofCustomer })
})

interface Catalog {
  readonly product: { readonly id: string }
  readonly policy: { readonly id: string }
  readonly field: { readonly id: string }
  readonly ofCustomer: { readonly id: string }
}

const fillLicense = Effect.fnUntraced(function* ({ field, ofCustomer, policy, product }: Catalog) {
  const { client, connect, send } = yield* TestServer
  const params = { id: product.id }
  const customer = yield* client.customers.create({
    payload: { name: "Ada Lovelace", code: "ada", email: "ada@example.com", metadata: { vip: true } }
  })
  yield* client["custom-fields"].setCustomerValue({
    params: { id: customer.id, field_id: ofCustomer.id },
    payload: { integer_value: 42 }
  })
  const now = Date.now()
  const subscription = yield* client.commerce.createSubscription({
    params,
    payload: {
      ...{ external_system: "stripe", external_id: "sub_1", status: "active", customer_id: customer.id },
      ...{ current_period_start: now, current_period_end: now + 30 * dayMillis, observed_at: now }
    }
  })
  yield* client.commerce.createOrder({
    params,
    payload: { external_system: "shop", external_id: "1", status: "paid", subscription_id: subscription.id }
  })
  const { license, license_key } = yield* client.licenses.create({
    payload: {
      ...{ product_id: product.id, policy_id: policy.id, customer_id: customer.id, subscription_id: subscription.id },
      ...{
        expires_at: now + 30 * dayMillis,
        metadata: { text: 'quotes " and \\ and \u2028 and 𝄞', deep: { list: [1, null] } }
      }
    }
  })
  yield* client["custom-fields"].setLicenseValue({
    params: { id: license.id, field_id: field.id },
    payload: { string_value: "A7" }
  })
  const { runtime } = yield* connect({ licenseKey: license_key })
  yield* runtime.activate({ payload: { fingerprint: "machine 1", hostname: "one" } })
  yield* runtime.activate({ payload: { is_container: true, cluster_id: "c", pod_name: "p" } })
  yield* runtime.consume({ payload: { fingerprint: "machine 1", feature_code: "exports", event_id: "e1", amount: 4 } })
  const lease = yield* runtime.checkout({ payload: { fingerprint: "machine 2" } })
  const { token } = yield* client["api-keys"].create({ payload: { name: "reader", scopes: ["license:read"] } })
  const webhook = yield* send({
    method: "POST",
    path: "/api/v1/webhooks",
    body: { name: "hook", url: "https://93.184.216.34/hook", is_active: false }
  })
  assertAnswered(webhook, 201)
  yield* usePublicTrial(product.id)
  // More than one batch, and more than one page of a cursor.
  yield* Effect.forEach(Array.from({ length: 30 }), (_, index) =>
    client.licenses.create({
      payload: { product_id: product.id, policy_id: policy.id, expires_at: now + (index + 1) * dayMillis }
    })
  )
  return { license, license_key, lease_token: lease.data.lease_token, token }
})

/** The trial of a device. */
const usePublicTrial = Effect.fnUntraced(function* (product_id: string) {
  const { client, send } = yield* TestServer
  yield* client.policies.create({
    params: { id: product_id },
    payload: { name: "Try", code: "try", license_type: "trial", duration_days: 14, public_trial: true }
  })
  const body = { product_code: "editor", policy_code: "try", binding: { fingerprint: "machine 9" } }
  assertAnswered(yield* send({ method: "POST", path: "/api/v1/license/trial", body, anonymous: true }), 200)
})

/** The rows of all exported tables, without revisions, which an import draws anew. */
const rowsOf = Effect.fnUntraced(function* (sql: SqlClient.SqlClient) {
  const rows = new Map<string, ReadonlyArray<unknown>>()
  for (const { parts, root } of tableGroups) {
    for (const { key, name, revision = "", type, where = "true" } of [root, ...parts]) {
      const found = yield* sql.unsafe(
        `SELECT to_jsonb(t) - '${revision}' AS row FROM ${name} t WHERE ${where} ORDER BY ${key.join(", ")}`
      )
      assert.isNotEmpty(found, `give the export a row of ${name}`)
      rows.set(type, found)
    }
  }
  return Object.fromEntries(rows)
})

const clientOf = (url: Redacted.Redacted<string>) =>
  Effect.map(Layer.build(Layer.fresh(Postgres.layer({ url, maxConnections: 2 }))), (database) =>
    Context.get(database, SqlClient.SqlClient)
  )

/** A database with every table and no rows. */
const emptyDatabase = Effect.gen(function* () {
  const { url } = Context.get(yield* Layer.build(Layer.fresh(Database.layerUrl)), Database)
  return { url, sql: yield* clientOf(url) }
})

/** As a process of its own would: the command shares no layer with this test's instance, which has another database. */
const runAlone = (...line: Parameters<typeof runLine>) =>
  Effect.flatMap(Layer.makeMemoMap, (memo) => Effect.provideService(runLine(...line), Layer.CurrentMemoMap, memo))

const recordsOf = (path: string) => readFileSync(path, "utf8").trimEnd().split("\n").slice(1, -1)

const settingsOf = (url: Redacted.Redacted<string>, key = Redacted.value(masterKey)) => ({
  LICENSING_DATABASE_URL: Redacted.value(url),
  LICENSING_MASTER_KEY: key
})

const succeed = Effect.fnUntraced(function* (settings: Record<string, string>, ...args: ReadonlyArray<string>) {
  const { code, error, out } = yield* runAlone(settings, ...args)
  assert.strictEqual(code, 0, error)
  return JSON.parse(out)
})

layer(TestServer.layerWith({ rateFailures: 0 }), { timeout: 120_000 })("An export", (it) => {
  it.effect("names each table of the schema, or says why it stays behind", () =>
    Effect.gen(function* () {
      const { url } = yield* Database
      const sql = yield* clientOf(url)
      const tables = yield* sql<{ readonly name: string }>`
        SELECT relname AS name FROM pg_class
        WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition ORDER BY 1`
      const named = tableGroups.flatMap(({ parts, root }) => [root.name, ...parts.map(({ name }) => name)])
      const all = [...new Set([...named, ...Object.keys(leftOut)])]
      assert.deepStrictEqual(all.toSorted(), tables.map(({ name }) => name).toSorted())
    }).pipe(Effect.scoped)
  )

  it.effect("imported into an empty database serves the same licenses, and exports the same lines", () =>
    Effect.gen(function* () {
      const home = yield* folder
      const { license, lease_token, license_key, token } = yield* fill
      const source = settingsOf((yield* Database).url)
      const [first, second] = [join(home, "first.jsonl"), join(home, "second.jsonl")]
      const { records } = yield* succeed(source, "export", first, "--json")
      assert.strictEqual(statSync(first).mode & 0o777, 0o600)
      assert.deepInclude(records, { license: 32, device: 4, lease: 1, used_event_id: 1, webhook: 1, api_key: 2 })
      const types = tableGroups.flatMap(({ parts, root }) => [root.type, ...parts.map(({ type }) => type)])
      assert.sameMembers(Object.keys(records), types)
      const exists = yield* runAlone(source, "export", first)
      assert.strictEqual(exists.code, 1)
      const text = readFileSync(first, "utf8")
      for (const secret of [license_key, lease_token, token]) assert.notInclude(text, secret)

      const { sql, url } = yield* emptyDatabase
      const target = settingsOf(url)
      const rehearsed = yield* succeed(target, "import", "file", first, "--dry-run", "--json")
      assert.deepStrictEqual([rehearsed.imported, rehearsed.existed_already, rehearsed.faults], [records, 0, []])
      assert.deepStrictEqual(yield* sql`SELECT last::int FROM event_sequence`, [{ last: 0 }])
      assert.deepStrictEqual(yield* sql`SELECT id FROM products`, [])
      const done = yield* succeed(target, "import", "file", first, "--json")
      assert.deepStrictEqual([done.imported, done.existed_already], [records, 0])
      yield* succeed(target, "export", second, "--json")
      assert.deepStrictEqual(recordsOf(second), recordsOf(first))
      const imported = yield* rowsOf(sql)
      assert.deepStrictEqual(imported, yield* rowsOf(yield* clientOf((yield* Database).url)))

      const again = yield* succeed(target, "import", "file", first, "--json")
      assert.deepStrictEqual(again.imported, {})
      assert.deepStrictEqual(yield* rowsOf(sql), imported)
      const events = yield* sql`SELECT count(*)::int AS events, max(sequence)::int AS last,
        (SELECT last::int FROM event_sequence) AS counter FROM event_log`
      const [{ counter, events: count, last }] = events as never as [Record<string, number>]
      assert.deepStrictEqual([last, counter], [count, count])
      const created = yield* sql`SELECT event_type, count(*)::int FROM event_log WHERE event_type = 'license.created'
        AND metadata @> '{"imported": true}' AND actor_id = 'cli' GROUP BY 1`
      assert.deepStrictEqual(created, [{ event_type: "license.created", count: 32 }])

      const moved = yield* startServer().pipe(Effect.provideService(Database, { url }))
      const call = (operation: string, body: object) =>
        moved.send({
          ...{ method: "POST", path: `/api/v1/license/${operation}`, body, anonymous: true },
          headers: { authorization: `License ${license_key}` }
        })
      const validated = assertAnswered(yield* call("validate", { fingerprint: "machine 1" }), 200) as {
        readonly license_id: string
      }
      assert.strictEqual(validated.license_id, license.id)
      const consume = { fingerprint: "machine 1", feature_code: "exports", event_id: "e1", amount: 4 }
      const counted = assertAnswered(yield* call("consume", consume), 200) as {
        readonly features: ReadonlyArray<{ readonly consumed: number }>
      }
      assert.strictEqual(counted.features[0]?.consumed, 4)
      assertAnswered(yield* call("floating/heartbeat", { lease_token }), 200)
      const keysOf = (server: Pick<typeof moved, "send">) =>
        Effect.map(
          server.send({ path: "/api/v1/system/public-keys" }),
          ({ json }) => (json as { readonly data: unknown }).data
        )
      assert.deepStrictEqual(yield* keysOf(moved), yield* keysOf(yield* TestServer))
      const listed = yield* moved.send({ path: "/api/v1/licenses", headers: { authorization: `Bearer ${token}` } })
      assert.strictEqual(listed.status, 200)
      const expectedReset = yield* moved.client.licenses.get({ params: { id: license.id } })
      const original = yield* (yield* TestServer).client.licenses.get({ params: { id: license.id } })
      assert.deepStrictEqual(expectedReset, { ...original })
    }).pipe(Effect.scoped)
  )

  it.effect("is refused with another master key, cut, changed, or by an earlier version", () =>
    Effect.gen(function* () {
      const home = yield* folder
      const source = settingsOf((yield* Database).url)
      const file = join(home, "all.jsonl")
      yield* succeed(source, "export", file, "--json")
      const { sql, url } = yield* emptyDatabase
      const lines = readFileSync(file, "utf8").trimEnd().split("\n")
      const refused = Effect.fnUntraced(function* (
        content: ReadonlyArray<string>,
        settings: Record<string, string>,
        message: RegExp
      ) {
        const path = join(home, "given.jsonl")
        writeFileSync(path, content.join("\n"))
        const { code, out } = yield* runAlone(settings, "import", "file", path, "--json")
        assert.strictEqual(code, 1)
        assert.match(JSON.parse(out).error, message)
        assert.deepStrictEqual(yield* sql`SELECT id FROM products`, [])
      })
      const target = settingsOf(url)
      yield* refused(
        lines,
        settingsOf(url, Buffer.alloc(32, 8).toString("base64")),
        /encrypted with the master key [0-9a-f]{8}/
      )
      yield* refused(lines.slice(0, -2), target, /has no end/)
      yield* refused([...lines.slice(0, 1), ...lines.slice(2)], target, /was changed/)
      yield* refused(lines.slice(1), target, /no export/)
      yield* refused([lines[0]!.replace(/"schema":\d+/, '"schema":9999'), ...lines.slice(1)], target, /later version/)
      const missing = yield* runAlone(target, "import", "file", join(home, "none.jsonl"), "--json")
      assert.match(JSON.parse(missing.out).error, /cannot be read/)
    }).pipe(Effect.scoped)
  )

  it.effect("carries the periods of quotas, bought credits, kept counts, own devices and borrowed seats", () =>
    Effect.gen(function* () {
      const home = yield* folder
      const database = yield* Database
      const original = yield* clientOf(database.url)
      yield* fillQuotas(original)
      const file = join(home, "quotas.jsonl")
      yield* succeed(settingsOf(database.url), "export", file, "--json")
      const { sql, url } = yield* emptyDatabase
      yield* succeed(settingsOf(url), "import", "file", file, "--json")
      yield* assertQuotas(original, sql)
    }).pipe(Effect.scoped)
  )
})
