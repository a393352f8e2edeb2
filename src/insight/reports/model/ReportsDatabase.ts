/**
 * The connections of reports: a few of their own, so that no report takes one from a request, with the server's default planning,
 * and to a replica if the operator has configured one. Changes that a replica has not received yet are missing in the figures,
 * but never partly included: a report is one snapshot.
 */
import { Context, Effect, Layer } from "effect"
import { SqlClient, SqlError } from "effect/sql"
import { Settings } from "../../../platform/config/Config.ts"
import { Postgres } from "../../../platform/postgres/driver/Postgres.ts"
import { retryTransaction } from "../../../platform/postgres/driver/Transactions.ts"

/** A quarter is reserved for commits, which reports do not use: three reports run at once, others wait. */
const connectionsMax = 4
// A report that takes longer needs an export.
const statementTimeoutMillis = 60_000

export class ReportsDatabase extends Context.Service<
  ReportsDatabase,
  {
    readonly sql: SqlClient.SqlClient
    snapshot<A, E, R>(read: Effect.Effect<A, E, R>): Effect.Effect<A, Exclude<E, SqlError.SqlError>, R>
  }
>()("licensing/insight/reports/model/ReportsDatabase") {
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
            // A report holds no lock, and may create content between its statements.
            idleInTransactionMillis: statementTimeoutMillis,
            applicationName: "licensing-reports",
            ...(reportsDatabaseUrl !== undefined && { replicaSetting: "LICENSING_REPORTS_DATABASE_URL" }),
            plannerDefaults: true,
            // Only reports need a replica.
            unreachable: "continue"
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
