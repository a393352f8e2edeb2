/**
 * Deletes the journal rows of nodes that have ended. If it deletes the row of an idle node that still runs, that node
 * inserts the row again with its next group.
 */
import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { instant } from "../../platform/postgres/driver/Parameters.ts"

/** Much longer than a journal could still ask whether one of its groups was committed. */
const retentionMillis = 7 * 86_400_000

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
