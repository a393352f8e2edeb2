// The database client: `SqlClient`, and the service `Postgres` for what SqlClient does not offer. What must stay true: a lost
// connection fails its statements at once and is replaced; every limit is set; and only this file, Pools.ts, Session.ts and
// Parameters.ts depend on the driver.
import type { Duplex } from "node:stream"
import type * as PgClient from "@effect/sql-pg/PgClient"
import * as PgConnection from "@effect/sql-pg/PgConnection"
import { Context, Duration, Effect, Layer, Predicate, Queue, Redacted, Schedule, Schema, Stream } from "effect"
import { Reactivity } from "effect/reactivity"
import { SqlClient, SqlError } from "effect/sql"
import { types } from "./Parameters.ts"
import { commitParameters, makeClients, type PoolUse } from "./Pools.ts"
import { asConnectionError } from "./Session.ts"
import { connector, type Target, targetOf } from "./Socket.ts"
import { holdMillisMax } from "./Transactions.ts"

/** The database cannot serve this process; `message` is one line for the operator. */
export class DatabaseUnavailable extends Schema.TaggedError<DatabaseUnavailable>()("DatabaseUnavailable", {
  message: Schema.String
}) {}

export interface Options {
  readonly url: Redacted.Redacted<string>
  /** The maximum number of connections, a quarter of them for pipelined transactions. Lists add two, each `listen` one. Default 16. */
  readonly maxConnections?: number
  /** The time limit of a statement, 0 = none. Default 30,000. */
  readonly statementTimeoutMillis?: number
  /**
   * A transaction that is idle for longer is ended, because its process may be frozen while others wait for its locks. Default
   * 1,000.
   */
  readonly idleInTransactionMillis?: number
  /** The name of the sessions in pg_stat_activity. Default "licensing". */
  readonly applicationName?: string
  /**
   * Whether the server plans with its own defaults, and each statement for its parameters. For reports, which read many rows; the
   * other statements are index look-ups. Default false.
   */
  readonly plannerDefaults?: boolean
  /** Whether a start waits for a server that cannot be reached until it can. Default: half a minute at most. */
  readonly waitsForServer?: boolean
}

// If a lock is not granted by then, its holder is stuck. Failing frees our own locks.
const lockTimeoutMillis = 4_000
// If the server stays silent for so long beyond a statement's time limit, the connection counts as lost.
const silenceMillis = 10_000

const lookupPlanning = {
  // Every statement of the service is a handful of index look-ups. Plans are cached, and a plan made while a table was
  // small scans the whole table from then on: with 20,000 ledger rows each consume took 80 ms instead of 0.05.
  enable_seqscan: "off",
  enable_hashjoin: "off",
  enable_mergejoin: "off",
  enable_memoize: "off",
  // For the same reason no statement is planned again for its parameters. The server would do so at each use of a statement
  // with arrays, because it knows their lengths then. Appending an event took 125 µs with it, 70 without.
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
      idle_in_transaction_session_timeout: String(options.idleInTransactionMillis ?? holdMillisMax),
      timezone: "UTC",
      // With jit on, the server's default, a consumption waits a third of a second for the compiler: up to PostgreSQL 17 a plan
      // that needs a scan has such a high estimated cost that each of its runs is compiled.
      jit: "off",
      ...(options.plannerDefaults === true ? { plan_cache_mode: "force_custom_plan" } : lookupPlanning)
    },
    types,
    idleTimeout: "5 minutes",
    preparedStatementCacheSize: 256
  }
}

/** "Subscribed" comes first and again after every lost connection: notifications in between are missed. */
export type Listening = { readonly _tag: "Subscribed" } | { readonly _tag: "Notified"; readonly payload: string }

export class Postgres extends Context.Service<
  Postgres,
  {
    /**
     * A transaction like `sql.withTransaction` whose concurrently started statements (`Effect.all` with unbounded
     * concurrency) are sent in one write and run in the order they were started. An interrupted statement is not cancelled
     * on the server; the rollback waits for it.
     */
    pipelined<A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | SqlError.SqlError, R>
    /**
     * Runs a transaction whose statements are all known beforehand: BEGIN, the statements and COMMIT are sent in one write and
     * take one round trip. The server runs them in order. If one fails, it skips the others and rolls back, and the transaction
     * fails with the first failure. It does not join a running transaction and cannot be interrupted. Each statement may read
     * its own result with `Effect.map`; conditions of the transaction are checked in SQL.
     */
    inOneWrite(
      statements: ReadonlyArray<Effect.Effect<unknown, SqlError.SqlError>>
    ): Effect.Effect<void, SqlError.SqlError>
    /** For lists: each statement is planned for its parameters. It does not join a running transaction. */
    readonly customPlanned: SqlClient.SqlClient
    /** The notifications on a channel, over a connection of its own, which is reopened if lost. Never fails. */
    listen(channel: string): Stream.Stream<Listening>
    /** Notifies a channel; inside a transaction at its commit. Payload below 8,000 bytes. */
    notify(channel: string, payload: string): Effect.Effect<void, SqlError.SqlError>
    /** The address of the database, for other connections to it. */
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
  const version = yield* awaitServer(config, target, options.waitsForServer === true ? "365 days" : "30 seconds")
  const { client, pipelined, inOneWrite, customPlanned, pools } = yield* Effect.orDie(
    makeClients(config, options.maxConnections ?? 16, commitParameters(version))
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
      Stream.retry(reconnectSchedule),
      Stream.orDie
    )
  const notify = Effect.fn("Postgres.notify")((channel: string, payload: string) =>
    Effect.asVoid(client`SELECT pg_notify(${channel}, ${payload})`)
  )
  return Context.make(
    Postgres,
    Postgres.of({ pipelined, inOneWrite, customPlanned, listen, notify, url: options.url, pools })
  ).pipe(Context.add(SqlClient.SqlClient, client))
})

/**
 * Opens a connection outside any pool, for what lasts as long as a connection does: a session's lock, a probe. `lost` waits
 * until the server or the network has closed it.
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
    // The driver reports a connection's end only to its listeners.
    const notifications = yield* session.listen("licensing_session")
    return {
      values: (sql: string, parameters: ReadonlyArray<unknown> = []) => session.queryValues(sql, parameters, false),
      lost: Effect.ignore(Effect.forever(Queue.take(notifications)))
    }
  },
  Effect.mapError((error) => (SqlError.isSqlError(error) ? asConnectionError(error) : error))
)

export type ServerSession = Effect.Success<ReturnType<typeof openSession>>

const reconnectSchedule = Schedule.min([Schedule.exponential("200 millis", 1.5), Schedule.spaced("3 seconds")])

const parseTarget = (url: Redacted.Redacted<string>) =>
  Effect.try({
    try: () => targetOf(new URL(Redacted.value(url))),
    catch: () =>
      new DatabaseUnavailable({ message: "The database address is no URL like postgres://user:password@host/name." })
  })

/** The innermost message: the driver's own messages say no more than "Failed to connect". */
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

// A service often starts together with its database, so a refused or lost connection is retried. Returns the
// server's version.
const awaitServer = Effect.fnUntraced(function* (config: ClientConfig, target: Target, longest: Duration.Input) {
  const rows = yield* askServer(config, target).pipe(
    Effect.retry(($) =>
      $(reconnectSchedule).pipe(
        Schedule.upTo({ duration: longest }),
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
  return version
})
