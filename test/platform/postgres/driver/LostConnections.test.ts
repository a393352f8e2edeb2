/** How statements and transactions behave when their connection is missing or ends. */
import { assert, layer } from "@effect/vitest"
import { Cause, Context, Effect, Exit, Fiber, Layer } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { TestClock } from "effect/testing"
import { Postgres } from "../../../../src/platform/postgres/driver/Postgres.ts"
import { Database } from "../../../support/database/Database.ts"

/** The reason of the only failure, which must not be a defect. */
const failureOf = (effect: Effect.Effect<unknown, SqlError.SqlError>) =>
  Effect.map(Effect.exit(effect), (exit) => {
    assert.isTrue(Exit.isFailure(exit) && Cause.hasFails(exit.cause) && !Cause.hasDies(exit.cause))
    return Exit.isFailure(exit) && (Cause.squash(exit.cause) as SqlError.SqlError).reason._tag
  })

layer(Database.layer)("a connection", (it) => {
  it.effect("fails a transaction with a connection error when its connection breaks, and replaces the connection", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { inOneWrite, pipelined, customPlanned: plannedSql } = yield* Postgres
      const executors: ReadonlyArray<(statement: string) => Effect.Effect<unknown, SqlError.SqlError>> = [
        (statement) => sql.unsafe(statement),
        (statement) => sql.withTransaction(sql.unsafe(statement)),
        (statement) => pipelined(sql.unsafe(statement)),
        (statement) => inOneWrite([sql.unsafe(statement)]),
        (statement) => plannedSql.unsafe(statement)
      ]
      for (const run of executors) {
        const failure = yield* failureOf(run("SELECT pg_terminate_backend(pg_backend_pid())"))
        assert.strictEqual(failure, "ConnectionError")
        // From the same pool in the same tick of the event loop: the pool must not lend the broken connection again.
        yield* run("SELECT 1")
      }
    })
  )

  it.effect("fails a transaction with a connection error when the server ends it between two statements", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { pipelined, customPlanned: plannedSql } = yield* Postgres
      const ended = Effect.gen(function* () {
        const [{ pid } = { pid: 0 }] = yield* sql<{ readonly pid: number }>`SELECT pg_backend_pid() AS pid`
        // Waits until the session has ended. This process reads the server's last message during the next statement.
        yield* plannedSql`SELECT pg_terminate_backend(${pid}, 5000)`
        yield* plannedSql`SELECT 1`
        yield* sql`SELECT 2`
      })
      for (const transaction of [sql.withTransaction, pipelined]) {
        assert.strictEqual(yield* failureOf(transaction(ended)), "ConnectionError")
      }
    })
  )

  it.effect("continues to connect while hours pass on the service's clock", () =>
    Effect.gen(function* () {
      const { url } = yield* Database
      const connecting = yield* Effect.forkChild(Layer.build(Layer.fresh(Postgres.layer({ url }))), {
        startImmediately: true
      })
      yield* TestClock.adjust("1 hour")
      const sql = Context.get(yield* Fiber.join(connecting), SqlClient.SqlClient)
      assert.deepStrictEqual(yield* sql`SELECT 1 AS one`, [{ one: 1 }])
    })
  )
})
