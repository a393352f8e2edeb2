/** The migrations of this project on databases in use: those that lock or read a table have steps, and the steps block no writer. */
import { fileURLToPath } from "node:url"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Fiber, FileSystem, Layer, References } from "effect"
import { SqlClient } from "effect/sql"
import { schemaText } from "../../../../infra/scripts/schemaText.ts"
import { openSession, Postgres, type ServerSession } from "../../../../src/platform/postgres/driver/Postgres.ts"
import { run } from "../../../../src/platform/postgres/migrations/Migrations.ts"
import { executeAll } from "../../../../src/platform/postgres/migrations/Steps.ts"
import { Database } from "../../../support/database/Database.ts"
import { poll } from "../../../support/rules/Poll.ts"

const folderOf = (name: string) => fileURLToPath(new URL(`../../../../schema/${name}`, import.meta.url))

interface Migration {
  readonly name: string
  readonly text: string
  readonly steps: ReadonlyArray<string> | undefined
}

/** The migrations of the project, in order. */
const migrations = Effect.gen(function* () {
  const files = yield* FileSystem.FileSystem
  const inSteps = yield* files.readDirectory(folderOf("upgrades"))
  const names = (yield* files.readDirectory(folderOf("migrations"))).toSorted()
  return yield* Effect.forEach(
    names,
    Effect.fnUntraced(function* (name) {
      const text = yield* files.readFileString(`${folderOf("migrations")}/${name}`)
      const upgrade = inSteps.includes(name)
        ? yield* files.readFileString(`${folderOf("upgrades")}/${name}`)
        : undefined
      return { name, text, steps: upgrade?.split(/^-- step$/m).slice(1) } satisfies Migration as Migration
    })
  )
})

/** A database with the migrations before one. */
const before = Effect.fnUntraced(function* (name: string) {
  const files = yield* FileSystem.FileSystem
  const folder = yield* files.makeTempDirectoryScoped()
  for (const migration of yield* migrations) {
    if (migration.name < name) yield* files.writeFileString(`${folder}/${migration.name}`, migration.text)
  }
  const { url } = Context.get(yield* Layer.build(Layer.fresh(Database.layerUrlEmpty)), Database)
  yield* run({ url, folder })
  return url
})

const clientOf = (url: Parameters<typeof openSession>[0]) =>
  Effect.map(Layer.build(Layer.fresh(Postgres.layer({ url, maxConnections: 2 }))), (context) =>
    Context.get(context, SqlClient.SqlClient)
  )

/** Table locks for which writers wait, or of writers. */
const strongLocks = ["ShareLock", "ShareRowExclusiveLock", "ExclusiveLock", "AccessExclusiveLock"]

interface Use {
  readonly table: string
  /** The strongest lock: whether others wait for it, or this is a writer. */
  readonly isLocked: boolean
  readonly isWritten: boolean
  readonly isRead: boolean
}

/** Runs a transaction and returns how it used the tables that existed before. */
const usesOf = Effect.fnUntraced(function* ({ values }: ServerSession, transaction: Effect.Effect<unknown, unknown>) {
  yield* values("BEGIN")
  // What the session read before may be counted, too.
  yield* values(`CREATE TEMP TABLE existing ON COMMIT DROP AS SELECT oid, pg_stat_get_xact_numscans(oid) AS read FROM pg_class
    WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')`)
  yield* transaction
  const rows = yield* values(`
    SELECT c.relname, coalesce(bool_or(l.mode IN (${strongLocks.map((mode) => `'${mode}'`).join(", ")})), false),
      coalesce(bool_or(l.mode = 'RowExclusiveLock'), false), pg_stat_get_xact_numscans(oid) > read
    FROM existing JOIN pg_class c USING (oid)
      LEFT JOIN pg_locks l ON l.relation = c.oid AND l.pid = pg_backend_pid() AND l.locktype = 'relation'
    GROUP BY c.relname, oid, read ORDER BY c.relname`)
  yield* values("COMMIT")
  return rows.map(([table, isLocked, isWritten, isRead]) => ({ table, isLocked, isWritten, isRead }) as Use)
})

/** What is wrong with a migration without steps. */
const refuseWhole = (uses: ReadonlyArray<Use>) =>
  uses.flatMap(({ isLocked, isRead, table }) => [
    ...(isLocked ? [`locks ${table}`] : []),
    ...(isRead ? [`reads all of ${table}`] : [])
  ])

/** Tables that have a few thousand rows at most. */
const small = new Set(["api_keys", "policies"])

/** What is wrong with a step. It may lock a table for a moment, or read all of it without a lock. */
const refuseStep = (uses: ReadonlyArray<Use>) =>
  uses.flatMap(({ isLocked, isRead, isWritten, table }) =>
    isRead && (isLocked || isWritten) && !small.has(table) ? [`locks ${table} while it reads all of it`] : []
  )

/** Applies a migration; returns what is wrong with it. */
const faultsOf = Effect.fnUntraced(function* (session: ServerSession, { name, steps, text }: Migration) {
  const uses = (part: string) => usesOf(session, executeAll(session, part, 0))
  if (steps === undefined) return refuseWhole(yield* uses(text)).map((fault) => `${name} ${fault}`)
  const faults: Array<string> = []
  for (const [index, step] of steps.entries()) {
    if (/INDEX CONCURRENTLY/.test(step)) yield* session.values(step)
    else faults.push(...refuseStep(yield* uses(step)).map((fault) => `${name}, step ${index + 1}, ${fault}`))
  }
  return faults
})

