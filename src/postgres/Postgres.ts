// The database client: `SqlClient` for everyone, and the service `Postgres` for what SqlClient does not offer. What must
// stay true: a lost connection fails its statements at once and is replaced; every limit is set; and only this file,
// Pools.ts, Session.ts and Parameters.ts know the driver.
import type { Duplex } from "node:stream"
import type * as PgClient from "@effect/sql-pg/PgClient"
import * as PgConnection from "@effect/sql-pg/PgConnection"
import { Context, Duration, Effect, Layer, Predicate, Queue, Redacted, Schedule, Schema, Stream } from "effect"
import { Reactivity } from "effect/reactivity"
import { SqlClient, SqlError } from "effect/sql"
import { types } from "./Parameters.ts"
import { makeClients, type PoolUse } from "./Pools.ts"
import { asConnectionError } from "./Session.ts"
import { connector, type Target, targetOf } from "./Socket.ts"

/** What a slice needs besides `SqlClient` to write its statements. */

/** The database cannot serve this process; `message` is one line for the operator. */
export class DatabaseUnavailable extends Schema.TaggedError<DatabaseUnavailable>()("DatabaseUnavailable", {
  message: Schema.String
}) {}

export interface Options {
  readonly url: Redacted.Redacted<string>
  /** Connections at most, a quarter of them for pipelined transactions; lists add two, each `listen` one. Default 16. */
  readonly maxConnections?: number
  /** The longest that a statement may run, 0 = for ever. Default 30,000. */
  readonly statementTimeoutMillis?: number
  /** How the sessions show in pg_stat_activity. Default "licensing". */
  readonly applicationName?: string
  /**
   * Whether statements are planned as the server would by itself, each time for its parameters. For reports, which read
   * much; the statements of the service are made for look-ups. Default false.
   */
  readonly plannerDefaults?: boolean
}

// A lock that is not had by then means a stuck holder; failing frees our own locks.
const lockTimeoutMillis = 10_000
// A transaction in which nothing was sent for so long has lost its owner.
const idleInTransactionMillis = 60_000
// After this much silence beyond a statement's own limit the server is taken for gone.
const silenceMillis = 10_000

const lookups = {
  // Every statement of the service is a handful of index look-ups. Plans are cached, and one made while a table was
  // young reads the whole table for ever after: 20,000 ledger rows cost each consume 80 ms instead of 0.05.
  enable_seqscan: "off",
  enable_hashjoin: "off",
  enable_mergejoin: "off",
  enable_memoize: "off",
  // For the same reason no statement is planned again for its parameters: the server would do so at each use of a
  // statement with arrays, whose lengths it counts as knowledge. Appending an event took 125 µs with it, 70 without.
  plan_cache_mode: "force_generic_plan"
}

interface ClientConfig extends PgClient.PgPoolConfig {
  readonly stream: () => Duplex
}

const settings = (options: Options, target: Target): ClientConfig => {
  const statementTimeout = options.statementTimeoutMillis ?? 30_000
  return {
    url: options.url,
    stream: connector(target, statementTimeout === 0 ? 0 : statementTimeout + silenceMillis),
    // Socket.ts ends a connection attempt that gets no answer.
    connectTimeout: Duration.infinity,
    applicationName: options.applicationName ?? "licensing",
    startupParameters: {
      statement_timeout: String(statementTimeout),
      lock_timeout: String(lockTimeoutMillis),
      idle_in_transaction_session_timeout: String(idleInTransactionMillis),
      timezone: "UTC",
      // Where it is on, as servers have it unless told otherwise, a consumption waits a third of a second for the compiler: up
      // to PostgreSQL 17 a plan that cannot do without a scan costs so much on paper that each of its runs is compiled.
      jit: "off",
      ...(options.plannerDefaults === true ? { plan_cache_mode: "force_custom_plan" } : lookups)
    },
    types,
    idleTimeout: "5 minutes",
    preparedStatementCacheSize: 256
  }
}

/** "Subscribed" comes first and again after every lost connection: whatever was announced in between has been missed. */
export type Listening = { readonly _tag: "Subscribed" } | { readonly _tag: "Notified"; readonly payload: string }

