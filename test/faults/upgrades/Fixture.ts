/** A database that an earlier version has written, with what its API answered about it, as a file. */
import { readFileSync, writeFileSync } from "node:fs"
import { Effect, Redacted } from "effect"
import { openSession } from "../../../src/platform/postgres/driver/Postgres.ts"
import type { Read } from "./Records.ts"

const file = new URL("released.jsonl", import.meta.url)

/** Of the key that the first program stores. */
export const token = "upgrade-token-of-more-than-32-characters"

/** Of the program that writes a database, and those that read it. */
export const settingsFor = (url: Redacted.Redacted<string>) => ({
  LICENSING_DATABASE_URL: Redacted.value(url),
  LICENSING_MASTER_KEY: Buffer.alloc(32, 9).toString("base64"),
  LICENSING_BOOTSTRAP_TOKEN: token,
  LICENSING_RATE_MANAGEMENT: "0",
  LICENSING_LOG_LEVEL: "warn"
})

/** A row, or what the API answered to a GET. */
type Line = { readonly table: string; readonly row: object } | { readonly path: string; readonly answer: unknown }

const lines = (): ReadonlyArray<Line> =>
  readFileSync(file, "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line))

export const recordedAnswers = (): Read =>
  Object.fromEntries(lines().flatMap((line) => ("path" in line ? [[line.path, line.answer]] : [])))

export const record = Effect.fnUntraced(function* (url: Redacted.Redacted<string>, answers: Read) {
  const { values } = yield* openSession(url)
  const tables = yield* values(
    "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY relname"
  )
  const all: Array<Line> = Object.entries(answers).map(([path, answer]) => ({ path, answer }))
  for (const [table] of tables) {
    if (table === "schema_migrations") continue
    const [[text]] = (yield* values(`SELECT coalesce(jsonb_agg(to_jsonb(t)), '[]')::text FROM ${table} t`)) as [
      [string]
    ]
    for (const row of JSON.parse(text) as ReadonlyArray<object>) all.push({ table: String(table), row })
  }
  yield* Effect.sync(() => writeFileSync(file, all.map((line) => `${JSON.stringify(line)}\n`).join("")))
}, Effect.scoped)

/** Writes the rows to a database with that version's tables. */
export const restore = Effect.fnUntraced(function* (url: Redacted.Redacted<string>) {
  const { values } = yield* openSession(url)
  // Rows are as triggers left them.
  yield* values("SET session_replication_role = replica")
  const rows = lines().filter((line) => "table" in line)
  for (const [table, own] of Map.groupBy(rows, (line) => line.table)) {
    yield* values(`DELETE FROM ${table}`)
    const given = JSON.stringify(own.map(({ row }) => row))
    const [[columns]] = (yield* values(
      `SELECT string_agg(quote_ident(attname), ', ') FROM pg_attribute
        WHERE attrelid = '${table}'::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = ''`
    )) as [[string]]
    yield* values(
      `INSERT INTO ${table} (${columns}) SELECT ${columns} FROM jsonb_populate_recordset(NULL::${table}, $1::jsonb)`,
      [given]
    )
  }
}, Effect.scoped)
