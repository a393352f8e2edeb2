/**
 * A database created by the 17 migrations that preceded 0001_initial.sql, with rows in it, is upgraded to this version.
 */
import { readdirSync } from "node:fs"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, layer } from "@effect/vitest"
import { Context, Effect, FileSystem, Layer, References } from "effect"
import { SqlClient } from "effect/sql"
import { schemaText } from "../../../../infra/scripts/schemaText.ts"
import { Postgres } from "../../../../src/platform/postgres/driver/Postgres.ts"
import { run } from "../../../../src/platform/postgres/migrations/Migrations.ts"
import { Database } from "../../../support/database/Database.ts"
import { TestServer } from "../../../support/http/TestServer.ts"

const fixture = new URL("earlierMigrations.sql", import.meta.url).pathname

/** The file names and texts of the migrations, in order. */
const earlier = Effect.gen(function* () {
  const text = yield* (yield* FileSystem.FileSystem).readFileString(fixture)
  return text
    .split(/^-- file: /m)
    .slice(1)
    .map((part) => [part.slice(0, part.indexOf("\n")), part.slice(part.indexOf("\n") + 1)] as const)
})

/** A database to which some earlier migrations were applied, and a client of it. */
const migratedBy = Effect.fnUntraced(function* (migrations: ReadonlyArray<readonly [string, string]>) {
  const files = yield* FileSystem.FileSystem
  const folder = yield* files.makeTempDirectoryScoped()
  for (const [name, text] of migrations) yield* files.writeFileString(`${folder}/${name}`, text)
  const database = yield* Layer.build(Layer.fresh(Database.layerUrlEmpty))
  const { url } = Context.get(database, Database)
  assert.strictEqual((yield* run({ url, folder })).length, migrations.length)
  const sql = Context.get(
    yield* Layer.build(Layer.fresh(Postgres.layer({ url, maxConnections: 2 }))),
    SqlClient.SqlClient
  )
  return { database, sql, url }
})

const at = "timestamptz '2026-01-02 03:04:05Z'"

/** The rows that the previous version wrote: one of each resource that the upgrade changes, and two events. */
const rows = [
  `INSERT INTO products VALUES ('prod_1', 'Product', 'product', '{}', 1, ${at}, ${at})`,
  `INSERT INTO customers VALUES ('cust_1', 'Customer', 'customer', NULL, '{}', ${at}, ${at})`,
  `INSERT INTO policies VALUES ('pol_1', 'prod_1', 'Policy', 'policy', 'perpetual', 5, 5, NULL, 30, 0, 60, false, true, 0, true, true, 0,
    '{}', 1, 0, ${at}, ${at})`,
  `INSERT INTO features VALUES ('feat_1', 'prod_1', 'Feature', 'feature', '{}', ${at})`,
  ...[
    ["active", "active", "LK-AAAAA"],
    ["suspended", "suspended", "LK-AAAAA"],
    // Vendor keys of 8, 15, 19 and more characters.
    ...["", "abc", "abcdefg", "abcdefgh"].map((prefix) => [`vendor${prefix}`, "revoked", prefix])
  ].map(
    ([
      name,
      status,
      prefix
    ]) => `INSERT INTO licenses (id, product_id, policy_id, customer_id, key_hash, license_key_prefix, license_key_last4, status,
      customer_name, active_device_count, metadata, created_at, updated_at)
    VALUES ('lic_${name}', 'prod_1', 'pol_1', 'cust_1', sha256('${name}'), '${prefix}', 'WXYZ', '${status}', 'Somebody', 0, '{}', ${at}, ${at})`
  ),
  `INSERT INTO devices (id, license_id, binding_kind, binding_key, fingerprint, is_vm, is_container, status, holds_slot, first_seen_at,
    last_seen_at, metadata, created_at, updated_at)
  VALUES ('dev_1', 'lic_active', 'hardware', 'f', 'f', false, false, 'blacklisted', false, ${at}, ${at}, '{}', ${at}, ${at})`,
  ...["ended", "lasting"].map(
    (name) => `INSERT INTO features VALUES ('feat_${name}', 'prod_1', 'F', '${name}', '{}', ${at})`
  ),
  `INSERT INTO license_features (license_id, feature_id, enabled, expires_at, metadata, created_at, updated_at)
  VALUES ('lic_active', 'feat_ended', true, ${at}, '{}', ${at}, ${at}),
    ('lic_active', 'feat_lasting', true, timestamptz '2999-01-01Z', '{}', ${at}, ${at})`,
  // Written through the trigger of the view, as a node before migration 0015 did.
  `INSERT INTO events VALUES (1, 'license.created', 'system', 'system', 'license', 'lic_active', NULL, '{}', ${at})`,
  `INSERT INTO usage_ledger VALUES (1, 'lic_active', 'feat_1', 'consume', 'e1', 3, 3, NULL, 'dev_1', 'license', 'lic_active', 'req_1',
    ${at}, 2, 'feature', NULL)`,
  "UPDATE event_sequence SET last = 2, ledger_last = 1"
]

/** The migrations of today. */
const migrations = readdirSync(new URL("../../../../schema/migrations", import.meta.url)).toSorted()

const layerQuiet = Layer.succeed(References.MinimumLogLevel, "None")

