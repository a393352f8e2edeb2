/** A separate database for each test file, copied from the migrated template and dropped at the end; a connection to it that a test can cut. */

import { connect, createServer, type Socket } from "node:net"
import { Context, Deferred, Effect, Fiber, Layer, Redacted } from "effect"
import { Hex } from "effect/encoding"
import { SqlClient, type SqlError } from "effect/sql"
import { inject } from "vitest"
import { openSession, Postgres } from "../../../src/platform/postgres/driver/Postgres.ts"
import { HoldLimit } from "../../../src/platform/postgres/driver/Transactions.ts"
import { poll } from "../rules/Poll.ts"

/**
 * On a busy machine a test's process may stand still for seconds, which the service takes for frozen after one. What tests that,
 * starts processes.
 */
export const patientMillis = 30_000
export const layerPatient = Layer.succeed(HoldLimit, patientMillis)

const createDatabase = (template: () => string) =>
  Effect.gen(function* () {
    const name = `licensing_test_${Hex.random(12)}`
    const server = new URL(inject("database").url)
    const admin = yield* openSession(Redacted.make(server.href))
    yield* Effect.acquireRelease(
      admin.values(`CREATE DATABASE ${name} TEMPLATE ${template()} STRATEGY FILE_COPY`),
      () => admin.values(`DROP DATABASE ${name} WITH (FORCE)`).pipe(Effect.orDie)
    )
    server.pathname = name
    return { url: Redacted.make(server.href) }
  }).pipe(Effect.orDie)

export class Database extends Context.Service<
  Database,
  {
    readonly url: Redacted.Redacted<string>
  }
>()("licensing/test/Database") {
  /** Only the address of a database with every table and no rows. */
  static readonly layerUrl: Layer.Layer<Database> = Layer.effect(
    Database,
    createDatabase(() => inject("database").template)
  )

  /** Only the address of a database without tables. */
  static readonly layerUrlEmpty: Layer.Layer<Database> = Layer.effect(
    Database,
    createDatabase(() => "template0")
  )

  /** Only the address of a database without tables, whose encoding the service cannot use. */
  static readonly layerUrlLatin1: Layer.Layer<Database> = Layer.effect(
    Database,
    createDatabase(() => "template0 ENCODING 'LATIN1' LOCALE_PROVIDER libc LOCALE 'C'")
  )

  /** The clients of a database with every table and no rows. */
  static readonly layer = Database.clientsOver(Database.layerUrl)

  static clientsOver<A>(database: Layer.Layer<A | Database>) {
    return Layer.unwrap(
      Effect.map(Database, ({ url }) => Layer.orDie(Postgres.layer({ url, maxConnections: 8 })))
    ).pipe(Layer.provideMerge(database), Layer.provideMerge(layerPatient))
  }
}

export class DatabaseProxy extends Context.Service<
  DatabaseProxy,
  {
    /** Closes every connection and refuses new ones. */
    readonly disconnect: Effect.Effect<void>
    readonly reconnect: Effect.Effect<void>
    /** Holds back all bytes, as a database that hangs. */
    readonly freeze: Effect.Effect<void>
    readonly thaw: Effect.Effect<void>
  }
