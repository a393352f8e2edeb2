/** A database with rows becomes partitioned without a copy of them, and event ids from before stay used. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Fiber, FileSystem, Layer, References } from "effect"
import { SqlClient, SqlError } from "effect/sql"
import { Partitions } from "../../../src/ledger/partitions/Partitions.ts"
import { Settings } from "../../../src/platform/config/Config.ts"
import { Postgres } from "../../../src/platform/postgres/driver/Postgres.ts"
import { run } from "../../../src/platform/postgres/migrations/Migrations.ts"
import { Database } from "../../support/database/Database.ts"
import { appendUses } from "../../support/database/Partitions.ts"

const migrations = new URL("../../../schema/migrations", import.meta.url).pathname
const layerQuiet = Layer.succeed(References.MinimumLogLevel, "None")
const license = { license: "lic_1", feature: "feat_1" }
const at = Date.UTC(2026, 0, 1)

/** A database with the schema before partitions and this many consumptions. */
const before = Effect.fnUntraced(function* (uses: number) {
  const files = yield* FileSystem.FileSystem
  const folder = yield* files.makeTempDirectoryScoped()
  for (const name of yield* files.readDirectory(migrations))
    if (name < "0008") yield* files.copyFile(`${migrations}/${name}`, `${folder}/${name}`)
  const { url } = Context.get(yield* Layer.build(Layer.fresh(Database.layerUrlEmpty)), Database)
  yield* run({ url, folder })
  const context = yield* Layer.build(Layer.fresh(Postgres.layer({ url, maxConnections: 4 })))
  const sql = Context.get(context, SqlClient.SqlClient)
  yield* Effect.provide(appendUses(license, uses, at), context)
  return { context, sql, url }
})

const repeated = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, eventId: string) {
  const error = yield* Effect.flip(sql`
    INSERT INTO usage_ledger (sequence, license_id, feature_id, action, event_id, amount, balance_after, actor_type, actor_id,
      request_id, occurred_at)
    SELECT ledger_last + 1, 'lic_1', 'feat_1', 'consume', ${eventId}, 5, 5, 'license', 'lic_1', 'req', now() FROM event_sequence`)
  assert.isTrue(SqlError.isSqlError(error))
  const { _tag, cause } = error.reason
  return [_tag, (cause as { readonly constraint?: string }).constraint]
})

const refusedRepetition = ["UniqueViolation", "usage_ledger_event_id"]
const files = (sql: SqlClient.SqlClient) =>
  sql`SELECT relfilenode FROM pg_class WHERE relname IN ('usage_ledger_from_1', 'usage_ledger') AND relkind = 'r'`

layer(Layer.mergeAll(NodeServices.layer, Database.layerUrl, layerQuiet), {
  timeout: 120_000,
  excludeTestServices: true
})("the upgrade of a ledger", (it) => {
  it.effect("with few rows takes over their event ids at once", () =>
    Effect.gen(function* () {
      const { sql, url } = yield* before(1_000)
      const file = yield* files(sql)
      yield* run({ url })
      assert.deepStrictEqual(yield* files(sql), file, "the table is the same file")
      assert.deepStrictEqual(yield* sql`SELECT count(*) AS ids FROM usage_event_ids`, [{ ids: 1_000 }])
      assert.deepStrictEqual(yield* repeated(sql, "use-1000"), refusedRepetition)
      assert.deepStrictEqual(yield* sql`SELECT amount FROM counted_event('lic_1', 'use-7')`, [{ amount: 1 }])
      assert.deepStrictEqual(yield* sql`SELECT amount FROM counted_event('lic_1', 'new')`, [])
    })
  )

  it.effect("with many rows refuses their event ids while a worker copies them, and writers go on", () =>
    Effect.gen(function* () {
      const { context, sql, url } = yield* before(100_002)
      yield* run({ url })
      assert.deepStrictEqual(yield* sql`SELECT copied, until FROM event_id_copy`, [{ copied: 0, until: 100_002 }])
      const own = ["UniqueViolation", "usage_ledger_from_1_event_id"]
      assert.deepStrictEqual(yield* repeated(sql, "use-100000"), own, "the index of the only partition")
      assert.deepStrictEqual(yield* sql`SELECT amount FROM counted_event('lic_1', 'use-100000')`, [{ amount: 1 }])
      // A row of a later partition is compared with the earlier rows.
      yield* sql`ALTER TABLE usage_ledger DETACH PARTITION usage_ledger_from_1`
      yield* sql`ALTER TABLE usage_ledger ATTACH PARTITION usage_ledger_from_1 FOR VALUES FROM (MINVALUE) TO (100003)`
      yield* sql`SELECT make_partition('usage_ledger', 'later')`
      yield* sql`ALTER TABLE usage_ledger ATTACH PARTITION later FOR VALUES FROM (100003) TO (MAXVALUE)`
      assert.deepStrictEqual(yield* repeated(sql, "use-100000"), refusedRepetition)
      yield* sql`ALTER TABLE usage_ledger DETACH PARTITION later`
      yield* sql`ALTER TABLE usage_ledger DETACH PARTITION usage_ledger_from_1`
      yield* sql`ALTER TABLE usage_ledger ATTACH PARTITION usage_ledger_from_1 FOR VALUES FROM (MINVALUE) TO (MAXVALUE)`
      yield* Effect.provide(appendUses(license, 10, at), context)
      assert.deepStrictEqual(yield* repeated(sql, "use-100005"), own)

      const layerPartitions = Partitions.layerWith({ scanMax: 1_000 }).pipe(Layer.provide(Settings.layerTest()))
      const { pass } = Context.get(yield* Effect.provide(Layer.build(layerPartitions), context), Partitions)
      yield* pass
      assert.deepStrictEqual(yield* sql`SELECT FROM event_id_copy`, [])
      assert.deepStrictEqual(yield* sql`SELECT count(*) AS ids FROM usage_event_ids`, [{ ids: 100_012 }])
      assert.deepStrictEqual(
        yield* sql`SELECT FROM pg_class WHERE relname = 'usage_ledger_from_1_event_id'`,
        [],
        "each insert would maintain it for nothing"
      )
      assert.deepStrictEqual(yield* repeated(sql, "use-100000"), refusedRepetition)
      const [ended] = yield* sql<{ readonly end: number }>`
          SELECT end_sequence AS end FROM sequence_partitions WHERE name = 'usage_ledger_from_1'`
      assert.isAbove(ended!.end, 100_012)
    })
  )

  it.effect("waits for a long reader without blocking writers behind it for long", () =>
    Effect.gen(function* () {
      const { context, sql, url } = yield* before(10)
      const connection = yield* sql.reserve
      const say = (statement: string) => connection.executeRaw(statement, [])
      yield* say("BEGIN")
      yield* say("SET LOCAL idle_in_transaction_session_timeout = 0")
      yield* say("SELECT FROM usage_ledger")
      const migration = yield* Effect.forkChild(run({ url }))
      const waits = sql<{ readonly waits: boolean }>`
          SELECT EXISTS (SELECT FROM pg_locks JOIN pg_stat_activity USING (pid)
            WHERE datname = current_database() AND NOT granted AND mode = 'AccessExclusiveLock') AS waits`
      while (!(yield* waits)[0]!.waits);
      // Behind the migration's lock, until it gives up.
      yield* Effect.provide(appendUses(license, 1, at), context)
      yield* say("COMMIT")
      assert.include(yield* Fiber.join(migration), "0008_partitions.sql")
      assert.deepStrictEqual(yield* sql`SELECT count(*) AS ids FROM usage_event_ids`, [{ ids: 11 }])
    })
  )
})
