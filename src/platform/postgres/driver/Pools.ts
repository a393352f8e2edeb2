// The connection pools and their clients. What must stay true: every fiber that waits for a connection is counted, and no pool can
// use the connections of another one.
import * as PgClient from "@effect/sql-pg/PgClient"
import type * as PgConnection from "@effect/sql-pg/PgConnection"
import * as PgPool from "@effect/sql-pg/PgPool"
import { Effect, Exit, Fiber, Redacted } from "effect"
import { SqlClient, type SqlConnection, SqlError } from "effect/sql"
import type { ConnectionOptions } from "./Hosts.ts"
import { asConnectionError, commit, isAlive, Session } from "./Session.ts"

/** The current use of a connection pool. */
export interface PoolUse {
  readonly name: string
  /** The maximum number of connections. */
  readonly max: number
  readonly inUse: number
  /** Fibers that wait for a connection. */
  readonly waiting: number
}

// The filter of a list matches many rows or few. A plan that suits one value reads the whole table for another.
const customPlans = { plan_cache_mode: "force_custom_plan" }
const customPlanConnectionsMax = 2

// After a longer wait, the Journal commits without the locked row.
const commitLockTimeoutMillis = 250
const transactionTimeoutVersion = 17

/** The settings of connections for pipelined transactions, which lock licenses and the event counter. */
export const commitParameters = (serverVersion: number, holdLimit: number): Readonly<Record<string, string>> => ({
  lock_timeout: String(commitLockTimeoutMillis),
  // Such a transaction takes milliseconds. This also ends one whose process stopped within a message, which does not count as idle.
  ...(serverVersion >= transactionTimeoutVersion && { transaction_timeout: String(2 * holdLimit) })
})

type SpanAttributes = ReadonlyArray<readonly [name: string, value: string]>

/** The attributes of OpenTelemetry's spans of statements. */
const spanAttributesOf = ({ url }: PgClient.PgPoolConfig): SpanAttributes => {
  const database = url && URL.parse(Redacted.value(url))?.pathname.slice(1)
  return [
    ["db.system.name", "postgresql"],
    ...(database ? [["db.namespace", decodeURIComponent(database)] as const] : [])
  ]
}

/**
 * The clients of one database, and the use of their pools. A connection serves one borrower at a time. Sharing one between fibers
 * would be three times faster for short reads, but a slow report would delay the commits behind it, and an abandoned statement
 * could not be cancelled. Only the statements of one pipelined transaction share a connection, from a separate pool.
 */
