import { assert, layer } from "@effect/vitest"
import { Effect, Exit } from "effect"
import { SqlClient } from "effect/sql"
import { schemaText } from "../../src/postgres/SchemaText.ts"
import { Database } from "../support/Database.ts"

layer(Database.layer)("the schema as text", (it) => {
  it.effect("rebuilds the same schema when it is run", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const text = yield* schemaText()
      assert.include(text, "CREATE TABLE licenses (")
      yield* sql`DROP SCHEMA public CASCADE`
      yield* sql`CREATE SCHEMA public`
      // The server splits the text: functions hold semicolons of their own.
      yield* sql.unsafe(`DO $do$BEGIN EXECUTE $text$${text}$text$; END$do$`)
      assert.strictEqual(yield* schemaText(), text)
    })
  )

  it.effect("shows defaults, generated columns, identities, storage options and partial indexes", () =>
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

  it.effect("fails on an object that it cannot show", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* sql`CREATE MATERIALIZED VIEW hidden AS SELECT 1 AS one`
      assert.isTrue(Exit.hasDies(yield* Effect.exit(schemaText())))
    })
  )
})
