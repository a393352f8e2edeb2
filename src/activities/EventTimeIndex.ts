/**
 * Writes down which times lie in which stretch of the events. Times nearly follow the sequence numbers, and not quite: nodes have clocks
 * of their own, and a rehearsal's runs ahead. So a period is looked up in what the stretches really hold. No event pays for an
 * index on its time; what was not written down yet is looked at row by row.
 */
import { Context, Effect, Layer, Option } from "effect"
import { SqlClient } from "effect/sql"
import { exclusively } from "../workers/Exclusive.ts"

/** Events in a stretch, and as many at most wait to be written down. Events are for ever, so their spans are. */
const spanEvents = 4_096
/** Stretches of one transaction: a fraction of a second. */
const batchMax = 64

export class EventTimeIndex extends Context.Service<EventTimeIndex, { readonly pass: Effect.Effect<void, unknown> }>()(
  "licensing/activities/EventTimeIndex"
) {
  static readonly layer = Layer.effect(
    EventTimeIndex,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient

      const batch = Effect.gen(function* () {
        const written = yield* sql`
          INSERT INTO event_spans (first_sequence, last_sequence, first_at, last_at)
          SELECT stretch.first, stretch.last, held.first_at, held.last_at
          FROM (SELECT coalesce(max(last_sequence), 0) AS told FROM event_spans) AS spans
            CROSS JOIN event_sequence
            CROSS JOIN generate_series(1, ${batchMax}::int4) AS n
            CROSS JOIN LATERAL (
              SELECT told + (n - 1) * ${spanEvents}::int8 + 1 AS first, told + n * ${spanEvents}::int8 AS last
            ) AS stretch
            CROSS JOIN LATERAL (
              SELECT min(created_at) AS first_at, max(created_at) AS last_at FROM events
              WHERE sequence >= stretch.first AND sequence <= stretch.last
            ) AS held
          WHERE stretch.last <= event_sequence.last AND held.first_at IS NOT NULL
          RETURNING last_sequence`
        return written.length
      })

      const pass = Effect.gen(function* () {
        while (true) {
          const written = yield* exclusively(sql, "event-spans")(batch)
          if (Option.isNone(written) || written.value < batchMax) return
        }
      })
      return EventTimeIndex.of({ pass: Effect.withSpan(pass, "Spans.pass") })
    })
  )
}
