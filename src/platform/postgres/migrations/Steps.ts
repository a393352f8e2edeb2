// Applies a migration to a database in use without blocking its writers, in steps that a file in schema/upgrades lists. A step is a
// transaction that gets its locks within 200 ms or is retried, or it builds or drops one index concurrently. What must stay true:
// each step takes effect once, even if a node crashes between two, and no index stays invalid.
import { createHash } from "node:crypto"
import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import { instant } from "../driver/Parameters.ts"
import type { ServerSession } from "../driver/Postgres.ts"
import { pauseFor } from "../driver/Transactions.ts"
import { unlessContended } from "../queries/Sql.ts"

/** While a step waits for its lock, writers wait behind it, so this limits their delay. */
const lockTimeoutMillis = 200
const pauseMillis = 500
const attemptsPerRecord = 60

interface SteppedMigration {
  readonly id: number
  readonly name: string
  /** The text of the file: steps, each after a line `-- step`. */
  readonly steps: string
  readonly now: number
}

/** Exists only while a migration is applied in steps. */
const progressTable =
  "CREATE TABLE IF NOT EXISTS migration_progress (migration int4 CONSTRAINT migration_progress_pkey PRIMARY KEY, steps int4 NOT NULL)"

/** Applies the remaining steps. Fails with a contention if other transactions block an index build; then the caller retries. */
export const applySteps = Effect.fnUntraced(function* (session: ServerSession, migration: SteppedMigration) {
  const { id, name, now } = migration
  const steps = migration.steps.split(/^-- step$/m).slice(1)
  yield* session.values(progressTable)
  const [row] = yield* session.values("SELECT steps FROM migration_progress WHERE migration = $1", [id])
  for (let done = Number(row?.[0] ?? 0); done < steps.length; done++) {
    yield* Effect.logInfo(`Applying step ${done + 1} of ${steps.length} of the migration ${name}.`)
    const record = session.values(
      "INSERT INTO migration_progress VALUES ($1, $2) ON CONFLICT (migration) DO UPDATE SET steps = excluded.steps",
      [id, done + 1]
    )
    const step = steps[done]!.trim()
    const index = concurrentStep.exec(step)
    if (index === null) yield* inShortLocks(session, step, Effect.andThen(executeAll(session, step, now), record))
    else yield* Effect.andThen(concurrently(session, step, index[1]!), record)
  }
})

/** Runs in the transaction that records the migration. */
export const dropProgress = (session: ServerSession) => session.values("DROP TABLE migration_progress")

/** Executes several statements within a transaction. */
export const executeAll = Effect.fnUntraced(function* (session: ServerSession, text: string, now: number) {
  // Migrations use the service's clock, like all stored times.
  yield* session.values("SELECT set_config('licensing.migrated_at', $1::timestamptz::text, true)", [instant(now)])
  // The driver sends one statement at a time. With EXECUTE the server splits the text. A tag made of the text's own checksum cannot
  // occur in the text.
  const checksum = createHash("sha256").update(text).digest("hex")
  const tag = `$m${checksum}$`
  yield* session.values(`DO $do${checksum}$BEGIN EXECUTE ${tag}${text}${tag}; END$do${checksum}$`)
})

const concurrentStep = /^(?:--.*\n)*(?:CREATE INDEX|CREATE UNIQUE INDEX|DROP INDEX) CONCURRENTLY (\w+)/

/** Rebuilds an index that a crash or an error left invalid. Skips a complete one. */
const concurrently = Effect.fnUntraced(function* (session: ServerSession, step: string, index: string) {
  const [found] = yield* session.values("SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass($1)", [index])
  const isDrop = /^DROP/m.test(step)
  if (isDrop ? found === undefined : found?.[0] === true) return
  if (!isDrop && found !== undefined) yield* session.values(`DROP INDEX CONCURRENTLY ${index}`)
  yield* session.values(step)
})

/**
 * Runs a transaction that blocks writers, with a short lock timeout, so that writers do not queue behind it. It first takes a lock
 * that blocks no reader or writer, for which PostgreSQL ends an automatic VACUUM of the table.
 */
const inShortLocks = Effect.fnUntraced(function* (
  { values }: ServerSession,
  step: string,
  transaction: Effect.Effect<unknown, SqlError.SqlError>
) {
  const reserve = Effect.gen(function* () {
    for (const [, table] of step.matchAll(/^(?:ALTER TABLE|CREATE TRIGGER .* ON) (\w+)/gm))
      yield* values(`LOCK TABLE ${table} IN SHARE UPDATE EXCLUSIVE MODE`)
    yield* values("SELECT set_config('lock_timeout', $1, true)", [String(lockTimeoutMillis)])
  })
  for (let attempt = 1; ; attempt++) {
    if (yield* unlessContended(values, Effect.andThen(reserve, transaction))) return
    if (attempt % attemptsPerRecord === 0)
      yield* Effect.logWarning("Other transactions hold the tables of a migration for long; retrying.")
    yield* pauseFor(pauseMillis)
  }
})
