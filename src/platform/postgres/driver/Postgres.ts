// The database client: `SqlClient`, and the service `Postgres` for functions that SqlClient lacks. What must stay true: a lost
// connection fails its statements at once and is replaced; every limit is set; and only this file, Hosts.ts, Pools.ts, Session.ts
// and Parameters.ts depend on the driver.
import { readFileSync } from "node:fs"
import * as PgConnection from "@effect/sql-pg/PgConnection"
import { Context, Duration, Effect, Layer, Queue, Redacted, Schedule, Schema } from "effect"
import * as Reactivity from "effect/reactivity/Reactivity"
import { SqlClient, SqlError } from "effect/sql"
import { addressOf } from "../../config/DatabaseAddress.ts"
import { type ConnectionOptions, type Hosts, isTransient, makeHosts, reasonOf, takesNoWrites } from "./Hosts.ts"
import { types } from "./Parameters.ts"
import { commitParameters, makeClients, type PoolUse } from "./Pools.ts"
import { withRemedy } from "./Remedies.ts"
import { asConnectionError } from "./Session.ts"
import { HoldLimit } from "./Transactions.ts"

/** The database cannot serve this process; `message` is one line for the operator. */
export class DatabaseUnavailable extends Schema.TaggedError<DatabaseUnavailable>()("DatabaseUnavailable", {
  message: Schema.String
}) {}

export interface Options {
  readonly url: Redacted.Redacted<string>
  /** The maximum number of connections, a quarter of them for pipelined transactions. Lists add two. Default 16. */
  readonly maxConnections?: number
  /** The time limit of a statement, 0 = none. Default 30,000. */
  readonly statementTimeoutMillis?: number
  /**
   * The time after which an idle transaction is ended, because its process may be frozen while others wait for its locks. Default
   * `HoldLimit`.
   */
  readonly idleInTransactionMillis?: number
  /** The name of the sessions in pg_stat_activity. Default "licensing". */
  readonly applicationName?: string
  /**
   * Whether the server uses its planner defaults, and plans each statement for its parameters. Reports need this, because they read
   * many rows; the other statements are index look-ups. Default false.
   */
  readonly plannerDefaults?: boolean
  /** The setting of a replica, for messages. Default: this is the database itself. */
  readonly replicaSetting?: string
  /** While no server can be reached, a start waits without a limit, or continues. Default: it fails after half a minute. */
  readonly unreachable?: "wait" | "continue"
}

// A holder that keeps a lock for longer is stuck. Failing releases the locks of this transaction.
const lockTimeoutMillis = 4_000
// If the server stays silent for this long after a statement's time limit, the connection counts as lost.
const silenceMillis = 10_000

const lookupPlanning = {
  // Every statement of the service consists of a few index look-ups. Plans are cached, and a plan made while a table was small
  // would scan the whole table later: with 20,000 ledger rows each consume took 80 ms instead of 0.05.
  enable_seqscan: "off",
  enable_hashjoin: "off",
  enable_mergejoin: "off",
  enable_memoize: "off",
  // For the same reason statements are not planned again for their parameters. The server would plan statements with arrays at
  // each use, because it then knows their lengths. Appending an event took 125 µs with this, 70 without.
  plan_cache_mode: "force_generic_plan"
}

const connectionOptions = (options: Options, holdLimit: number): ConnectionOptions => ({
  // Socket.ts ends a connection attempt that gets no answer.
  connectTimeout: Duration.infinity,
  applicationName: options.applicationName ?? "licensing",
  startupParameters: {
    statement_timeout: String(statementTimeoutOf(options)),
    lock_timeout: String(lockTimeoutMillis),
    idle_in_transaction_session_timeout: String(options.idleInTransactionMillis ?? holdLimit),
    timezone: "UTC",
    // With the server's default (on), a consumption waits a third of a second for the compiler: up to PostgreSQL 17 the estimated
    // cost of a plan with a scan is so high that each run is compiled.
    jit: "off",
    ...(options.plannerDefaults === true ? { plan_cache_mode: "force_custom_plan" } : lookupPlanning)
  },
  types,
  idleTimeout: "5 minutes",
  preparedStatementCacheSize: 256
})

const statementTimeoutOf = ({ statementTimeoutMillis = 30_000 }: Options): number => statementTimeoutMillis

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
     * Runs a transaction whose statements are all known in advance: BEGIN, the statements and COMMIT are sent in one write and take
     * one round trip. The server runs them in order. If one fails, the server skips the others and rolls back, and the transaction
     * fails with the first failure. It does not join a running transaction and cannot be interrupted. Each statement may read its
     * own result with `Effect.map`; conditions of the transaction are checked in SQL.
     */
    inOneWrite(
      statements: ReadonlyArray<Effect.Effect<unknown, SqlError.SqlError>>
    ): Effect.Effect<void, SqlError.SqlError>
    /** For lists: each statement is planned for its parameters. It does not join a running transaction. */
    readonly customPlanned: SqlClient.SqlClient
    /** The address of the database, for other connections to it. */
    readonly url: Redacted.Redacted<string>
    /** For metrics; each changes as its pool is used. */
    readonly pools: ReadonlyArray<PoolUse>
  }
>()("licensing/platform/postgres/driver/Postgres") {
  static readonly layer = (options: Options): Layer.Layer<Postgres | SqlClient.SqlClient, DatabaseUnavailable> =>
    Layer.effectContext(makeServices(options)).pipe(Layer.provide(Reactivity.layer))
}

