/** Migrations of databases in use, in steps that block no writer. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Fiber, FileSystem, Layer, References } from "effect"
import { SqlClient } from "effect/sql"
import { openSession, Postgres } from "../../../../src/platform/postgres/driver/Postgres.ts"
import { run } from "../../../../src/platform/postgres/migrations/Migrations.ts"
import { Database } from "../../../support/database/Database.ts"
import { poll } from "../../../support/rules/Poll.ts"

type Files = Readonly<Record<string, string>>

const folderOf = Effect.fnUntraced(function* (contents: Files) {
  const files = yield* FileSystem.FileSystem
  const folder = yield* files.makeTempDirectoryScoped()
  for (const [name, text] of Object.entries(contents)) yield* files.writeFileString(`${folder}/${name}`, text)
  return folder
})

const first = { "0001_first.sql": "CREATE TABLE stones (name text); INSERT INTO stones VALUES ('a'), ('a');" }
const second = {
  "0002_second.sql": "ALTER TABLE stones ADD COLUMN weight int4; CREATE INDEX stones_name ON stones (name);"
}
const steps = {
  "0002_second.sql": `-- How it is applied.
-- step
ALTER TABLE stones ADD COLUMN weight int4;

-- step
-- It may take long.
CREATE INDEX CONCURRENTLY stones_name ON stones (name);
`
}

/** A database to which the first migration was applied, and the effect that applies the second one. */
const used = Effect.fnUntraced(function* (migration: Files = second, upgrade: Files = steps) {
  const { url } = Context.get(yield* Layer.build(Layer.fresh(Database.layerUrlEmpty)), Database)
  const sql = Context.get(yield* Layer.build(Postgres.layer({ url, maxConnections: 4 })), SqlClient.SqlClient)
  const upgrades = yield* folderOf(upgrade)
  yield* run({ url, folder: yield* folderOf(first), upgrades })
  const migrate = run({ url, folder: yield* folderOf({ ...first, ...migration }), upgrades })
  return { migrate, session: openSession(url), sql, url }
})

/** Waits until a statement of the database waits for a lock. */
const awaitWaiting = (sql: SqlClient.SqlClient, mode: string) =>
  poll(
    sql`SELECT FROM pg_locks JOIN pg_stat_activity USING (pid)
      WHERE datname = current_database() AND NOT granted AND (mode = ${mode} OR locktype = ${mode})`,
    (rows) => rows.length > 0
  )

const schemaOf = (sql: SqlClient.SqlClient) => sql`
  SELECT (SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('stones_name')) AS index,
    (SELECT count(*) FROM pg_attribute WHERE attname = 'weight') AS columns,
    to_regclass('migration_progress')::text AS progress, (SELECT count(*) FROM schema_migrations) AS migrations`

const complete = [{ index: true, columns: 1, progress: null, migrations: 2 }]
const layerQuiet = Layer.succeed(References.MinimumLogLevel, "None")

