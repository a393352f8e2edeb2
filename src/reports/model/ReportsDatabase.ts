/**
 * The connections that reports read through: a few of their own, so that no report takes one from a request, planned by the
 * server as it does by itself, and to a replica where the operator has named one. What a replica has not heard of yet is missing
 * in the figures, never half there: a report is one snapshot.
 */
import { Context, Effect, Layer } from "effect"
import { SqlClient, SqlError } from "effect/sql"
import { Settings } from "../../config/Config.ts"
import { Postgres } from "../../postgres/Postgres.ts"
import { retryTransaction } from "../../postgres/Transactions.ts"

/** Of these, a quarter is kept for commits, which reports have none of: three run at once, others wait. */
const connectionsMax = 4
// A report that takes longer belongs into an export.
const statementTimeoutMillis = 60_000

export class ReportsDatabase extends Context.Service<
  ReportsDatabase,
  {
    readonly sql: SqlClient.SqlClient
    /** Runs statements that all see the database as of one moment, and change nothing. */
    snapshot<A, E, R>(read: Effect.Effect<A, E, R>): Effect.Effect<A, Exclude<E, SqlError.SqlError>, R>
  }
>()("licensing/reports/model/ReportsDatabase") {
  static readonly layer = Layer.effect(
    ReportsDatabase,
    Effect.gen(function* () {
      const { reportsDatabaseUrl } = yield* Settings
      const { url } = yield* Postgres
      const database = yield* Layer.build(
        Layer.fresh(
          Postgres.layer({
            url: reportsDatabaseUrl ?? url,
            maxConnections: connectionsMax,
            statementTimeoutMillis,
            applicationName: "licensing-reports",
            plannerDefaults: true
          })
        )
      )
      const sql = Context.get(database, SqlClient.SqlClient)
      const snapshot = <A, E, R>(read: Effect.Effect<A, E, R>) =>
        retryTransaction(
          sql.withTransaction(Effect.andThen(sql`SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY`, read))
        ).pipe(Effect.catchIf(SqlError.isSqlError, Effect.die)) as Effect.Effect<A, Exclude<E, SqlError.SqlError>, R>
      return ReportsDatabase.of({ sql, snapshot })
    })
  )
}