/** Earlier migrations ran before the first release, and have their own notes in docs/OPERATIONS.md. */
const firstInSteps = "0010"
/** The migrations that are interrupted below. */
const interrupted = "0012"

const layerQuiet = Layer.succeed(References.MinimumLogLevel, "None")

layer(Layer.merge(NodeServices.layer, layerQuiet), { excludeTestServices: true, timeout: 120_000 })(
  "the migrations of a database in use",
  (it) => {
    it.effect("have steps if they lock or read a table that exists, and no step does both", () =>
      Effect.gen(function* () {
        const session = yield* openSession(yield* before(firstInSteps))
        const faults: Array<string> = []
        for (const migration of (yield* migrations).filter(({ name }) => name > firstInSteps)) {
          faults.push(...(yield* faultsOf(session, migration)))
        }
        assert.deepStrictEqual(faults, [], 'write steps: see CONTRIBUTING.md, "Migrations"')
      }).pipe(Effect.scoped)
    )

    it.effect("are refused by that test for each thing that needs steps", () =>
      Effect.gen(function* () {
        const session = yield* openSession(yield* before(firstInSteps))
        const faults = (text: string, steps?: ReadonlyArray<string>) => faultsOf(session, { name: "it", text, steps })
        assert.deepStrictEqual(yield* faults("CREATE TABLE a (b text); CREATE INDEX a_b ON a (b)"), [])
        assert.deepStrictEqual(yield* faults("ALTER TABLE customers ADD COLUMN a text"), ["it locks customers"])
        assert.deepStrictEqual(yield* faults("CREATE INDEX a_1 ON licenses (status)"), [
          "it locks licenses",
          "it reads all of licenses"
        ])
        assert.deepStrictEqual(yield* faults("CREATE TABLE c (d text REFERENCES products)"), ["it locks products"])
        assert.deepStrictEqual(yield* faults("UPDATE orders SET status = 'paid'"), ["it reads all of orders"])
        const check = "ALTER TABLE devices ADD CONSTRAINT a CHECK (hostname <> 'a')"
        assert.deepStrictEqual(
          yield* faults("", [`${check} NOT VALID`, "ALTER TABLE devices VALIDATE CONSTRAINT a"]),
          []
        )
        const wrong = [
          check.replace(" a ", " b "),
          "CREATE INDEX a_2 ON licenses (status)",
          "UPDATE orders SET id = id"
        ]
        assert.deepStrictEqual(yield* faults("", wrong), [
          "it, step 1, locks devices while it reads all of it",
          "it, step 2, locks licenses while it reads all of it",
          "it, step 3, locks orders while it reads all of it"
        ])
      }).pipe(Effect.scoped)
    )

    it.effect("let writers pass while a long transaction holds a table, and continue where they were interrupted", () =>
      Effect.gen(function* () {
        const url = yield* before(interrupted)
        const sql = yield* clientOf(url)
        const at = "timestamptz '2026-01-02Z'"
        for (const row of [
          `products (id, name, code, metadata, created_at, updated_at) VALUES ('p', 'P', 'p', '{}', ${at}, ${at})`,
          `customers (id, name, code, metadata, created_at, updated_at) VALUES ('c', 'C', 'c', '{}', ${at}, ${at})`
        ])
          yield* sql.unsafe(`INSERT INTO ${row}`)
        const session = yield* openSession(url)
        let progress = ""
        for (const table of ["policies", "products", "customers", "licenses", "report_exports", "subscriptions"]) {
          yield* session.values("BEGIN")
          yield* session.values(`UPDATE ${table} SET id = id WHERE false`)
          const migrating = yield* Effect.forkChild(Effect.flip(run({ url })))
          const pid = yield* awaitWaiting(sql, table)
          yield* sql.withTransaction(
            Effect.andThen(sql`SET LOCAL lock_timeout = '10s'`, sql.unsafe(`UPDATE ${table} SET id = id`))
          )
          yield* sql`SELECT pg_terminate_backend(${pid})`
          yield* Fiber.join(migrating)
          yield* session.values("COMMIT")
          const [reached] = yield* sql<{ readonly progress: string }>`
            SELECT (SELECT max(id) FROM schema_migrations) || ' ' || migration || ' ' || steps AS progress FROM migration_progress`
          assert.notStrictEqual(reached?.progress ?? "", progress, table)
          progress = reached?.progress ?? ""
        }
        yield* run({ url })
        const fresh = Context.get(yield* Layer.build(Layer.fresh(Database.layerUrl)), Database)
        const schemaOf = (client: SqlClient.SqlClient) =>
          Effect.provideService(schemaText(), SqlClient.SqlClient, client)
        assert.strictEqual(yield* schemaOf(sql), yield* schemaOf(yield* clientOf(fresh.url)))
      }).pipe(Effect.scoped)
    )
  }
)

/** The session that waits for a lock of the table. */
const awaitWaiting = (sql: SqlClient.SqlClient, table: string) =>
  poll(
    sql<{ readonly pid: number }>`
      SELECT pid FROM pg_locks JOIN pg_stat_activity USING (pid)
      WHERE datname = current_database() AND NOT granted AND relation = to_regclass(${table})`,
    (rows) => rows.length > 0
  ).pipe(Effect.map(([row]) => row!.pid))
