/** The limits up to which retention has removed rows. Lists and reports that reach them show this. */
import { Effect } from "effect"
import type { SqlClient, Statement } from "effect/sql"

const lastOf = (rows: Statement.Statement<{ readonly last: number | null }>) =>
  Effect.orDie(Effect.map(rows, ([row]) => row?.last ?? undefined))

/** The number up to which events may be missing; undefined if none are. */
export const removedEvents = (sql: SqlClient.SqlClient) =>
  lastOf(sql`
    SELECT max(n.first_event) - 1 AS last FROM sequence_partitions p
    JOIN sequence_partitions n ON n.parent = p.parent AND n.first_sequence = p.end_sequence
    WHERE p.detached_at IS NOT NULL`)

/** The last removed row of the usage ledger. */
export const removedLedgerRows = (sql: SqlClient.SqlClient) =>
  lastOf(sql`
    SELECT max(end_sequence) - 1 AS last FROM sequence_partitions
    WHERE parent = 'usage_ledger' AND detached_at IS NOT NULL`)

/** The time of the newest removed row of the usage ledger, or -infinity. */
export const ledgerRemovedAt = (sql: SqlClient.SqlClient) =>
  sql.literal("coalesce((SELECT max(newest_at) FROM sequence_partitions WHERE parent = 'usage_ledger'), '-infinity')")

/** The same of events, which include the consumptions of the ledger. */
export const eventsRemovedAt = (sql: SqlClient.SqlClient) =>
  sql.literal("coalesce((SELECT max(newest_at) FROM sequence_partitions), '-infinity')")
