/** What a node hands over is in the database once, whatever becomes of its transactions. */
import { assert, layer } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { SecureRandom } from "effect/crypto"
import { SqlClient, SqlError } from "effect/sql"
import { makeBufferedWriter } from "../../src/workers/BufferedWriter.ts"
import { Database } from "../support/Database.ts"

const lost = new SqlError.SqlError({
  reason: new SqlError.ConnectionError({ cause: new Error("the connection is gone") })
})

/** What becomes of the next transactions: done, undone, or done without anybody hearing of it. */
type Fate = "heard" | "undone" | "unheard"

/** A client whose transactions meet the fates, one after another. */
const fated = (sql: SqlClient.SqlClient, fates: Array<Fate>): SqlClient.SqlClient =>
  new Proxy(sql, {
    get: (target, name, receiver) => {
      if (name !== "withTransaction") return Reflect.get(target, name, receiver)
      return (self: Effect.Effect<unknown, SqlError.SqlError>) => {
        const fate = fates.shift() ?? "heard"
        if (fate === "undone") return target.withTransaction(Effect.andThen(self, Effect.fail(lost)))
        const done = target.withTransaction(self)
        return fate === "unheard" ? Effect.andThen(done, Effect.fail(lost)) : done
      }
    }
  })

const written = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.map(sql<{ readonly n: number }>`SELECT n FROM handed ORDER BY n`, (rows) => rows.map(({ n }) => n))
)

/** A node that hands over numbers, three in a transaction at most. */
const makeNode = Effect.fnUntraced(function* (fates: Array<Fate>) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`CREATE TABLE IF NOT EXISTS handed (n int4)`
  yield* sql`DELETE FROM handed`
  const waiting: Array<number> = []
  const pass = yield* makeBufferedWriter({
    name: "numbers",
    take: () => (waiting.length === 0 ? undefined : waiting.splice(0, 3)),
    write: (batch) => Effect.forEach(batch, (n) => sql`INSERT INTO handed VALUES (${n})`, { discard: true })
  }).pipe(Effect.provideService(SqlClient.SqlClient, fated(sql, fates)), Effect.provide(SecureRandom.layerWebCrypto))
  return { pass, waiting }
})

layer(Database.layer)("A handover", (it) => {
  it.effect("writes each batch once, whether or not its commit was heard of", () =>
    Effect.gen(function* () {
      const fates: Array<Fate> = ["heard", "unheard", "heard", "undone", "undone", "heard", "unheard"]
      const { pass, waiting } = yield* makeNode(fates)
      waiting.push(1, 2, 3, 4, 5)
      assert.isTrue(Exit.isFailure(yield* Effect.exit(pass)), "the commit of 4 and 5 was not heard of")
      waiting.push(6)
      assert.isTrue(Exit.isFailure(yield* Effect.exit(pass)), "6 was undone")
      assert.deepStrictEqual(yield* written, [1, 2, 3, 4, 5])
      assert.isTrue(Exit.isFailure(yield* Effect.exit(pass)), "6 was undone again")
      yield* pass
      waiting.push(7)
      assert.isTrue(Exit.isFailure(yield* Effect.exit(pass)), "the commit of 7 was not heard of")
      yield* Effect.all([pass, pass], { concurrency: "unbounded" })
      assert.deepStrictEqual(yield* written, [1, 2, 3, 4, 5, 6, 7])
      assert.isEmpty(fates)
    })
  )

  it.effect("writes what is left at the end, what was in doubt included, and is forgotten then", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const scope = yield* Scope.make()
      const { pass, waiting } = yield* Scope.provide(makeNode(["unheard"]), scope)
      yield* sql`INSERT INTO handovers (writer, batch, written_at) VALUES ('killed long ago', 9, to_timestamp(-86401))`
      yield* sql`INSERT INTO handovers (writer, batch, written_at) VALUES ('killed lately', 9, to_timestamp(-86399))`
      waiting.push(1, 2, 3, 4)
      yield* Effect.flip(pass)
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual(yield* written, [1, 2, 3, 4])
      const writers = yield* sql<{ readonly writer: string }>`SELECT writer FROM handovers WHERE writer LIKE 'killed%'`
      assert.deepStrictEqual(writers, [{ writer: "killed lately" }])
    })
  )
})