export class Postgres extends Context.Service<
  Postgres,
  {
    /**
     * A transaction like `sql.withTransaction` whose concurrently started statements (`Effect.all` with unbounded
     * concurrency) travel in one write and run in the order they were started. An interrupted statement is not cancelled
     * on the server; the rollback waits for it.
     */
    pipelined<A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | SqlError.SqlError, R>
    /**
     * A transaction that is known as a whole beforehand: BEGIN, its statements and COMMIT travel in one write and cost one
     * round trip. The server runs them in their order; after one that fails it skips the others and rolls back, and the first
     * failure is the transaction's. It takes no part in a running transaction and cannot be interrupted. Answers are for the
     * statements themselves to look at, with `Effect.map`: what must hold is demanded in SQL.
     */
    atOnce(statements: ReadonlyArray<Effect.Effect<unknown, SqlError.SqlError>>): Effect.Effect<void, SqlError.SqlError>
    /** For lists: each statement is planned for the values that it is given. It takes no part in a running transaction. */
    readonly planned: SqlClient.SqlClient
    /** What is announced on a channel, over a connection of its own, through lost connections. Never fails. */
    listen(channel: string): Stream.Stream<Listening>
    /** Announces on a channel; inside a transaction at its commit. Payload below 8,000 bytes. */
    notify(channel: string, payload: string): Effect.Effect<void, SqlError.SqlError>
    /** What the connections lead to, for whoever needs others to the same database. */
    readonly url: Redacted.Redacted<string>
    /** For metrics; each changes as its pool is used. */
    readonly pools: ReadonlyArray<PoolUse>
  }
>()("licensing/postgres/Postgres") {
  static readonly layer = (options: Options): Layer.Layer<Postgres | SqlClient.SqlClient, DatabaseUnavailable> =>
    Layer.effectContext(makeServices(options)).pipe(Layer.provide(Reactivity.layer))
}

const makeServices = Effect.fnUntraced(function* (options: Options) {
  const target = yield* parseTarget(options.url)
  const config = settings(options, target)
  yield* awaitServer(config, target)
  const { client, pipelined, atOnce, planned, pools } = yield* Effect.orDie(
    makeClients(config, options.maxConnections ?? 16)
  )

  const subscribe = (channel: string) =>
    PgConnection.make(config).pipe(
      Effect.flatMap((connection) => connection.listen(channel)),
      Effect.map((queue) =>
        Stream.concat(
          Stream.succeed<Listening>({ _tag: "Subscribed" }),
          Stream.map(Stream.fromQueue(queue), ({ payload }): Listening => ({ _tag: "Notified", payload }))
        )
      ),
      Stream.unwrap
    )
  const listen = (channel: string) =>
    subscribe(channel).pipe(
      Stream.tapError((error) => Effect.logWarning(`Listening on ${channel} is interrupted: ${reasonOf(error)}`)),
      Stream.retry(patiently),
      Stream.orDie
    )
  const notify = Effect.fn("Postgres.notify")((channel: string, payload: string) =>
    Effect.asVoid(client`SELECT pg_notify(${channel}, ${payload})`)
  )
  return Context.make(
    Postgres,
    Postgres.of({ pipelined, atOnce, planned, listen, notify, url: options.url, pools })
  ).pipe(Context.add(SqlClient.SqlClient, client))
})

/**
 * One connection of its own outside any pool, for what lives as long as a connection does: a session's lock, a probe.
 * `lost` waits until the server or the network has ended it.
 */
export const openSession = Effect.fnUntraced(
  function* (url: Redacted.Redacted<string>) {
    const target = yield* parseTarget(url)
    const connection = yield* PgConnection.make({
      url,
      stream: connector(target, 0),
      connectTimeout: Duration.infinity,
      applicationName: "licensing",
      types
    })
    const session = yield* connection.pin
    // The driver reports a connection's end only to what listens on it.
    const announced = yield* session.listen("licensing_session")
    return {
      values: (sql: string, parameters: ReadonlyArray<unknown> = []) => session.queryValues(sql, parameters, false),
      lost: Effect.ignore(Effect.forever(Queue.take(announced)))
    }
  },
  Effect.mapError((error) => (SqlError.isSqlError(error) ? asConnectionError(error) : error))
)

