/** Deletes expired stored responses in batches. Responses to renewals are permanent; the statement does not scan them. */
import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { instant } from "../../platform/postgres/driver/Parameters.ts"
import { exclusivelyUntilDone } from "../../platform/workers/Exclusive.ts"

/** Rows per statement. */
const batchMax = 5_000

export class ResponseRetention extends Context.Service<ResponseRetention, { readonly pass: Effect.Effect<void> }>()(
  "licensing/access/idempotency/ResponseRetention"
) {
  static readonly layer = Layer.effect(
    ResponseRetention,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient

      const batch = Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis
        const removed = yield* sql`
          DELETE FROM idempotent_answers WHERE scope IN (
            SELECT scope FROM idempotent_answers WHERE expires_at <= ${instant(now)} ORDER BY expires_at LIMIT ${batchMax}
          ) RETURNING scope`
        return removed.length
      })

      const pass = exclusivelyUntilDone(sql, "idempotency-retention", batchMax, batch)
      return ResponseRetention.of({ pass: Effect.orDie(Effect.withSpan(pass, "ResponseRetention.pass")) })
    })
  )
}
