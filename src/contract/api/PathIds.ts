/**
 * Looks up a path's id if the body is invalid, because an unknown id is reported before a fault in the body.
 */
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"

export class PathIds extends Context.Service<
  PathIds,
  {
    /** Whether the table has a row with this id. */
    exists(table: string, id: string): Effect.Effect<boolean>
  }
>()("licensing/contract/api/PathIds") {
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
