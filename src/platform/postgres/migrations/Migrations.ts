// Migrates the database to the schema of this version of the code. What must stay true: a migration runs exactly once, in one
// transaction or in steps that each run once, even if many nodes start at the same time; a migration that has run never changes;
// and the code never starts on an unknown schema.
import { createHash } from "node:crypto"
import { fileURLToPath } from "node:url"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { Clock, Context, Effect, FileSystem, Layer, type Redacted, Result, Schema } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { systemReason } from "../../config/SystemErrors.ts"
import { shownOnScreen } from "../../telemetry/ShownOnScreen.ts"
import { reasonOf } from "../driver/Hosts.ts"
import { instant } from "../driver/Parameters.ts"
import { type DatabaseUnavailable, openConnection, openSession, type ServerSession } from "../driver/Postgres.ts"
import { pauseFor } from "../driver/Transactions.ts"
import { isContended } from "../queries/Sql.ts"
import { missingObjects } from "./MissingObjects.ts"
import { applySteps, dropProgress, executeAll } from "./Steps.ts"

/** The schema and this version of the code are incompatible; `message` is one line for the operator. */
export class MigrationRefused extends Schema.TaggedError<MigrationRefused>()("MigrationRefused", {
  message: Schema.String
}) {}

export interface Options {
  readonly url: Redacted.Redacted<string>
  /** Default: schema/migrations of this project. */
  readonly folder?: string
  /** Default: schema/upgrades of this project. */
  readonly upgrades?: string
}

export class Migrations extends Context.Service<
  Migrations,
  {
    /** How many of this version's migrations the database lacks; 0 on a ready node. */
    readonly pending: Effect.Effect<number, SqlError.SqlError>
  }
>()("licensing/platform/postgres/migrations/Migrations") {
  /** Applies missing migrations while the layer is built, so that dependent layers find their tables. */
  static readonly layer = (
    options: Options
  ): Layer.Layer<Migrations, MigrationRefused | DatabaseUnavailable, SqlClient.SqlClient> =>
    Layer.effect(Migrations, make(options)).pipe(Layer.provide(NodeFileSystem.layer))
}

const make = Effect.fnUntraced(function* (options: Options) {
  const sql = yield* SqlClient.SqlClient
  yield* run(options)
  const migrations = yield* read(options)
  const pending = Effect.gen(function* () {
    const applied = yield* sql<{ id: number }>`SELECT id FROM schema_migrations`.pipe(
      Effect.catchReason("SqlError", "SqlSyntaxError", () => Effect.succeed([]))
    )
    return migrations.filter(({ id }) => !applied.some((row) => row.id === id)).length
  }).pipe(Effect.withSpan("Migrations.pending"))
  return Migrations.of({ pending })
})

const ownFolder = fileURLToPath(new URL("../../../../schema/migrations", import.meta.url))
const ownUpgrades = fileURLToPath(new URL("../../../../schema/upgrades", import.meta.url))

interface Migration {
  readonly id: number
  readonly name: string
  readonly text: string
  /** The upgrade of a database in use to the same schema, without blocking its writers. */
  readonly steps: string | undefined
  /** SHA-256 of the text, hexadecimal. */
  readonly checksum: string
}

interface Applied {
  readonly id: number
  readonly name: string
  readonly checksum: string
}

const refuse = (message: string) => new MigrationRefused({ message })

// The lock under which one node migrates at a time; the number is arbitrary. It belongs to the session, so a crash frees it.
const migrationLock = 7_210_665_121

/** A node that is frozen or cut off within a step holds its locks for this long. A busy node may take seconds. */
const idleInTransactionMillis = 10_000
const lockRetryMillis = 200
/** Long enough for another node to get the lock that it waits for in a statement. */
const restartPauseMillis = 2_000

