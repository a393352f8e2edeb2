/** The text of all rows of a database, as a dump has it. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { sealedFor } from "../../src/auth/idempotency/StoredResponses.ts"
import { decompress } from "../../src/reports/exports/Compression.ts"
import { MasterKey } from "../../src/signing/MasterKey.ts"

interface Stored {
  readonly scope: Uint8Array
  readonly body: Uint8Array
  readonly sealed: boolean
}

interface Chunk {
  readonly bytes: Uint8Array
  readonly plain_size: number | null
}

/** Stored responses as they are replayed: without encryption. */
const responses = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const masterKey = yield* MasterKey
  const rows = yield* sql<Stored>`SELECT scope, body, sealed FROM idempotent_answers`
  return yield* Effect.forEach(rows, ({ body, scope, sealed }) =>
    Effect.map(sealed ? masterKey.open(body, sealedFor(scope)) : Effect.succeed(body), (bytes) =>
      Buffer.from(bytes).toString()
    )
  )
})

/** Files of exports without compression. */
const files = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const chunks = yield* sql<Chunk>`SELECT bytes, plain_size FROM report_export_chunks`
  return yield* Effect.forEach(chunks, ({ bytes, plain_size }) =>
    Effect.map(plain_size === null ? Effect.succeed(bytes) : decompress(bytes, plain_size), (plain) =>
      Buffer.from(plain).toString()
    )
  )
})

/** All rows of all tables, expressions of indexes, and the planner's statistics, by table; lower case. */
const databaseText = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const tables = yield* sql<{ readonly name: string }>`
    SELECT relname AS name FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace`
  const texts = yield* Effect.forEach(tables, ({ name }) =>
    Effect.map(sql<{ readonly text: string }>`SELECT t::text AS text FROM ${sql(name)} t`, (rows) => ({
      name,
      text: rows.map(({ text }) => text).join("\n")
    }))
  )
  const grams = yield* sql<{ readonly text: string }>`
    SELECT search_grams(search_text(customer_name, customer_email))::text AS text FROM licenses
    UNION ALL SELECT search_grams(search_text(name, email))::text FROM customers`
  const statistics = yield* sql<{ readonly text: string }>`
    SELECT concat_ws(' ', most_common_vals, histogram_bounds) AS text FROM pg_stats
    WHERE tablename IN ('customers', 'licenses', 'custom_field_values')`
  const all = [
    ...texts,
    { name: "search", text: grams.map(({ text }) => text).join("\n") },
    { name: "statistics", text: statistics.map(({ text }) => text).join("\n") },
    { name: "stored responses", text: (yield* responses).join("\n") },
    { name: "files of exports", text: (yield* files).join("\n") }
  ]
  return all.map(({ name, text }) => ({ name, text: text.toLowerCase() }))
})

/** The tables that contain a text. */
export const placesOf = Effect.fnUntraced(function* (text: string) {
  return (yield* databaseText).filter((table) => table.text.includes(text.toLowerCase())).map(({ name }) => name)
})
