/** Deletes the journal rows of nodes that have ended. An idle node inserts its row again with its next group. */
import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { dayMillis } from "../../contract/api/Timestamp.ts"
import { instant } from "../../platform/postgres/driver/Parameters.ts"

/** Much longer than the outcome of a group can stay unknown. */
const retentionMillis = 7 * dayMillis

export class JournalRetention extends Context.Service<JournalRetention, { readonly pass: Effect.Effect<void> }>()(
  "licensing/licensing/engine/JournalRetention"
) {
  static readonly layer = Layer.effect(
    JournalRetention,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const pass = Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis
        yield* sql`DELETE FROM journals WHERE written_at < ${instant(now - retentionMillis)}`
      })
      return JournalRetention.of({ pass: Effect.orDie(Effect.withSpan(pass, "JournalRetention.pass")) })
    })
  )
}
