/** The text of all rows of a database, as a dump has it. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { sealedFor } from "../../../src/access/idempotency/StoredResponses.ts"
import { decompress } from "../../../src/insight/reports/exports/Compression.ts"
import { MasterKey } from "../../../src/platform/signing/MasterKey.ts"

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
  const statistics = yield* sql<{ readonly name: string; readonly text: string }>`
    SELECT starelid::regclass || ' ' || staattnum AS name,
      concat_ws(' ', stavalues1, stavalues2, stavalues3, stavalues4, stavalues5) AS text FROM pg_statistic
    UNION ALL SELECT stxoid::text, concat_ws(' ', stxdmcv, stxdexpr) FROM pg_statistic_ext_data`
  const all = [
    ...texts,
    { name: "search", text: grams.map(({ text }) => text).join("\n") },
    ...statistics.map(({ name, text }) => ({ name: `statistics of ${name}`, text })),
    { name: "stored responses", text: (yield* responses).join("\n") },
    { name: "files of exports", text: (yield* files).join("\n") }
  ]
  return all.map(({ name, text }) => ({ name, text: text.toLowerCase() }))
})

/** The tables that contain a text, also as a part of bytes. */
export const placesOf = Effect.fnUntraced(function* (text: string) {
  const forms = [text.toLowerCase(), Buffer.from(text).toString("hex")]
  return (yield* databaseText)
    .filter((table) => forms.some((form) => table.text.includes(form)))
    .map(({ name }) => name)
})
