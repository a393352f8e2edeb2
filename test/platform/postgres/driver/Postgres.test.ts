import { assert, layer } from "@effect/vitest"
import { Context, Deferred, Effect, Exit, Fiber, Layer, Random, Redacted } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { int8 } from "../../../../src/platform/postgres/driver/Parameters.ts"
import { Postgres } from "../../../../src/platform/postgres/driver/Postgres.ts"
import { HoldLimit, retryTransaction } from "../../../../src/platform/postgres/driver/Transactions.ts"
import { Database } from "../../../support/database/Database.ts"
import { poll } from "../../../support/rules/Poll.ts"

const reasonOf = (error: SqlError.SqlError) => error.reason._tag

const withShortTimeout = Layer.unwrap(
  Effect.map(Database, ({ url }) => Postgres.layer({ url, maxConnections: 2, statementTimeoutMillis: 100 }))
)

const refusalOf = (address: string) =>
  Layer.build(Postgres.layer({ url: Redacted.make(address) })).pipe(
    Effect.scoped,
    Effect.flip,
    Effect.map(({ message }) => message)
  )

layer(Database.layer)("the database client", (it) => {
  it.effect("sets the limits of its sessions", () =>
    Effect.gen(function* () {
      const { url } = yield* Database
      const context = yield* Layer.build(Layer.fresh(Postgres.layer({ url, maxConnections: 4 }))).pipe(
        // As in the service.
        Effect.provideService(HoldLimit, HoldLimit.defaultValue())
      )
      const sql = Context.get(context, SqlClient.SqlClient)
      const { pipelined } = Context.get(context, Postgres)
      const limits = sql`
        SELECT current_setting('statement_timeout') AS statement, current_setting('TimeZone') AS zone,
          current_setting('lock_timeout') AS lock, current_setting('application_name') AS name,
          current_setting('idle_in_transaction_session_timeout') AS idle,
          current_setting('transaction_timeout', true) AS transaction`
      const expected = { statement: "30s", zone: "UTC", lock: "4s", name: "licensing", idle: "1s", transaction: "0" }
      const [row] = yield* limits
      // A server before version 17 has no transaction_timeout.
      const isKnown = row?.["transaction"] !== null
      assert.deepStrictEqual(row, { ...expected, transaction: isKnown ? "0" : null })
      // Commits, which lock licenses and the event counter.
      const [commits] = yield* pipelined(limits)
      assert.deepStrictEqual(commits, { ...expected, lock: "250ms", transaction: isKnown ? "2s" : null })
    })
  )

  it.effect("disables compiled plans regardless of the server's defaults", () =>
    Effect.gen(function* () {
      const { url } = yield* Database
      const sql = yield* SqlClient.SqlClient
      const [{ name } = { name: "" }] = yield* sql<{ readonly name: string }>`SELECT current_database() AS name`
      yield* sql`ALTER DATABASE ${sql(name)} SET jit = on`
      for (const plannerDefaults of [false, true]) {
        const context = yield* Layer.build(Layer.fresh(Postgres.layer({ url, plannerDefaults, maxConnections: 4 })))
        const { customPlanned, inOneWrite } = Context.get(context, Postgres)
        const fresh = Context.get(context, SqlClient.SqlClient)
        const jitSettings: Array<unknown> = [...(yield* fresh`SHOW jit`), ...(yield* customPlanned`SHOW jit`)]
        yield* inOneWrite([Effect.map(fresh`SHOW jit`, (rows) => jitSettings.push(...rows))])
        assert.deepStrictEqual(jitSettings, [{ jit: "off" }, { jit: "off" }, { jit: "off" }])
      }
    })
  )

  it.effect("cancels a statement that runs too long, and continues", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const error = yield* Effect.flip(sql`SELECT pg_sleep(60)`)
      assert.strictEqual(reasonOf(error), "StatementTimeoutError")
      assert.deepStrictEqual(yield* sql`SELECT 1 AS one`, [{ one: 1 }])
    }).pipe(Effect.provide(withShortTimeout))
  )

  it.effect("cancels the statement of an interrupted fiber on the server", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const running = sql`SELECT FROM pg_stat_activity
        WHERE datname = current_database() AND query LIKE 'SELECT pg_sleep(61)%' AND state = 'active'`
      const fiber = yield* Effect.forkChild(sql`SELECT pg_sleep(61)`)
      yield* poll(running, (rows) => rows.length === 1)
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual(yield* running, [])
    })
  )

  it.effect("never reports a transaction as committed if the server rolled it back", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { pipelined } = yield* Postgres
      yield* sql`CREATE TABLE swallowed (a int4)`
      const uncheckedTransaction = Effect.andThen(
        sql`INSERT INTO swallowed VALUES (1)`,
        Effect.ignore(sql`SELECT 1 / 0`)
      )
      for (const transaction of [sql.withTransaction, pipelined]) {
        const error = yield* Effect.flip(transaction(uncheckedTransaction))
        assert.match(error.message, /rolled back/)
      }
      assert.deepStrictEqual(yield* sql`SELECT * FROM swallowed`, [])
    })
  )

  it.effect("runs the statements of a pipelined transaction in the order in which they were started", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { pipelined } = yield* Postgres
      yield* sql`CREATE TABLE ordered (place int8 GENERATED ALWAYS AS IDENTITY, n int4)`
      const numbers = Array.from({ length: 100 }, (_, n) => n)
      const inserted = yield* pipelined(
        Effect.forEach(numbers, (n) => sql<{ n: number }>`INSERT INTO ordered (n) VALUES (${n}) RETURNING n`, {
          concurrency: "unbounded"
        })
      )
      assert.deepStrictEqual(
        inserted.flat().map(({ n }) => n),
        numbers
      )
      const stored = yield* sql<{ n: number }>`SELECT n FROM ordered ORDER BY place`
      assert.deepStrictEqual(
        stored.map(({ n }) => n),
        numbers
      )
    })
  )

  it.effect("rolls back a whole pipelined transaction when one of its statements fails", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { pipelined } = yield* Postgres
      yield* sql`CREATE TABLE undone (n int4 UNIQUE)`
      const error = yield* Effect.forEach([1, 2, 1, 3], (n) => sql`INSERT INTO undone VALUES (${n})`, {
        concurrency: "unbounded"
      }).pipe(pipelined, Effect.flip)
      assert.strictEqual(reasonOf(error), "UniqueViolation")
      assert.deepStrictEqual(yield* sql`SELECT * FROM undone`, [])
    })
  )

  it.effect("commits statements of a single batch in order, and returns each statement's result", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { inOneWrite } = yield* Postgres
      yield* sql`CREATE TABLE whole (place int8 GENERATED ALWAYS AS IDENTITY, n int4, at_once xid8 DEFAULT pg_current_xact_id())`
      const answered: Array<number> = []
      yield* inOneWrite(
        Array.from({ length: 50 }, (_, n) =>
          Effect.map(sql<{ n: number }>`INSERT INTO whole (n) VALUES (${n}) RETURNING n`, ([row]) =>
            answered.push(row!.n)
          )
        )
      )
      const stored = yield* sql<{ n: number; at_once: string }>`SELECT n, at_once::text FROM whole ORDER BY place`
      assert.deepStrictEqual(
        stored.map(({ n }) => n),
        Array.from({ length: 50 }, (_, n) => n)
      )
      assert.deepStrictEqual(
        answered,
        stored.map(({ n }) => n)
      )
      assert.strictEqual(new Set(stored.map((row) => row.at_once)).size, 1)
    })
  )

  it.effect("rolls back a batch when one statement fails, even before it is sent", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { inOneWrite } = yield* Postgres
      yield* sql`CREATE TABLE partial (n int8 UNIQUE)`
      const insert = (n: number) => sql`INSERT INTO partial VALUES (${int8(n)})`
      const refused = yield* Effect.flip(inOneWrite([insert(1), insert(2), insert(1), insert(3)]))
      assert.strictEqual(reasonOf(refused), "UniqueViolation")
      // The driver cannot encode this number, so it never reaches the server.
      const unsent = yield* Effect.flip(inOneWrite([insert(1), insert(2 ** 53), insert(3)]))
      assert.match(unsent.message, /encode/)
      assert.deepStrictEqual(yield* sql`SELECT * FROM partial`, [])
      yield* inOneWrite([insert(1), insert(2)])
      assert.deepStrictEqual(yield* sql`SELECT n FROM partial ORDER BY n`, [{ n: 1 }, { n: 2 }])
    })
  )

  it.effect("retries a transaction that lost a deadlock", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* sql`CREATE TABLE accounts (id int4 PRIMARY KEY, balance int4)`
      yield* sql`INSERT INTO accounts VALUES (1, 0), (2, 0)`
      const locked = [yield* Deferred.make<void>(), yield* Deferred.make<void>()] as const
      const add = (id: number) => sql`UPDATE accounts SET balance = balance + 1 WHERE id = ${id}`
      let attempts = 0
      const incrementBoth = (first: number, ownLock: Deferred.Deferred<void>, other: Deferred.Deferred<void>) =>
        Effect.gen(function* () {
          attempts++
          yield* sql`SET LOCAL deadlock_timeout = '10ms'`
          yield* add(first)
          yield* Deferred.succeed(ownLock, undefined)
          yield* Deferred.await(other)
          yield* add(3 - first)
        }).pipe(sql.withTransaction, retryTransaction)
      yield* Effect.all([incrementBoth(1, locked[0], locked[1]), incrementBoth(2, locked[1], locked[0])], {
        concurrency: 2
      })
      assert.isAbove(attempts, 2)
      assert.deepStrictEqual(yield* sql`SELECT * FROM accounts ORDER BY id`, [
        { id: 1, balance: 2 },
        { id: 2, balance: 2 }
      ])
    })
  )

  it.effect(
    "gives up a transaction after repeated deadlocks without a final pause, and never retries another failure",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const attemptsUntil = (code: string) =>
          Effect.gen(function* () {
            let attempts = 0
            let pauses = 0
            // Only the length of each pause is random there.
            const random = {
              nextIntUnsafe: () => 0,
              nextDoubleUnsafe: () => {
                pauses++
                return 0
              }
            }
            const exit = yield* Effect.suspend(() => {
              attempts++
              return sql.unsafe(`DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '${code}'; END $$`)
            }).pipe(
              sql.withTransaction,
              retryTransaction,
              Effect.provideService(Random.Random, random),
              Effect.withTracerEnabled(false),
              Effect.exit
            )
            assert.isTrue(Exit.isFailure(exit))
            return { attempts, pauses }
          })
        assert.deepStrictEqual(yield* attemptsUntil("40001"), { attempts: 6, pauses: 5 })
        assert.deepStrictEqual(yield* attemptsUntil("23505"), { attempts: 1, pauses: 0 })
      })
  )

  it.effect("reports an unknown database and an invalid address in one line each", () =>
    Effect.gen(function* () {
      const address = new URL(Redacted.value((yield* Database).url))
      address.pathname = "nowhere"
      assert.match(
        yield* refusalOf(address.href),
        /^PostgreSQL at .*\/nowhere cannot be used: database "nowhere" does not exist\. Create the database: CREATE DATABASE/
      )
      assert.match(yield* refusalOf("nowhere"), /^The database address must be a URL/)
    })
  )
})