layer(Layer.merge(NodeServices.layer, layerQuiet), { excludeTestServices: true, timeout: 60_000 })(
  "a migration in steps",
  (it) => {
    it.effect("is applied to a database in use, and the migration itself to a new one", () =>
      Effect.gen(function* () {
        const { migrate, sql } = yield* used({ "0002_second.sql": "This is not SQL." })
        assert.deepStrictEqual(yield* migrate, ["0002_second.sql"])
        assert.deepStrictEqual(yield* schemaOf(sql), complete)
        assert.deepStrictEqual(yield* migrate, [])

        const { url } = Context.get(yield* Layer.build(Layer.fresh(Database.layerUrlEmpty)), Database)
        const folder = yield* folderOf({ ...first, ...second })
        const upgrades = yield* folderOf({ "0002_second.sql": "-- step\nThis is not SQL." })
        assert.deepStrictEqual(yield* run({ url, folder, upgrades }), ["0001_first.sql", "0002_second.sql"])
      })
    )

    it.effect("continues with the step that failed, and builds an index that was left invalid anew", () =>
      Effect.gen(function* () {
        const unique = { "0002_second.sql": steps["0002_second.sql"].replace("CREATE INDEX", "CREATE UNIQUE INDEX") }
        const { migrate, sql } = yield* used(second, unique)
        const { message } = yield* Effect.flip(migrate)
        assert.match(message, /^0002_second.sql fails, and the steps before stay applied; .*stones_name/)
        assert.deepStrictEqual(yield* schemaOf(sql), [
          { index: false, columns: 1, progress: "migration_progress", migrations: 1 }
        ])
        yield* sql`DELETE FROM stones WHERE ctid IN (SELECT min(ctid) FROM stones)`
        assert.deepStrictEqual(yield* migrate, ["0002_second.sql"])
        assert.deepStrictEqual(yield* schemaOf(sql), complete)
      })
    )

    it.effect("is ended by the server if its node stops within a step or within the migration", () =>
      Effect.gen(function* () {
        const limit = "INSERT INTO stones VALUES (current_setting('idle_in_transaction_session_timeout'))"
        const third = { "0002_second.sql": "ALTER TABLE stones ADD COLUMN weight int4;", "0003_third.sql": limit }
        const { migrate, sql } = yield* used(third, { "0002_second.sql": `-- step\n${limit}` })
        yield* migrate
        assert.deepStrictEqual(yield* sql`SELECT name FROM stones WHERE name <> 'a'`, [
          { name: "10s" },
          { name: "10s" }
        ])
      })
    )

    it.effect("lets writers pass while it waits for a table", () =>
      Effect.gen(function* () {
        const { migrate, session, sql } = yield* used()
        const reader = yield* session
        yield* reader.values("BEGIN")
        yield* reader.values("SELECT FROM stones")
        const migrating = yield* Effect.forkChild(migrate)
        yield* awaitWaiting(sql, "AccessExclusiveLock")
        yield* sql`INSERT INTO stones VALUES ('b')`
        yield* reader.values("COMMIT")
        assert.deepStrictEqual(yield* Fiber.join(migrating), ["0002_second.sql"])
        assert.deepStrictEqual(yield* schemaOf(sql), complete)
      })
    )

    it.effect("lets writers pass while it builds an index", () =>
      Effect.gen(function* () {
        const [, index = ""] = steps["0002_second.sql"].split("\n\n")
        const { migrate, session, sql } = yield* used(second, { "0002_second.sql": index })
        const writer = yield* session
        yield* writer.values("BEGIN")
        yield* writer.values("INSERT INTO stones VALUES ('b')")
        const migrating = yield* Effect.forkChild(migrate)
        yield* awaitWaiting(sql, "virtualxid")
        yield* sql`INSERT INTO stones VALUES ('c')`
        yield* writer.values("COMMIT")
        yield* Fiber.join(migrating)
        assert.deepStrictEqual(yield* sql`SELECT count(*) AS stones FROM stones`, [{ stones: 4 }])
      })
    )

    it.effect("ends while nodes of this and of an earlier version wait for it", () =>
      Effect.gen(function* () {
        const { migrate, session, sql } = yield* used()
        const reader = yield* session
        yield* reader.values("BEGIN")
        yield* reader.values("SELECT FROM stones")
        const migrating = yield* Effect.forkChild(migrate)
        yield* awaitWaiting(sql, "AccessExclusiveLock")
        const waiting = yield* Effect.forkChild(migrate)
        // As a node of an earlier version does: its statement began before the index, and waits for the migration's lock. The
        // migration notices the deadlock.
        const lock = Effect.gen(function* () {
          const { values } = yield* session
          yield* values("SET deadlock_timeout = '10min'")
          yield* values("SELECT pg_advisory_lock(7210665121)")
        })
        const earlier = yield* Effect.forkChild(Effect.scoped(lock))
        yield* awaitWaiting(sql, "advisory")
        yield* reader.values("COMMIT")
        yield* Fiber.join(earlier)
        const applied = [...(yield* Fiber.join(migrating)), ...(yield* Fiber.join(waiting))]
        assert.deepStrictEqual(applied, ["0002_second.sql"])
        assert.deepStrictEqual(yield* schemaOf(sql), complete)
      })
    )
  }
)
