/**
 * Compares the node's clock with the database server's, and logs when they start and stop to differ. Only the retention of
 * partitions depends on the server's clock, too. But all nodes use one server, so a node that differs from it differs from
 * the other nodes.
 */
import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { Settings } from "../../platform/config/Config.ts"

/** More than a synchronized clock differs by, and less than the clocks of nodes may differ by (30 seconds). */
const differenceMillisMax = 5_000

export class ClockCheck extends Context.Service<ClockCheck, { readonly pass: Effect.Effect<void> }>()(
  "licensing/edge/system/ClockCheck"
) {
  static readonly layer = Layer.effect(
    ClockCheck,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { clockOffsetSeconds } = yield* Settings
      // A rehearsal's clock is ahead on purpose.
      const readClock = Effect.map(Clock.currentTimeMillis, (now) => now - clockOffsetSeconds * 1000)
      let isApart = false

      const pass = Effect.gen(function* () {
        const sentAt = yield* readClock
        const [row] = yield* sql<{ readonly at: number }>`SELECT clock_timestamp() AS at`
        const receivedAt = yield* readClock
        // The server read its clock between the two instants, so a slow response looks like no difference.
        const millisBehind = Math.max(0, row!.at - receivedAt)
        const millisAhead = Math.max(0, sentAt - row!.at)
        const wasApart = isApart
        isApart = Math.max(millisBehind, millisAhead) > differenceMillisMax
        if (isApart === wasApart) return
        yield* isApart
          ? Effect.logWarning("The clock of this node differs from the database server's: synchronize both.", {
              seconds_ahead: Math.round((millisAhead - millisBehind) / 1000)
            })
          : Effect.logInfo("The clock of this node agrees with the database server's again.")
      })
      return ClockCheck.of({ pass: Effect.orDie(Effect.withSpan(pass, "ClockCheck.pass")) })
    })
  )
}