/** Applies the folder's missing migrations in order and returns their names. */
export const run = Effect.fn("Migrations.run")(
  function* (options: Options) {
    const migrations = yield* read(options)
    // A separate session, because the time limits of the service's statements must not apply to a migration.
    const session = yield* openSession(options.url)
    yield* session.values(
      `SELECT set_config('statement_timeout', '0', false), set_config('lock_timeout', '0', false),
        set_config('idle_in_transaction_session_timeout', $1, false)`,
      [String(idleInTransactionMillis)]
    )
    const done: Array<string> = []
    const applyMissing = Effect.gen(function* () {
      yield* session.values(migrationsTable)
      const applied = yield* readApplied(session)
      const isEmpty = applied.length === 0
      for (const migration of yield* missingFrom(migrations, applied)) {
        yield* apply(session, migration, isEmpty)
        done.push(migration.name)
      }
      if (isEmpty) yield* shownOnScreen(Effect.logInfo(`Created the tables, by ${done.length} migrations.`))
    })
    // A concurrent index build waits for every earlier statement. A node of an earlier version waits for the lock within a
    // statement, so this would be a deadlock if that node could not get the lock.
    yield* Effect.retry(underLock(session, applyMissing), {
      while: (error) => (isContended(error) ? Effect.as(pauseFor(restartPauseMillis), true) : false)
    })
    return done
  },
  Effect.scoped,
  Effect.catchTag("SqlError", (error) => refuse(`The database cannot be migrated: ${reasonOf(error)}`))
)

/** Polls for the lock, because a statement that waits for it would delay a concurrent index build. */
const underLock = Effect.fnUntraced(function* <A, E, R>(session: ServerSession, effect: Effect.Effect<A, E, R>) {
  const tryLock = Effect.map(
    session.values(`SELECT pg_try_advisory_lock(${migrationLock})`),
    ([row]) => row?.[0] === true
  )
  if (!(yield* tryLock)) {
    yield* Effect.logInfo("Another node is migrating the database; waiting for it.")
    while (!(yield* tryLock)) yield* pauseFor(lockRetryMillis)
  }
  const unlock = session.values(`SELECT pg_advisory_unlock(${migrationLock})`)
  // After other errors the session ends, which releases the lock.
  return yield* Effect.tapError(effect, (error) => (isContended(error) ? unlock : Effect.void))
})

/** The names of the folder's migrations that the database lacks, and what it lacks although none is. Changes nothing. */
export const inspect = Effect.fn("Migrations.inspect")(
  function* (options: Options) {
    const migrations = yield* read(options)
    // A standby refuses a session that listens.
    const connection = yield* openConnection(options.url)
    const session = { values: (query: string) => connection.queryValues(query, [], false) }
    const [[exists]] = (yield* session.values("SELECT to_regclass('schema_migrations') IS NOT NULL")) as [[boolean]]
    const pending = yield* missingFrom(migrations, exists ? yield* readApplied(session) : [])
    const missing = pending.length === 0 ? yield* missingObjects(session) : []
    return { pending: pending.map(({ name }) => name), missing }
  },
  Effect.scoped,
  Effect.catchTags({
    SqlError: (error) => refuse(`The migrations of the database cannot be read: ${reasonOf(error)}`),
    PlatformError: (error) => refuse(`The schema cannot be read: ${systemReason(error)}`)
  })
)

const readApplied = (session: Pick<ServerSession, "values">) =>
  Effect.map(session.values("SELECT id, name, checksum FROM schema_migrations ORDER BY id"), (rows) =>
    rows.map(([id, name, checksum]) => ({ id, name, checksum }) as Applied)
  )

const missingFrom = (migrations: ReadonlyArray<Migration>, applied: ReadonlyArray<Applied>) =>
  hasReplacedMigrations(migrations, applied)
    ? upgradeReplacedMigrations(migrations, applied)
    : Effect.fromResult(compare(migrations, applied))

const migrationsTable = `CREATE TABLE IF NOT EXISTS schema_migrations (
  id int4 PRIMARY KEY, name text NOT NULL, checksum text NOT NULL, applied_at timestamptz NOT NULL)`

const fileName = /^(\d{4})_[a-z0-9_]+\.sql$/

/** The folder's migrations in the order of their numbers. */
const read = Effect.fnUntraced(
  function* ({ folder = ownFolder, upgrades = ownUpgrades }: Options) {
    const files = yield* FileSystem.FileSystem
    const inSteps = new Set(yield* files.readDirectory(upgrades))
    const names = (yield* files.readDirectory(folder)).filter((name) => name.endsWith(".sql")).sort()
    const migrations: Array<Migration> = []
    for (const name of names) {
      const id = Number(fileName.exec(name)?.[1])
      if (!(id > (migrations.at(-1)?.id ?? 0))) {
        return yield* refuse(`${name} in ${folder} needs a name like 0001_what.sql and a number of its own.`)
      }
      // A checkout may change the line ends. The checksum must not depend on them.
      const text = (yield* files.readFileString(`${folder}/${name}`)).replaceAll("\r\n", "\n")
      const steps = inSteps.has(name) ? yield* files.readFileString(`${upgrades}/${name}`) : undefined
      migrations.push({ id, name, text, steps, checksum: createHash("sha256").update(text).digest("hex") })
    }
    return migrations
  },
  Effect.catchTag("PlatformError", (error) => refuse(`The migrations cannot be read: ${systemReason(error)}`))
)

