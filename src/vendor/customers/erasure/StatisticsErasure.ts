/**
 * Replaces the planner's statistics of changed tables, because they contain frequent and sampled values of columns.
 * Columns without statistics (schema/migrations/0017_erasure_fence.sql) are skipped.
 */
import { Effect } from "effect"
import type { SqlClient } from "effect/sql"
import { beginOf, placeAt, positionOf, type Step } from "./ErasureStep.ts"

/** These tables are never empty after an erasure: ANALYZE keeps the statistics of an empty table. */
const changedTables = ["customers", "licenses", "orders", "subscriptions", "idempotent_answers"]

/** One table per step, because ANALYZE blocks other ANALYZE and VACUUM runs on the table. */
export const makeStatisticsStep = (sql: SqlClient.SqlClient): Step =>
  Effect.fnUntraced(function* (erasure) {
    const done = positionOf<number>(erasure) ?? 0
    const partitions = yield* sql<{ readonly name: string }>`
      SELECT relation.name FROM erasures e, unnest(e.changed_partitions) AS relation (name)
      WHERE e.customer_id = ${erasure.customer_id} ORDER BY name`
    // All partitions together may exceed the statement timeout.
    yield* sql`SELECT set_config('statement_timeout', '0', true)`
    const table = changedTables[done]
    if (table !== undefined) {
      yield* sql`ANALYZE ${sql(table)}`
      return placeAt("statistics", done + 1)
    }
    const partition = partitions[done - changedTables.length]
    if (partition !== undefined) {
      // The partition may have been dropped meanwhile.
      const [existing] = yield* sql`SELECT WHERE to_regclass(${partition.name}) IS NOT NULL`
      if (existing !== undefined) yield* sql`ANALYZE ${sql(partition.name)} (metadata)`
      return placeAt("statistics", done + 1)
    }
    // Autovacuum does not update the statistics of the partitioned table itself.
    const [inherited] = yield* sql`
      SELECT FROM pg_stats WHERE schemaname = current_schema AND tablename = 'event_log' AND attname = 'metadata' AND inherited`
    if (inherited !== undefined) yield* sql`ANALYZE event_log (metadata)`
    return beginOf("end")
  })
