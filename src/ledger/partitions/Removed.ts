/** What retention has removed: lists and reports that reach it say so. */
import { Effect } from "effect"
import type { SqlClient } from "effect/sql"

type Removed = Effect.Effect<number | undefined, never>

const numberIn = (rows: ReadonlyArray<{ readonly last: number | null }>) => rows[0]?.last ?? undefined

/** The last event up to which events may be missing. Undefined: none are. */
export const removedEvents = (sql: SqlClient.SqlClient): Removed =>
  Effect.orDie(
    Effect.map(
      sql<{ readonly last: number | null }>`
        SELECT max(n.first_event) - 1 AS last FROM sequence_partitions p
        JOIN sequence_partitions n ON n.parent = p.parent AND n.first_sequence = p.end_sequence
        WHERE p.detached_at IS NOT NULL`,
      numberIn
    )
  )

/** The last row of the usage ledger that was removed. */
export const removedLedgerRows = (sql: SqlClient.SqlClient): Removed =>
  Effect.orDie(
    Effect.map(
      sql<{ readonly last: number | null }>`
        SELECT max(end_sequence) - 1 AS last FROM sequence_partitions
        WHERE parent = 'usage_ledger' AND detached_at IS NOT NULL`,
      numberIn
    )
  )

/** The time of the newest removed row of the usage ledger, or -infinity. */
export const ledgerRemovedAt = (sql: SqlClient.SqlClient) =>
  sql.literal("coalesce((SELECT max(newest_at) FROM sequence_partitions WHERE parent = 'usage_ledger'), '-infinity')")
