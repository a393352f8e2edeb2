/** A node's buffered rows reach the database exactly once for all outcomes of its transactions. */
import { assert, layer } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { SecureRandom } from "effect/crypto"
import { SqlClient, SqlError } from "effect/sql"
import { makeBufferedWriter } from "../../../src/platform/workers/BufferedWriter.ts"
import { Database } from "../../support/database/Database.ts"

const connectionLost = new SqlError.SqlError({
  reason: new SqlError.ConnectionError({ cause: new Error("the connection was lost") })
})

/** The outcomes of the next transactions: committed, rolled back, or committed with the reply lost. */
type TransactionOutcome = "committed" | "rolled back" | "reply lost"

/** A client whose transactions have the given outcomes, in order. */
const withOutcomes = (sql: SqlClient.SqlClient, outcomes: Array<TransactionOutcome>): SqlClient.SqlClient =>
  new Proxy(sql, {
    get: (target, name, receiver) => {
      if (name !== "withTransaction") return Reflect.get(target, name, receiver)
      return (self: Effect.Effect<unknown, SqlError.SqlError>) => {
        const outcome = outcomes.shift() ?? "committed"
        if (outcome === "rolled back") return target.withTransaction(Effect.andThen(self, Effect.fail(connectionLost)))
        const committed = target.withTransaction(self)
        return outcome === "reply lost" ? Effect.andThen(committed, Effect.fail(connectionLost)) : committed
      }
    }
  })

const written = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.map(sql<{ readonly n: number }>`SELECT n FROM handed ORDER BY n`, (rows) => rows.map(({ n }) => n))
)

/** A node that writes numbers, at most three in a transaction. */
const makeNode = Effect.fnUntraced(function* (outcomes: Array<TransactionOutcome>) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`CREATE TABLE IF NOT EXISTS handed (n int4)`
  yield* sql`DELETE FROM handed`
  const pending: Array<number> = []
  const pass = yield* makeBufferedWriter({
    name: "numbers",
    take: () => (pending.length === 0 ? undefined : pending.splice(0, 3)),
    write: (batch) => Effect.forEach(batch, (n) => sql`INSERT INTO handed VALUES (${n})`, { discard: true })
  }).pipe(
    Effect.provideService(SqlClient.SqlClient, withOutcomes(sql, outcomes)),
    Effect.provide(SecureRandom.layerWebCrypto)
  )
  return { pass, waiting: pending }
})

layer(Database.layer)("A buffered writer", (it) => {
  it.effect("writes each batch once, whether or not the commit's reply arrived", () =>
    Effect.gen(function* () {
      const outcomes: Array<TransactionOutcome> = [
        "committed",
        "reply lost",
        "committed",
        "rolled back",
        "rolled back",
        "committed",
        "reply lost"
      ]
      const { pass, waiting: pending } = yield* makeNode(outcomes)
      pending.push(1, 2, 3, 4, 5)
      assert.isTrue(Exit.isFailure(yield* Effect.exit(pass)), "the reply to the commit of 4 and 5 was lost")
      pending.push(6)
      assert.isTrue(Exit.isFailure(yield* Effect.exit(pass)), "6 was rolled back")
      assert.deepStrictEqual(yield* written, [1, 2, 3, 4, 5])
      assert.isTrue(Exit.isFailure(yield* Effect.exit(pass)), "6 was rolled back again")
      yield* pass
      pending.push(7)
      assert.isTrue(Exit.isFailure(yield* Effect.exit(pass)), "the reply to the commit of 7 was lost")
      yield* Effect.all([pass, pass], { concurrency: "unbounded" })
      assert.deepStrictEqual(yield* written, [1, 2, 3, 4, 5, 6, 7])
      assert.isEmpty(outcomes)
    })
  )

  it.effect(
    "writes the remaining rows at shutdown, uncertain batches included, and deletes records of writers unused for a day",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const scope = yield* Scope.make()
        const { pass, waiting: pending } = yield* Scope.provide(makeNode(["reply lost"]), scope)
        yield* sql`INSERT INTO handovers (writer, batch, written_at) VALUES ('killed long ago', 9, to_timestamp(-86401))`
        yield* sql`INSERT INTO handovers (writer, batch, written_at) VALUES ('killed lately', 9, to_timestamp(-86399))`
        pending.push(1, 2, 3, 4)
        yield* Effect.flip(pass)
        yield* Scope.close(scope, Exit.void)
        assert.deepStrictEqual(yield* written, [1, 2, 3, 4])
        const writers = yield* sql<{
          readonly writer: string
        }>`SELECT writer FROM handovers WHERE writer LIKE 'killed%'`
        assert.deepStrictEqual(writers, [{ writer: "killed lately" }])
      })
  )
})