>()("licensing/test/DatabaseProxy") {
  /** A new database behind the proxy. */
  static readonly layer = DatabaseProxy.layerOf(Database.layerUrl)

  /** The same with its clients. */
  static readonly layerClients = Database.clientsOver(DatabaseProxy.layer)

  /** A database without tables behind the proxy. */
  static readonly layerEmpty = DatabaseProxy.layerOf(Database.layerUrlEmpty)

  private static layerOf(database: Layer.Layer<Database>): Layer.Layer<DatabaseProxy | Database> {
    return Layer.effectContext(
      Effect.gen(function* () {
        const { url } = yield* Database
        const address = new URL(Redacted.value(url))
        const [host, port] = [address.hostname, Number(address.port)]
        const sockets = new Set<Socket>()
        let held: Array<() => void> | undefined
        const server = createServer((near) => {
          const far = connect(port, host)
          for (const [socket, other] of [
            [near, far],
            [far, near]
          ] as const) {
            sockets.add(socket)
            socket.on("error", () => {})
            socket.on("close", () => {
              sockets.delete(socket)
              other.destroy()
            })
            socket.on("data", (bytes) =>
              held === undefined ? other.write(bytes) : held.push(() => other.write(bytes))
            )
          }
        })
        const listen = (at: number) =>
          Effect.callback<void>((resume) => void server.listen(at, "127.0.0.1", () => resume(Effect.void)))
        const disconnect = Effect.callback<void>((resume) => {
          server.close(() => resume(Effect.void))
          for (const socket of sockets) socket.destroy()
        })
        const thaw = Effect.sync(() => {
          const writes = held ?? []
          held = undefined
          for (const write of writes) write()
        })
        const freeze = Effect.sync(() => {
          held ??= []
        })
        yield* listen(0)
        yield* Effect.addFinalizer(() => disconnect)
        const own = (server.address() as { port: number }).port
        address.host = `127.0.0.1:${own}`
        return Context.make(DatabaseProxy, DatabaseProxy.of({ disconnect, reconnect: listen(own), freeze, thaw })).pipe(
          Context.add(Database, Database.of({ url: Redacted.make(address.href) }))
        )
      })
    ).pipe(Layer.provide(database))
  }
}

/** Waits until a session of the test's database waits for a lock that fulfils the condition, and returns its process. */
export const untilBlockedOn = Effect.fnUntraced(function* (condition: string) {
  const sql = yield* SqlClient.SqlClient
  // The server's views also show the sessions of other test files, which run at the same time.
  const blocked = sql<{ pid: number }>`
    SELECT pid FROM pg_locks JOIN pg_stat_activity USING (pid)
    WHERE datname = current_database() AND NOT granted AND ${sql.literal(condition)}`
  const [first] = yield* poll(blocked, (rows) => rows.length > 0)
  return first!.pid
})

export const untilBlocked = untilBlockedOn("TRUE")

let recorded = 0

/**
 * Records the value of a setting in each transaction that changes a table, as "UPDATE ON devices", and returns the values so far.
 * A test of a time limit needs no transaction that takes longer.
 */
export const recordSetting = Effect.fnUntraced(function* (setting: string, change: string) {
  const { url } = yield* Database
  const name = `recorded_${++recorded}`
  const run = (statement: string) => Effect.scoped(Effect.flatMap(openSession(url), ({ values }) => values(statement)))
  yield* run(`CREATE TABLE ${name} (value text)`)
  yield* run(`
    CREATE FUNCTION ${name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      INSERT INTO ${name} VALUES (current_setting('${setting}', true)); RETURN NULL;
    END $$`)
  yield* run(`CREATE TRIGGER ${name} AFTER ${change} FOR EACH STATEMENT EXECUTE FUNCTION ${name}()`)
  const sql = yield* SqlClient.SqlClient
  return Effect.map(sql<{ readonly value: string | null }>`SELECT DISTINCT value FROM ${sql(name)}`, (rows) =>
    rows.map(({ value }) => value)
  )
})

/** Runs a statement that takes a lock, and holds the lock until `release`, longer than the service's own transactions may. */
export const holdLock = Effect.fnUntraced(function* (
  lock: (sql: SqlClient.SqlClient) => Effect.Effect<unknown, SqlError.SqlError>
) {
  const sql = yield* SqlClient.SqlClient
  const [locked, released] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
  const holder = yield* sql`SET LOCAL idle_in_transaction_session_timeout = 0`.pipe(
    Effect.andThen(lock(sql)),
    Effect.andThen(Deferred.succeed(locked, undefined)),
    Effect.andThen(Deferred.await(released)),
    sql.withTransaction,
    Effect.forkChild
  )
  yield* Deferred.await(locked)
  return { release: Effect.andThen(Deferred.succeed(released, undefined), Fiber.join(holder)) }
})
