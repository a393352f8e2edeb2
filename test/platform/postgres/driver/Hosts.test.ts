/** A database address that wants a server which takes writes: what is used when the first host is gone, or takes none. */
import { assert, layer } from "@effect/vitest"
import { Context, Deferred, Effect, Exit, Fiber, Layer, Logger, Predicate, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { inject } from "vitest"
import { openConnection, Postgres } from "../../../../src/platform/postgres/driver/Postgres.ts"
import { Database, DatabaseProxy } from "../../../support/database/Database.ts"
import { poll } from "../../../support/rules/Poll.ts"

const isOne = Effect.map(
  SqlClient.SqlClient.use((sql) => sql<{ one: number }>`SELECT 1 AS one`),
  ([row]) => assert.strictEqual(row?.one, 1)
)
const succeeds = (effect: Effect.Effect<unknown, unknown, SqlClient.SqlClient>) =>
  poll(Effect.exit(effect), Exit.isSuccess)

const wanting = (server: string, text: string) =>
  Redacted.make(`${text}${text.includes("?") ? "&" : "?"}target_session_attrs=${server}`)

/** The proxy, then a port that refuses connections, then the server itself. */
const severalHosts = Effect.map(Database, ({ url }) => {
  const proxied = new URL(Redacted.value(url))
  const direct = new URL(inject("database").url)
  const hosts = `${proxied.host},127.0.0.1:1,${direct.host}`
  return wanting("read-write", Redacted.value(url).replace(proxied.host, hosts))
})

const connect = (url: Redacted.Redacted<string>) =>
  Effect.map(Layer.build(Layer.fresh(Postgres.layer({ url, maxConnections: 4 }))), (built) =>
    Context.get(built, SqlClient.SqlClient)
  )

layer(DatabaseProxy.layer, { excludeTestServices: true, timeout: 60_000 })("an address with several hosts", (it) => {
  it.effect("uses the next host when the first one is gone, and ends what was open to the first", () =>
    Effect.gen(function* () {
      const { disconnect, reconnect } = yield* DatabaseProxy
      const url = yield* severalHosts
      const sql = yield* connect(url)
      const using = Effect.provideService(SqlClient.SqlClient, sql)
      yield* isOne.pipe(using)
      yield* disconnect
      yield* succeeds(isOne).pipe(using)
      yield* reconnect
      yield* isOne.pipe(using)
      yield* disconnect
      yield* isOne.pipe(using)
      const session = yield* openConnection(url)
      assert.deepStrictEqual(yield* session.queryValues("SELECT 1"), [[1]])
      yield* reconnect
    })
  )

  it.effect("ends no connection to a host that is only silent for a while", () =>
    Effect.gen(function* () {
      const { freeze, thaw } = yield* DatabaseProxy
      const { url: proxied } = yield* Database
      const silent = yield* Deferred.make<void>()
      const logger = Logger.make(({ message }) => {
        if (/can be used; retrying: The server (stopped answering|does not answer)$/.test(String(message)))
          Deferred.doneUnsafe(silent, Effect.void)
      })
      const url = wanting("primary", Redacted.value(proxied))
      const sql = yield* Effect.provide(connect(url), Logger.layer([logger]))
      const using = Effect.provideService(SqlClient.SqlClient, sql)
      yield* isOne.pipe(using)
      yield* freeze
      const waiting = yield* Effect.forkChild(isOne.pipe(using), { startImmediately: true })
      yield* Deferred.await(silent)
      yield* thaw
      yield* Fiber.join(waiting)
    })
  )

  it.effect("waits for a host that takes writes, and uses none that takes none", () =>
    Effect.gen(function* () {
      const url = yield* severalHosts
      const { url: plain } = yield* Database
      const admin = yield* openConnection(plain)
      const name = new URL(Redacted.value(plain)).pathname.slice(1)
      // For sessions that begin later.
      const makeReadOnly = (value: "on" | "off") =>
        admin.queryValues(`ALTER DATABASE ${name} SET default_transaction_read_only = ${value}`, [], false)
      yield* makeReadOnly("on")
      const refused = yield* Deferred.make<void>()
      const logger = Logger.make(({ message }) => {
        if (/retrying: .*:1: .*ECONNREFUSED.*; .*: it takes no writes/.test(String(message)))
          Deferred.doneUnsafe(refused, Effect.void)
      })
      const starting = yield* Effect.forkChild(Effect.provide(connect(url), Logger.layer([logger])))
      yield* Deferred.await(refused)
      yield* makeReadOnly("off")
      const using = Effect.provideService(SqlClient.SqlClient, yield* Fiber.join(starting))
      yield* isOne.pipe(using)

      yield* makeReadOnly("on")
      yield* admin.queryValues(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
      )
      yield* Effect.flip(isOne).pipe(
        using,
        Effect.repeat({ until: ({ reason }) => /^No host of .* can be used now$/.test(reasonText(reason.cause)) }),
        Effect.eventually
      )
      yield* makeReadOnly("off")
      yield* succeeds(isOne).pipe(using)
    })
  )
})

const reasonText = (cause: unknown) => (Predicate.hasProperty(cause, "message") ? String(cause.message) : "")
