/** A digest of each table of a database. Refused requests must not change it. */
import { Effect } from "effect"
import type { SqlClient } from "effect/sql"

/** Stored responses do not count as a change: a refusal of a request with a key is stored too. */
const leftOut = ["idempotent_answers", "schema_migrations"]

/** Columns of last-seen times. */
const moving: { readonly [table: string]: string } = { api_keys: "last_used_at" }

/** Rows and a digest of each table, by its name. */
export const contentOf = Effect.fnUntraced(function* (sql: SqlClient.SqlClient) {
  const tables = yield* sql<{ readonly name: string }>`
    SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public' AND NOT tablename = ANY (${leftOut}) ORDER BY 1`
  const digests = tables.map(
    ({ name }) => `
      SELECT '${name}' AS name, count(*)::int4 AS rows,
        coalesce(sum(hashtextextended((to_jsonb(t) - '${moving[name] ?? ""}')::text, 0)), 0)::text AS digest
      FROM ${name} t`
  )
  return yield* sql.unsafe<{ readonly name: string; readonly rows: number; readonly digest: string }>(
    digests.join(" UNION ALL ")
  )
})