/** Whether the database was made by migrations that are no longer in the folder. */
const hasReplacedMigrations = ([initial]: ReadonlyArray<Migration>, [first]: ReadonlyArray<Applied>): boolean =>
  first !== undefined && first.id === initial?.id && first.name !== initial.name

/** SHA-256 over the names and checksums of the 17 migrations that 0001_initial.sql replaces. */
const replacedDigest = "98042d23bfd9a9806d93f0ed61fca243b16beb5a3595c6b03baccf52c95dd246"
const earlierUpgrade = `${ownUpgrades}/before_0001.sql`

/** The first migration then upgrades the earlier schema instead of creating it, and replaces the records. */
const upgradeReplacedMigrations = Effect.fnUntraced(
  function* ([initial, ...later]: ReadonlyArray<Migration>, applied: ReadonlyArray<Applied>) {
    const records = applied.map(({ checksum, name }) => `${name} ${checksum}\n`).join("")
    if (initial === undefined || createHash("sha256").update(records).digest("hex") !== replacedDigest) {
      return yield* refuse(
        `The database has earlier migrations up to ${applied.at(-1)?.name}, from which this version cannot upgrade it. ` +
          "Upgrade it with the version before this one first."
      )
    }
    const files = yield* FileSystem.FileSystem
    return [{ ...initial, text: yield* files.readFileString(earlierUpgrade) }, ...later]
  },
  Effect.catchTag("PlatformError", (error) => refuse(`The migrations cannot be read: ${systemReason(error)}`))
)

/** The missing migrations; fails if the applied ones are not the first ones of the folder. */
const compare = (
  migrations: ReadonlyArray<Migration>,
  applied: ReadonlyArray<Applied>
): Result.Result<ReadonlyArray<Migration>, MigrationRefused> => {
  for (const [index, { checksum, id, name }] of applied.entries()) {
    const ours = migrations[index]
    if (!migrations.some((migration) => migration.id === id)) {
      return Result.fail(
        refuse(`The database is newer than this version of the service: it has ${name}. Start the newer version.`)
      )
    }
    if (ours?.id !== id) {
      return Result.fail(refuse(`${ours?.name} was added before ${name}, which has run. Give it a higher number.`))
    }
    if (ours.checksum !== checksum) {
      return Result.fail(
        refuse(`${name} has changed since it ran. Restore it, and put the change into a new migration.`)
      )
    }
  }
  return Result.succeed(migrations.slice(applied.length))
}

const apply = Effect.fnUntraced(function* (session: ServerSession, migration: Migration, isFirstStart: boolean) {
  const { checksum, id, name, steps, text } = migration
  const now = yield* Clock.currentTimeMillis
  const isInSteps = steps !== undefined && !isFirstStart
  const fails = (what: string) => (error: SqlError.SqlError) => refuse(`${name} fails, ${what}: ${reasonOf(error)}`)
  if (isInSteps) {
    yield* applySteps(session, { id, name, steps, now }).pipe(
      Effect.mapError((error) =>
        isContended(error) ? error : fails("and the steps before stay applied; the next start continues")(error)
      )
    )
  }
  yield* session.values("BEGIN")
  if (isInSteps) yield* dropProgress(session)
  else yield* Effect.mapError(executeAll(session, text, now), fails("and nothing of it is applied"))
  yield* session.values("INSERT INTO schema_migrations (id, name, checksum, applied_at) VALUES ($1, $2, $3, $4)", [
    id,
    name,
    checksum,
    instant(now)
  ])
  yield* session.values("COMMIT")
  // A migration of tables with rows may take long, so the log shows its progress.
  yield* (isFirstStart ? Effect.logDebug : Effect.logInfo)(`Applied the migration ${name}.`)
})
