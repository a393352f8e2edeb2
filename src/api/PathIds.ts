/** Whether what a path names exists: asked only for a request that is about to be refused for its body, which comes second. */
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"

export class PathIds extends Context.Service<
  PathIds,
  {
    /** Whether the table has a row with this id. */
    exists(table: string, id: string): Effect.Effect<boolean>
  }
>()("licensing/api/PathIds") {
  static readonly layer = Layer.effect(
    PathIds,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient

      const exists = Effect.fn("PathIds.exists")(function* (table: string, id: string) {
        const rows = yield* sql`SELECT 1 FROM ${sql(table)} WHERE id = ${id}`
        return rows.length > 0
      }, Effect.orDie)

      return PathIds.of({ exists })
    })
  )
}
