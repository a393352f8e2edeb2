/**
 * Replaces the planner's statistics of what an erasure has changed: they contain the most frequent values of columns, and others.
 * Columns without statistics (schema/migrations/0017_erasure_fence.sql) need none of this.
 */
import { Effect } from "effect"
import type { SqlClient } from "effect/sql"
import { beginOf, placeAt, positionOf, type Step } from "./ErasureStep.ts"

/** Tables that are never empty after an erasure: of an empty one no statistics are replaced. */
const changedTables = ["customers", "licenses", "orders", "subscriptions", "idempotent_answers"]

/** One table in each step: it reads a sample, and meanwhile nobody else can analyze or vacuum the table. */
export const makeStatisticsStep = (sql: SqlClient.SqlClient): Step =>
  Effect.fnUntraced(function* (erasure) {
    const done = positionOf<number>(erasure) ?? 0
    const partitions = yield* sql<{ readonly name: string }>`
      SELECT relation.name FROM erasures e, unnest(e.changed_partitions) AS relation (name)
      WHERE e.customer_id = ${erasure.customer_id} ORDER BY name`
    // All partitions of many events take longer than a statement may.
    yield* sql`SELECT set_config('statement_timeout', '0', true)`
    const table = changedTables[done]
    if (table !== undefined) {
      yield* sql`ANALYZE ${sql(table)}`
      return placeAt("statistics", done + 1)
    }
    const partition = partitions[done - changedTables.length]
    if (partition !== undefined) {
      // It may have been detached and dropped meanwhile.
      const [existing] = yield* sql`SELECT WHERE to_regclass(${partition.name}) IS NOT NULL`
      if (existing !== undefined) yield* sql`ANALYZE ${sql(partition.name)} (metadata)`
      return placeAt("statistics", done + 1)
    }
    // Only ANALYZE by hand makes statistics of all partitions together.
    const [inherited] = yield* sql`
      SELECT FROM pg_stats WHERE schemaname = current_schema AND tablename = 'event_log' AND attname = 'metadata' AND inherited`
    if (inherited !== undefined) yield* sql`ANALYZE event_log (metadata)`
    return beginOf("end")
  })
