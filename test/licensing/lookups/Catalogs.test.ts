/** The versions of products that a node keeps in memory. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { LicenseLookups } from "../../../src/licensing/lookups/LicenseLookups.ts"
import { Database } from "../../support/database/Database.ts"

layer(Database.layer)("The versions of a product", (it) => {
  it.effect("are kept while its catalog's revision is the same, unless a thousand other products are used", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { catalog } = yield* LicenseLookups
      yield* sql`
        INSERT INTO products (id, name, code, metadata, created_at, updated_at)
        SELECT 'prod_' || n, 'P', 'p' || n, '{}', now(), now() FROM generate_series(0, 1000) AS n`
      const release = (version: string) => sql`
        INSERT INTO product_versions (id, product_id, version, released_at, metadata, created_at, updated_at)
        VALUES (${version}, 'prod_0', ${version}, now(), '{}', now(), now())`
      const versions = Effect.map(catalog("prod_0", 1), (read) => Array.from(read.versions.keys()).toSorted())
      yield* release("1.0")
      assert.deepStrictEqual(yield* versions, ["1.0"])
      // The revision stays, so that only a new read shows this version.
      yield* release("2.0")
      assert.deepStrictEqual(yield* versions, ["1.0"])
      for (let product = 1; product <= 1000; product++) yield* catalog(`prod_${product}`, 1)
      assert.deepStrictEqual(yield* versions, ["1.0", "2.0"])
    }).pipe(Effect.provide(LicenseLookups.layer))
  )
})
