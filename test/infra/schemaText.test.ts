import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { assert, layer } from "@effect/vitest"
import { Effect, Exit } from "effect"
import { SqlClient } from "effect/sql"
import { schemaText } from "../../infra/scripts/schemaText.ts"
import { Database } from "../support/database/Database.ts"

const initial = fileURLToPath(new URL("../../schema/migrations/0001_initial.sql", import.meta.url))

/** The tables that a text creates, in order. */
const createdIn = (text: string) => Array.from(text.matchAll(/^CREATE TABLE (\w+) \(/gm), ([, table]) => table)

layer(Database.layer)("the schema as text", (it) => {
  it.effect("lists the tables in the order of the first migration, each with a comment and in a group", () =>
    Effect.gen(function* () {
      const text = yield* schemaText()
      const tables = createdIn(text)
      const first = createdIn(readFileSync(initial, "utf8"))
      assert.deepStrictEqual(
        tables.filter((table) => first.includes(table)),
        first
      )
      for (const table of tables) assert.include(text, `COMMENT ON TABLE ${table} IS '`)
      assert.notInclude(text, "\n-- Others\n")
    })
  )

  it.effect("creates the same schema when it is run", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const text = yield* schemaText()
      assert.include(text, "CREATE TABLE licenses (")
      yield* sql`DROP SCHEMA public CASCADE`
      yield* sql`CREATE SCHEMA public`
      // The server splits the text because function bodies contain semicolons.
      yield* sql.unsafe(`DO $do$BEGIN EXECUTE $text$${text}$text$; END$do$`)
      assert.strictEqual(yield* schemaText(), text)
    })
  )

  it.effect("contains defaults, generated columns, identities, storage options and partial indexes", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* sql`CREATE TABLE aa_sample (id int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY, n int4 DEFAULT 3 NOT NULL,
        twice int4 GENERATED ALWAYS AS (n * 2) STORED, CHECK (n > 0)) WITH (fillfactor = 80)`
      yield* sql`CREATE INDEX aa_sample_n ON aa_sample (n DESC) WHERE n > 5`
      assert.include(
        yield* schemaText(),
        `CREATE TABLE aa_sample (
  id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  n integer DEFAULT 3 NOT NULL,
  twice integer GENERATED ALWAYS AS ((n * 2)) STORED,
  CONSTRAINT aa_sample_pkey PRIMARY KEY (id),
  CONSTRAINT aa_sample_n_check CHECK ((n > 0))
) WITH (fillfactor=80);
CREATE INDEX aa_sample_n ON aa_sample USING btree (n DESC) WHERE (n > 5);`
      )
    })
  )

  it.effect(
    "contains comments, column options and storage, and the function of a trigger, also for a table outside every group",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* sql`CREATE TABLE bb_sample (name text)`
        yield* sql`COMMENT ON TABLE bb_sample IS 'It''s a sample.'`
        yield* sql`ALTER TABLE bb_sample ALTER COLUMN name SET (n_distinct = 1)`
        yield* sql`ALTER TABLE bb_sample ALTER COLUMN name SET STORAGE EXTERNAL`
        yield* sql`CREATE TRIGGER bb_kept AFTER INSERT ON bb_sample FOR EACH ROW EXECUTE FUNCTION keep_license_state()`
        const text = yield* schemaText()
        assert.include(
          text.slice(text.indexOf("\n-- Others\n")),
          `CREATE TABLE bb_sample (
  name text
);
COMMENT ON TABLE bb_sample IS 'It''s a sample.';
ALTER TABLE bb_sample ALTER COLUMN name SET (n_distinct=1);
ALTER TABLE bb_sample ALTER COLUMN name SET STORAGE EXTERNAL;`
        )
        assert.include(text, "\nCREATE TRIGGER bb_kept AFTER INSERT ON bb_sample FOR EACH ROW EXECUTE FUNCTION")
        yield* sql`DROP TABLE bb_sample`
      })
  )

  it.effect("fails on objects that it cannot represent", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      for (const hidden of [
        sql`CREATE MATERIALIZED VIEW hidden AS SELECT 1 AS one`,
        sql`COMMENT ON COLUMN licenses.id IS 'hidden'`,
        sql`COMMENT ON FUNCTION license_notice IS 'hidden'`,
        sql`CREATE FUNCTION search_text(hidden text) RETURNS text LANGUAGE sql AS 'SELECT hidden'`
      ]) {
        const schemaTextOf = sql.withTransaction(
          hidden.pipe(Effect.andThen(schemaText()), Effect.exit, Effect.flatMap(Effect.fail))
        )
        assert.isTrue(Exit.hasDies(yield* Effect.flip(schemaTextOf as Effect.Effect<never, Exit.Exit<string>>)))
      }
    })
  )
})
