/** Periods return all their events, even if the times of events jump. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { EventTimeIndex } from "../../../src/insight/activities/EventTimeIndex.ts"
import { layerActivities, listActivities } from "../../support/http/Activities.ts"

const start = Date.UTC(2026, 0, 1)
const iso = (millis: number) => new Date(millis).toISOString()

layer(layerActivities(), { timeout: 60_000 })("A period of the feed", (it) => {
  it.effect("returns all its events, including those from a clock that was set back", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      // Five ranges, one event a minute; in the fourth a node's clock runs a year ahead; the last few events are too
      // new to be returned.
      const events = 5 * 4_096 + 100
      yield* sql`UPDATE event_sequence SET last = last + ${events}`
      yield* sql`
        INSERT INTO event_log (sequence, event_type, actor_type, actor_id, resource_type, resource_id, metadata, created_at)
        SELECT n + 1, 'product.created', 'system', 'service', 'product', 'p' || n, '{}',
          to_timestamp(${start / 1_000}::int8) + n * interval '1 minute'
            - CASE WHEN n BETWEEN 13000 AND 13004 THEN interval '9000 minutes' ELSE interval '0' END
        FROM generate_series(1, ${events}::int4) AS n`
      yield* (yield* EventTimeIndex).pass
      assert.strictEqual((yield* sql`SELECT FROM event_spans`).length, 5)
      yield* (yield* EventTimeIndex).pass
      assert.strictEqual((yield* sql`SELECT FROM event_spans`).length, 5, "once each")
      const minute = (n: number) => iso(start + n * 60_000)
      const numbers = Effect.fnUntraced(function* (filter: { readonly [name: string]: string }) {
        return (yield* listActivities(filter)).map(({ product_id = "" }) => Number(product_id.slice(1)))
      })
      const range = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => to - 1 - index)
      assert.deepStrictEqual(yield* numbers({ from: minute(100), to: minute(110) }), range(100, 110))
      assert.deepStrictEqual(yield* numbers({ from: minute(4_000), to: minute(4_010) }), [
        ...range(13_000, 13_005),
        ...range(4_000, 4_010)
      ])
      assert.deepStrictEqual(yield* numbers({ from: minute(20_500), to: minute(99_999) }), range(20_500, events + 1))
      assert.deepStrictEqual(yield* numbers({ from: minute(13_000), to: minute(13_006) }), [13_005])
      assert.deepStrictEqual(yield* numbers({ from: minute(-100), to: minute(3) }), [2, 1])
    })
  )
})