const makeServices = Effect.fnUntraced(function* (options: Options) {
  const { address, tls } = yield* parseAddress(options.url)
  const holdLimit = yield* HoldLimit
  const common = { ...connectionOptions(options, holdLimit), ...tls }
  const statementTimeout = statementTimeoutOf(options)
  const hosts = makeHosts(address, common, statementTimeout === 0 ? 0 : statementTimeout + silenceMillis)
  const version = yield* awaitServer(hosts, address.name, options)
  if (hosts.isFollowed) yield* Effect.forkScoped(hosts.follow)
  const configure = configureFor(hosts, common)
  const { client, pipelined, inOneWrite, customPlanned, pools } = yield* Effect.orDie(
    makeClients(configure, options.maxConnections ?? 16, commitParameters(version, holdLimit))
  )
  const postgres = Postgres.of({ pipelined, inOneWrite, customPlanned, url: options.url, pools })
  return Context.make(Postgres, postgres).pipe(Context.add(SqlClient.SqlClient, client))
})

/** Adds options to those of all connections. Each new connection reads the URL again, because the host may change. */
const configureFor =
  (hosts: Hosts, common: ConnectionOptions) =>
  (more: ConnectionOptions = {}): ConnectionOptions & Pick<PgConnection.Config, "url" | "stream"> => ({
    ...common,
    ...more,
    startupParameters: { ...common.startupParameters, ...more.startupParameters },
    stream: hosts.stream,
    get url() {
      return hosts.url()
    }
  })

/** Opens a connection outside any pool. Its only limits are those in its options. */
export const openConnection = Effect.fnUntraced(
  function* (url: Redacted.Redacted<string>, options: ConnectionOptions = {}) {
    const { address, tls } = yield* parseAddress(url)
    const common = { connectTimeout: Duration.infinity, applicationName: "licensing", types, ...tls, ...options }
    const hosts = makeHosts(address, common, 0)
    if (hosts.isFollowed) yield* hosts.choose
    const connection = yield* PgConnection.make(configureFor(hosts, common)())
    return yield* connection.pin
  },
  Effect.mapError((error) => (SqlError.isSqlError(error) ? asConnectionError(error) : error))
)

/**
 * Opens a connection for a session's lock or for a probe. `lost` waits until the server or the network closes it. A standby refuses
 * such a session.
 */
export const openSession = Effect.fnUntraced(
  function* (url: Redacted.Redacted<string>) {
    const session = yield* openConnection(url, { applicationName: "licensing-session" })
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

/** The address, and the authorities that it names: without them Node's own, and those of NODE_EXTRA_CA_CERTS. */
const parseAddress = Effect.fnUntraced(function* (url: Redacted.Redacted<string>) {
  const address = addressOf(Redacted.value(url))
  if (address === undefined) {
    return yield* new DatabaseUnavailable({
      message: "The database address must be a URL like postgres://user:password@host/name."
    })
  }
  const { authorities } = address
  if (authorities === undefined) return { address, tls: {} }
  const ca = yield* Effect.try({
    try: () => readFileSync(authorities),
    catch: (error) =>
      new DatabaseUnavailable({
        message: `The file of sslrootcert in the database address cannot be read (${(error as NodeJS.ErrnoException).code}): ${authorities}`
      })
  })
  return { address, tls: { ssl: { ca } } }
})

export const versionMin = 15
export const encodingNeeded = "UTF8"
export const encodingRemedy = "Create the database again with `createdb -E UTF8 -T template0`."

// A service often starts together with its database, so a refused or lost connection is retried. Returns the
// server's version, 0 if a start continues without one.
const awaitServer = Effect.fnUntraced(function* (
  hosts: Hosts,
  host: string,
  { replicaSetting, unreachable }: Pick<Options, "replicaSetting" | "unreachable">
) {
  const name = replicaSetting === undefined ? host : `${host} (${replicaSetting})`
  // A start writes, and a standby may be promoted.
  const writable = Effect.filterOrFail(
    hosts.choose,
    ({ takesWrites }) => takesWrites || replicaSetting !== undefined,
    () => takesNoWrites
  )
  const retried = Effect.retry(writable, ($) =>
    $(reconnectSchedule).pipe(
      Schedule.upTo({ duration: unreachable === "wait" ? "365 days" : "30 seconds" }),
      Schedule.while(({ input }) => isTransient(input)),
      Schedule.tap(({ input }) =>
        Effect.logWarning(`PostgreSQL at ${name} cannot be reached yet; retrying: ${reasonOf(input)}`)
      )
    )
  )
  const once = Effect.catchIf(hosts.choose, isTransient, (error) =>
    Effect.as(
      Effect.logWarning(`PostgreSQL at ${name} cannot be reached; starting without it: ${reasonOf(error)}`),
      undefined
    )
  )
  const facts = yield* Effect.mapError(
    unreachable === "continue" ? once : retried,
    (error) =>
      new DatabaseUnavailable({ message: `PostgreSQL at ${name} cannot be used: ${withRemedy(error, replicaSetting)}` })
  )
  if (facts === undefined) return 0
  const { encoding, version } = facts
  if (!(version >= versionMin)) {
    return yield* new DatabaseUnavailable({
      message: `PostgreSQL at ${name} has version ${version}; version ${versionMin} or newer is needed.`
    })
  }
  // Other encodings cannot store all names.
  if (encoding !== encodingNeeded) {
    return yield* new DatabaseUnavailable({
      message:
        `PostgreSQL at ${name} has the encoding ${encoding}; the service needs ${encodingNeeded}. ` +
        (replicaSetting === undefined ? encodingRemedy : `Point ${replicaSetting} at a replica of the database.`)
    })
  }
  return version
})
