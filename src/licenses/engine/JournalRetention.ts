/** Forgets the journals of nodes that have ended. One that is still alive, if idle, takes its place again with its next group. */
import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { instant } from "../../postgres/Parameters.ts"

/** Hours beyond any moment at which a journal could still ask what became of a group. */
const keptMillis = 7 * 86_400_000

export class JournalRetention extends Context.Service<JournalRetention, { readonly pass: Effect.Effect<void> }>()(
  "licensing/licenses/engine/JournalRetention"
) {
  static readonly layer = Layer.effect(
    JournalRetention,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const pass = Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis
        yield* sql`DELETE FROM journals WHERE written_at < ${instant(now - keptMillis)}`
      })
      return JournalRetention.of({ pass: Effect.orDie(Effect.withSpan(pass, "JournalRetention.pass")) })
    })
  )
}
