import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, layer } from "@effect/vitest"
import { Context, Effect, FileSystem, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { Postgres } from "../../../../src/platform/postgres/driver/Postgres.ts"
import { Migrations, run } from "../../../../src/platform/postgres/migrations/Migrations.ts"
import { Database } from "../../../support/database/Database.ts"

/** A folder with the given migrations. */
const folderOf = Effect.fnUntraced(function* (migrations: Readonly<Record<string, string>>) {
  const files = yield* FileSystem.FileSystem
  const folder = yield* files.makeTempDirectoryScoped()
  for (const [name, text] of Object.entries(migrations)) yield* files.writeFileString(`${folder}/${name}`, text)
  return folder
})

/** An empty database and a client of it. */
const empty = Effect.gen(function* () {
  const { url } = Context.get(yield* Layer.build(Layer.fresh(Database.layerUrlEmpty)), Database)
  const sql = Context.get(yield* Layer.build(Postgres.layer({ url, maxConnections: 2 })), SqlClient.SqlClient)
  return { url, sql }
})

const migrationFiles = {
  "0001_first.sql": "CREATE TABLE stones (name text);",
  "0002_second.sql": `-- Several statements, with quotes; and a function body.
    INSERT INTO stones VALUES ('a;b'), ('$$'), ('it''s');
    CREATE FUNCTION count_stones() RETURNS int8 LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT count(*) FROM stones); END $$;
    SELECT count_stones();
    INSERT INTO stones SELECT 'n' || count_stones();`
}

layer(NodeServices.layer)("migrations", (it) => {
  it.effect("apply in order, write one row each, and then none is pending", () =>
    Effect.gen(function* () {
      const { sql, url } = yield* empty
      const folder = yield* folderOf(migrationFiles)
      assert.deepStrictEqual(yield* run({ url, folder }), Object.keys(migrationFiles))
      assert.deepStrictEqual(yield* run({ url, folder }), [])
      assert.deepStrictEqual(
        (yield* sql<{ name: string }>`SELECT name FROM stones`).map(({ name }) => name),
        ["a;b", "$$", "it's", "n3"]
      )
      assert.deepStrictEqual(
        yield* sql`SELECT id, name, length(checksum) AS length FROM schema_migrations ORDER BY id`,
        [
          { id: 1, name: "0001_first.sql", length: 64 },
          { id: 2, name: "0002_second.sql", length: 64 }
        ]
      )
    })
  )

  it.effect("run once when many nodes start together", () =>
    Effect.gen(function* () {
      const { sql, url } = yield* empty
      const folder = yield* folderOf(migrationFiles)
      const nodes = yield* Effect.all(
        Array.from({ length: 6 }, () => run({ url, folder })),
        { concurrency: 6 }
      )
      assert.deepStrictEqual(nodes.flat().sort(), Object.keys(migrationFiles))
      assert.deepStrictEqual(yield* sql`SELECT count(*) AS stones FROM stones`, [{ stones: 4 }])
    })
  )

  it.effect("undo a migration that fails, and keep the migrations before it", () =>
    Effect.gen(function* () {
      const { sql, url } = yield* empty
      const folder = yield* folderOf({
        ...migrationFiles,
        "0003_broken.sql": "CREATE TABLE half (a int4); CREATE TABLE half (b int4);"
      })
      const error = yield* Effect.flip(run({ url, folder }))
      assert.strictEqual(
        error.message,
        '0003_broken.sql fails, and nothing of it is applied: relation "half" already exists'
      )
      assert.deepStrictEqual(
        yield* sql`SELECT to_regclass('half') AS half, count(*) AS applied FROM schema_migrations`,
        [{ half: null, applied: 2 }]
      )
    })
  )

  it.effect("stop the start when an applied migration was changed", () =>
    Effect.gen(function* () {
      const { url } = yield* empty
      yield* run({ url, folder: yield* folderOf(migrationFiles) })
      const windowsLineEnds = {
        ...migrationFiles,
        "0002_second.sql": migrationFiles["0002_second.sql"].replaceAll("\n", "\r\n")
      }
      assert.deepStrictEqual(yield* run({ url, folder: yield* folderOf(windowsLineEnds) }), [])
      const changed = { ...migrationFiles, "0001_first.sql": "CREATE TABLE stones (name text, weight int4);" }
      const error = yield* Effect.flip(run({ url, folder: yield* folderOf(changed) }))
      assert.match(error.message, /^0001_first.sql has changed since it ran/)
    })
  )

  it.effect("stop the start when the database is newer than the code", () =>
    Effect.gen(function* () {
      const { url } = yield* empty
      yield* run({ url, folder: yield* folderOf(migrationFiles) })
      const older = yield* folderOf({ "0001_first.sql": migrationFiles["0001_first.sql"] })
      const error = yield* Effect.flip(run({ url, folder: older }))
      assert.match(error.message, /^The database is newer than this version of the service: it has 0002_second.sql/)
    })
  )

  it.effect("stop the start when one was inserted before applied migrations, or two have the same number", () =>
    Effect.gen(function* () {
      const { url } = yield* empty
      yield* run({ url, folder: yield* folderOf({ "0002_second.sql": "SELECT 1" }) })
      const inserted = yield* folderOf({ "0001_late.sql": "SELECT 1", "0002_second.sql": "SELECT 1" })
      assert.match(
        (yield* Effect.flip(run({ url, folder: inserted }))).message,
        /^0001_late.sql was added before 0002_second.sql/
      )
      const twice = yield* folderOf({ "0001_a.sql": "SELECT 1", "0001_b.sql": "SELECT 1" })
      assert.match((yield* Effect.flip(run({ url, folder: twice }))).message, /^0001_b.sql in .* a number of its own/)
    })
  )

  it.effect("report how many are pending", () =>
    Effect.gen(function* () {
      const { sql, url } = yield* empty
      const built = yield* Layer.build(
        Migrations.layer({ url, folder: yield* folderOf(migrationFiles) }).pipe(
          Layer.provide(Layer.succeed(SqlClient.SqlClient, sql))
        )
      )
      const { pending } = Context.get(built, Migrations)
      assert.strictEqual(yield* pending, 0)
      yield* sql`DELETE FROM schema_migrations WHERE id = 2`
      assert.strictEqual(yield* pending, 1)
      yield* sql`DROP TABLE schema_migrations`
      assert.strictEqual(yield* pending, 2)
    })
  )
})