layer(Layer.mergeAll(NodeServices.layer, Database.layer, layerQuiet), { timeout: 60_000, excludeTestServices: true })(
  "a database of the earlier migrations",
  (it) => {
    it.effect("has the same schema as a new database after the upgrade, and the service reads its rows", () =>
      Effect.gen(function* () {
        const { database, sql } = yield* migratedBy(yield* earlier)
        for (const row of rows) yield* sql.unsafe(row)
        const service = TestServer.layerOver().pipe(Layer.provide(Layer.succeedContext(database)))
        const { client } = Context.get(yield* Layer.build(Layer.fresh(service)), TestServer)
        assert.strictEqual(yield* Effect.provideService(schemaText(), SqlClient.SqlClient, sql), yield* schemaText())
        assert.deepStrictEqual(
          yield* sql`SELECT id, name FROM schema_migrations`,
          migrations.map((name) => ({ id: Number(name.slice(0, 4)), name }))
        )

        const license = yield* client.licenses.get({ params: { id: "lic_active" } })
        assert.deepInclude(license, { status: "active", customer_id: "cust_1", customer_name: "Somebody" })
        assert.deepStrictEqual(
          yield* sql`SELECT license_key_prefix || ':' || license_key_last4 AS shown FROM licenses ORDER BY id`,
          ["LK-AAAAA:WXYZ", "LK-AAAAA:WXYZ", ":YZ", ":XYZ", ":WXYZ", "a:WXYZ"].map((shown) => ({ shown }))
        )
        // A feature that expired before the upgrade raises no version and is not recorded.
        assert.strictEqual(license.entitlement_version, 1)
        assert.deepStrictEqual(
          yield* sql`SELECT feature_id, expiry_recorded FROM license_features ORDER BY feature_id`,
          [
            { feature_id: "feat_ended", expiry_recorded: true },
            { feature_id: "feat_lasting", expiry_recorded: false }
          ]
        )
        const suspended = yield* client.licenses.list({ query: { status: "suspended", q: "some" } })
        assert.deepStrictEqual(
          suspended.items.map(({ id }) => id),
          ["lic_suspended"]
        )
        const devices = yield* client.devices.list({ params: { id: "lic_active" }, query: {} })
        assert.deepStrictEqual(
          devices.items.map(({ id, status }) => [id, status]),
          [["dev_1", "blacklisted"]]
        )
        const events = yield* client.events.list({ query: { resource_id: "lic_active" } })
        assert.deepStrictEqual(
          events.items.map(({ event_type, sequence }) => [sequence, event_type]),
          [
            [2, "usage.consumed"],
            [1, "license.created"]
          ]
        )
        const { customers, devices: counted, licenses, products } = yield* client.ops.summary()
        assert.deepInclude(licenses, { total: 6, active: 1, suspended: 1 })
        assert.deepInclude(counted, { total: 1, blacklisted: 1 })
        assert.deepStrictEqual([customers, products], [1, 1])
        // Writes work too, and no license is found under two states.
        yield* client.licenses.suspend({ params: { id: "lic_active" } })
        assert.deepStrictEqual(yield* sql`SELECT status, license_id FROM license_states ORDER BY license_id`, [
          { status: "suspended", license_id: "lic_active" },
          { status: "suspended", license_id: "lic_suspended" },
          ...["", "abc", "abcdefg", "abcdefgh"].map((prefix) => ({
            status: "revoked",
            license_id: `lic_vendor${prefix}`
          }))
        ])
      })
    )

    it.effect("is upgraded once when many nodes start together", () =>
      Effect.gen(function* () {
        const { url } = yield* migratedBy(yield* earlier)
        const applied = yield* Effect.all([run({ url }), run({ url }), run({ url })], { concurrency: 3 })
        assert.deepStrictEqual(applied.flat(), migrations)
      })
    )

    it.effect("is refused unchanged if exactly those migrations were not applied", () =>
      Effect.gen(function* () {
        const migrations = yield* earlier
        const half = migrations.slice(0, 9)
        const changed = migrations.map(([name, text]) => [name, name.startsWith("0003") ? `${text}\n` : text] as const)
        for (const applied of [half, changed]) {
          const { sql, url } = yield* migratedBy(applied)
          const { message } = yield* Effect.flip(run({ url }))
          assert.strictEqual(
            message,
            `The database has earlier migrations up to ${applied.at(-1)![0]}, from which this version cannot upgrade it. ` +
              "Upgrade it with the version before this one first."
          )
          const [left] = yield* sql<{ applied: number; kept: string | null }>`
            SELECT count(*) AS applied, to_regclass('kept_counts')::text AS kept FROM schema_migrations`
          assert.deepStrictEqual(left, { applied: applied.length, kept: "kept_counts" })
        }
      })
    )

    it.effect("keeps an extension that another object needs", () =>
      Effect.gen(function* () {
        const { sql, url } = yield* migratedBy(yield* earlier)
        yield* sql`CREATE INDEX mine ON customers USING gin (name gin_trgm_ops)`
        yield* run({ url })
        assert.deepStrictEqual(yield* sql`SELECT extname FROM pg_extension WHERE extname = 'pg_trgm'`, [
          { extname: "pg_trgm" }
        ])
      })
    )
  }
)