export const makeClients = Effect.fnUntraced(function* (
  configure: (more: ConnectionOptions) => PgClient.PgPoolConfig,
  connectionsMax: number,
  commitParameters: Readonly<Record<string, string>>
) {
  const pipelinedMax = Math.ceil(connectionsMax / 4)
  const poolMax = Math.max(1, connectionsMax - pipelinedMax)
  const pool = countUses("statements", poolMax, yield* PgPool.make(configure({ maxConnections: poolMax })))
  const pipelinedPool = countUses(
    "commits",
    pipelinedMax,
    yield* PgPool.make(
      configure({
        startupParameters: commitParameters,
        multiplex: true,
        multiplexConcurrency: 1,
        maxConnections: pipelinedMax
      })
    )
  )
  const spanAttributes = spanAttributesOf(configure({}))
  const client = yield* clientOf(pool, spanAttributes)
  const run = (sql: string) => (connection: SqlConnection.Connection) => connection.execute(sql, [], undefined)
  const cleanup = (sql: string) => (connection: SqlConnection.Connection) =>
    isAlive(connection) ? run(sql)(connection) : Effect.void
  const pipelined = SqlClient.makeWithTransaction({
    transactionService: client.transactionService,
    spanAttributes,
    acquireConnection: (restore) => restore(toSession(pipelinedPool.get)),
    // BEGIN is sent together with the first statement. If it fails, that statement fails as well.
    begin: (connection, statement) =>
      Effect.asVoid(Effect.forkChild(run(statement ?? "BEGIN")(connection), { startImmediately: true })),
    commit,
    rollback: cleanup("ROLLBACK"),
    savepoint: (connection, id) => run(`SAVEPOINT effect_sql_${id}`)(connection),
    releaseSavepoint: (connection, id) => cleanup(`RELEASE SAVEPOINT effect_sql_${id}`)(connection),
    rollbackSavepoint: (connection, id) => cleanup(`ROLLBACK TO SAVEPOINT effect_sql_${id}`)(connection)
  })
  const inOneWrite = Effect.fnUntraced(
    function* (statements: ReadonlyArray<Effect.Effect<unknown, SqlError.SqlError>>) {
      const connection = yield* toSession(pipelinedPool.get)
      const send = (statement: Effect.Effect<unknown, SqlError.SqlError>) =>
        Effect.forkChild(Effect.provideService(statement, client.transactionService, [connection, 0]), {
          startImmediately: true
        })
      const sent = [yield* send(run("BEGIN")(connection))]
      for (const statement of statements) sent.push(yield* send(statement))
      // A statement that could not be sent has already failed. The others must not be committed without it.
      const unsent = sent.some((fiber) => fiber.pollUnsafe()?._tag === "Failure")
      sent.push(yield* send(unsent ? cleanup("ROLLBACK")(connection) : commit(connection)))
      const exits = yield* Effect.forEach(sent, Fiber.await)
      const failed = exits.find(Exit.isFailure)
      if (failed !== undefined) return yield* failed
    },
    Effect.scoped,
    Effect.uninterruptible
  )
  const customPlanPool = countUses(
    "lists",
    customPlanConnectionsMax,
    yield* PgPool.make(configure({ startupParameters: customPlans, maxConnections: customPlanConnectionsMax }))
  )
  return {
    client,
    pipelined,
    inOneWrite,
    customPlanned: yield* clientOf(customPlanPool, spanAttributes),
    pools: [pool.used, pipelinedPool.used, customPlanPool.used]
  }
})

const toSession = Effect.mapBoth({
  onSuccess: (connection: PgConnection.PgConnection) => new Session(connection),
  onFailure: asConnectionError
})

const clientOf = (pool: ReturnType<typeof countUses>, spanAttributes: SpanAttributes) =>
  SqlClient.make({
    acquirer: toSession(pool.get),
    transactionAcquirer: toSession(pool.reserve),
    borrower: (use) =>
      Effect.mapError(
        pool.use((connection) => use(new Session(connection))),
        (error) => (SqlError.isSqlError(error) ? asConnectionError(error) : error)
      ),
    compiler: PgClient.makeCompiler(),
    driver: "pg",
    prepareTransactionControls: true,
    releaseSavepoint: (name) => `RELEASE SAVEPOINT ${name}`,
    isTransaction: isAlive,
    commit,
    spanAttributes
  })

/** Counts the connections in use and the fibers that wait for one. */
const countUses = (name: string, max: number, pool: PgPool.PgPool) => {
  const uses = { name, max, inUse: 0, waiting: 0 }
  const counted = (acquire: typeof pool.get) =>
    Effect.acquireRelease(
      Effect.suspend(() => {
        uses.waiting++
        return Effect.onExit(acquire, (exit) =>
          Effect.sync(() => {
            uses.waiting--
            if (exit._tag === "Success") uses.inUse++
          })
        )
      }),
      () => Effect.sync(() => void uses.inUse--),
      { interruptible: true }
    )
  const use = <A, E, R>(f: (connection: PgConnection.PgConnection) => Effect.Effect<A, E, R>) =>
    Effect.suspend(() => {
      let isAcquired = false
      uses.waiting++
      const run = pool.use((connection) => {
        isAcquired = true
        uses.waiting--
        uses.inUse++
        return f(connection)
      })
      return Effect.onExit(run, () => Effect.sync(() => void (isAcquired ? uses.inUse-- : uses.waiting--)))
    })
  return { used: uses as PoolUse, get: counted(pool.get), reserve: counted(pool.reserve), use }
}
