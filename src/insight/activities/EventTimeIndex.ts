/**
 * Records the first and last time of each range of 4,096 events (table `event_spans`), so that a period is found by sequence
 * numbers and events need no index on their time. Times follow sequence numbers only roughly, because each node has its own
 * clock and a rehearsal clock runs ahead. Newer events, which are in no recorded range yet, are scanned row by row.
 */
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { exclusivelyUntilDone } from "../../platform/workers/Exclusive.ts"

/** Up to this many of the newest events have no span yet. Events are never deleted, so spans are not either. */
const spanEvents = 4_096
/** Writing this many spans takes a fraction of a second. */
const batchMax = 64

export class EventTimeIndex extends Context.Service<EventTimeIndex, { readonly pass: Effect.Effect<void, unknown> }>()(
  "licensing/insight/activities/EventTimeIndex"
) {
  static readonly layer = Layer.effect(
    EventTimeIndex,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient

      const batch = Effect.gen(function* () {
        const written = yield* sql`
          INSERT INTO event_spans (first_sequence, last_sequence, first_at, last_at)
          SELECT span.first, span.last, times.first_at, times.last_at
          FROM (SELECT coalesce(max(last_sequence), 0) AS last_indexed FROM event_spans) AS spans
            CROSS JOIN event_sequence
            CROSS JOIN generate_series(1, ${batchMax}::int4) AS n
            CROSS JOIN LATERAL (
              SELECT last_indexed + (n - 1) * ${spanEvents}::int8 + 1 AS first, last_indexed + n * ${spanEvents}::int8 AS last
            ) AS span
            CROSS JOIN LATERAL (
              SELECT min(created_at) AS first_at, max(created_at) AS last_at FROM events
              WHERE sequence >= span.first AND sequence <= span.last
            ) AS times
          WHERE span.last <= event_sequence.last AND times.first_at IS NOT NULL
          RETURNING last_sequence`
        return written.length
      })

      const pass = exclusivelyUntilDone(sql, "event-spans", batchMax, batch)
      return EventTimeIndex.of({ pass: Effect.withSpan(pass, "EventTimeIndex.pass") })
    })
  )
}