const patiently = Schedule.min([Schedule.exponential("200 millis", 1.5), Schedule.spaced("3 seconds")])

const parseTarget = (url: Redacted.Redacted<string>) =>
  Effect.try({
    try: () => targetOf(new URL(Redacted.value(url))),
    catch: () =>
      new DatabaseUnavailable({ message: "The database address is no URL like postgres://user:password@host/name." })
  })

/** The innermost message: the driver's own say "Failed to connect" and the like. */
const reasonOf = ({ reason }: SqlError.SqlError): string =>
  Predicate.hasProperty(reason.cause, "message") && reason.cause.message
    ? String(reason.cause.message)
    : (reason.message ?? reason._tag)

const versionMin = 15
const encodingNeeded = "UTF8"

/** Whether a server's first bytes are PostgreSQL's: S, N or an error to a request for TLS, else a message of the startup. */
const isPostgres = (bytes: Uint8Array, tls: boolean): boolean => {
  const first = String.fromCharCode(bytes[0] ?? 0)
  return tls ? first === "E" || (bytes.length === 1 && "SN".includes(first)) : "REvN".includes(first)
}
const notPostgres = new SqlError.SqlError({
  reason: new SqlError.UnknownError({ cause: new Error("The server that answers there is no PostgreSQL") })
})

const networkError = /^(EAI_AGAIN|E(?!PROTO$)[A-Z0-9]+)$/

/** Whether the same address may work later: nothing listens there, or the server is starting, stopping or full. */
const isTransient = ({ reason: { _tag, cause, message } }: SqlError.SqlError): boolean =>
  _tag === "ConnectionError" &&
  (Predicate.hasProperty(cause, "severity") ||
    (Predicate.hasProperty(cause, "code") && networkError.test(String(cause.code))) ||
    message === "PgConnection: Connection closed during startup")

/** Asks a server what it is. Others may send anything and then nothing, so they are known by their first bytes. */
const askServer = (config: ClientConfig, { tls }: Target) =>
  Effect.suspend(() => {
    let foreign = false
    const stream = () =>
      config.stream().once("data", function (this: Duplex, bytes: Uint8Array) {
        foreign = !isPostgres(bytes, tls)
        if (foreign) this.destroy()
      })
    return PgConnection.make({ ...config, stream }).pipe(
      Effect.flatMap((connection) =>
        connection.queryValues(
          "SELECT current_setting('server_version_num')::int4 / 10000, current_setting('server_encoding')"
        )
      ),
      Effect.scoped,
      Effect.mapError((error) => (foreign ? notPostgres : asConnectionError(error)))
    )
  })

// A service often starts together with its database, so a refused or lost connection is tried again for half a minute.
const awaitServer = Effect.fnUntraced(function* (config: ClientConfig, target: Target) {
  const rows = yield* askServer(config, target).pipe(
    Effect.retry(($) =>
      $(patiently).pipe(
        Schedule.upTo({ duration: "30 seconds" }),
        Schedule.while(({ input }) => isTransient(input)),
        Schedule.tap(({ input }) =>
          Effect.logWarning(`PostgreSQL at ${target.name} cannot be reached yet, trying again: ${reasonOf(input)}`)
        )
      )
    ),
    Effect.mapError(
      (error) => new DatabaseUnavailable({ message: `PostgreSQL at ${target.name} cannot be used: ${reasonOf(error)}` })
    )
  )
  const [version, encoding] = [Number(rows[0]?.[0]), String(rows[0]?.[1])]
  if (!(version >= versionMin)) {
    return yield* new DatabaseUnavailable({
      message: `PostgreSQL at ${target.name} has version ${version}; version ${versionMin} or newer is needed.`
    })
  }
  // In any other encoding a name with letters that it lacks could not be stored.
  if (encoding !== encodingNeeded) {
    return yield* new DatabaseUnavailable({
      message:
        `PostgreSQL at ${target.name} has the encoding ${encoding}; the service needs ${encodingNeeded}. ` +
        "Make the database anew with `createdb -E UTF8 -T template0`."
    })
  }
})
