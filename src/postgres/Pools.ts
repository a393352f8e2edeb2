// The pools of connections and the clients over them. What must stay true: whoever waits for a connection is counted, and no
// pool can use up what another one needs.
import * as PgClient from "@effect/sql-pg/PgClient"
import type * as PgConnection from "@effect/sql-pg/PgConnection"
import * as PgPool from "@effect/sql-pg/PgPool"
import { Effect, Exit, Fiber } from "effect"
import { SqlClient, type SqlConnection, SqlError } from "effect/sql"
import { asConnectionError, commit, isAlive, Session } from "./Session.ts"

/** How a pool of connections is used at this moment. */
export interface PoolUse {
  readonly name: string
  /** Connections at most. */
  readonly max: number
  readonly inUse: number
  /** Who wants a connection and has none yet. */
  readonly waiting: number
}

// Lists by a filter that many rows match or hardly any: what is right for one value reads the whole list for another.
const planning = { plan_cache_mode: "force_custom_plan" }
const plannedMax = 2

const spanAttributes = [["db.system.name", "postgresql"]] as const

/**
 * The clients of one database, and what is known of their pools. A connection serves one borrower at a time. Sharing one between
 * fibers would be three times faster for short reads, but a slow report would hold up the commits queued behind it, and an
 * abandoned statement could not be cancelled. Only what one pipelined transaction sends travels together, on connections kept
 * for that.
 */
export const makeClients = Effect.fnUntraced(function* (config: PgClient.PgPoolConfig, connectionsMax: number) {
  const pipelinedMax = Math.ceil(connectionsMax / 4)
  const poolMax = Math.max(1, connectionsMax - pipelinedMax)
  const pool = watched("statements", poolMax, yield* PgPool.make({ ...config, maxConnections: poolMax }))
  const pipelinedPool = watched(
    "commits",
    pipelinedMax,
    yield* PgPool.make({ ...config, multiplex: true, multiplexConcurrency: 1, maxConnections: pipelinedMax })
  )
  const client = yield* clientOf(pool)
  const run = (sql: string) => (connection: SqlConnection.Connection) => connection.execute(sql, [], undefined)
  const cleanup = (sql: string) => (connection: SqlConnection.Connection) =>
    isAlive(connection) ? run(sql)(connection) : Effect.void
  const pipelined = SqlClient.makeWithTransaction({
    transactionService: client.transactionService,
    spanAttributes,
    acquireConnection: (restore) => restore(toSession(pipelinedPool.get)),
    // Sent together with the first statement: a connection that can not begin fails that statement as well.
    begin: (connection, statement) =>
      Effect.asVoid(Effect.forkChild(run(statement ?? "BEGIN")(connection), { startImmediately: true })),
    commit,
    rollback: cleanup("ROLLBACK"),
    savepoint: (connection, id) => run(`SAVEPOINT effect_sql_${id}`)(connection),
    releaseSavepoint: (connection, id) => cleanup(`RELEASE SAVEPOINT effect_sql_${id}`)(connection),
    rollbackSavepoint: (connection, id) => cleanup(`ROLLBACK TO SAVEPOINT effect_sql_${id}`)(connection)
  })
  const atOnce = Effect.fnUntraced(
    function* (statements: ReadonlyArray<Effect.Effect<unknown, SqlError.SqlError>>) {
      const connection = yield* toSession(pipelinedPool.get)
      const send = (statement: Effect.Effect<unknown, SqlError.SqlError>) =>
        Effect.forkChild(Effect.provideService(statement, client.transactionService, [connection, 0]), {
          startImmediately: true
        })
      const sent = [yield* send(run("BEGIN")(connection))]
      for (const statement of statements) sent.push(yield* send(statement))
      // What could not even be sent has failed already: without it the others must not be committed.
      const unsent = sent.some((fiber) => fiber.pollUnsafe()?._tag === "Failure")
      sent.push(yield* send(unsent ? cleanup("ROLLBACK")(connection) : commit(connection)))
      const exits = yield* Effect.forEach(sent, Fiber.await)
      const failed = exits.find(Exit.isFailure)
      if (failed !== undefined) return yield* failed
    },
    Effect.scoped,
    Effect.uninterruptible
  )
  const startupParameters = { ...config.startupParameters, ...planning }
  const plannedPool = watched(
    "lists",
    plannedMax,
    yield* PgPool.make({ ...config, startupParameters, maxConnections: plannedMax })
  )
  return {
    client,
    pipelined,
    atOnce,
    planned: yield* clientOf(plannedPool),
    pools: [pool.used, pipelinedPool.used, plannedPool.used]
  }
})

const toSession = Effect.mapBoth({
  onSuccess: (connection: PgConnection.PgConnection) => new Session(connection),
  onFailure: asConnectionError
})

const clientOf = (pool: ReturnType<typeof watched>) =>
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

/** A pool that counts who has and who awaits its connections. */
const watched = (name: string, max: number, pool: PgPool.PgPool) => {
  const used = { name, max, inUse: 0, waiting: 0 }
  const counted = (acquire: typeof pool.get) =>
    Effect.acquireRelease(
      Effect.suspend(() => {
        used.waiting++
        return Effect.onExit(acquire, (exit) =>
          Effect.sync(() => {
            used.waiting--
            if (exit._tag === "Success") used.inUse++
          })
        )
      }),
      () => Effect.sync(() => void used.inUse--),
      { interruptible: true }
    )
  const use = <A, E, R>(f: (connection: PgConnection.PgConnection) => Effect.Effect<A, E, R>) =>
    Effect.suspend(() => {
      let held = false
      used.waiting++
      const run = pool.use((connection) => {
        held = true
        used.waiting--
        used.inUse++
        return f(connection)
      })
      return Effect.onExit(run, () => Effect.sync(() => void (held ? used.inUse-- : used.waiting--)))
    })
  return { used: used as PoolUse, get: counted(pool.get), reserve: counted(pool.reserve), use }
}
