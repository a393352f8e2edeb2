/**
 * Detaches partitions whose newest row is past its retention, except those needed by pending deliveries, unfinished
 * exports, or days of the ledger that are not summed yet. Detached partitions are kept as tables, or dropped.
 */
import { Clock, Effect } from "effect"
import { dayMillis } from "../../contract/api/Timestamp.ts"
import { instant } from "../../platform/postgres/driver/Parameters.ts"
import { unlessContended } from "../../platform/postgres/queries/Sql.ts"
import type { Parent } from "./PartitionEnd.ts"
import { inShortLocks, type PartitionSession } from "./PartitionSession.ts"

/** The oldest partition of a table, if its newest row is older than an instant ($1) and nothing needs its rows. */
const expendable = ({ name }: Parent) => `
  SELECT p.name, times.newest_at
  FROM sequence_partitions p
  CROSS JOIN LATERAL (
    SELECT n.first_event AS end_event FROM sequence_partitions n
    WHERE n.parent = p.parent AND n.first_sequence = p.end_sequence
  ) AS following
  CROSS JOIN LATERAL (
    SELECT max(last_at) AS newest_at, max(last_sequence) AS last_event FROM event_spans
    WHERE last_sequence >= p.first_event AND first_sequence < end_event
  ) AS times
  WHERE p.name = (SELECT o.name FROM sequence_partitions o
      WHERE o.parent = '${name}' AND o.detached_at IS NULL ORDER BY o.first_sequence LIMIT 1)
    AND times.last_event >= end_event - 1 AND times.newest_at < $1::timestamptz
    AND NOT EXISTS (SELECT FROM report_exports WHERE status IN ('pending', 'processing'))
    AND NOT EXISTS (
      SELECT FROM webhook_endpoints e CROSS JOIN LATERAL (
        SELECT FROM webhook_deliveries d
        WHERE d.endpoint_id = e.id AND d.sequence >= p.first_event AND d.sequence < end_event AND d.status = 'pending' LIMIT 1
      ) AS pending
    )
    ${name === "usage_ledger" ? isSummed : ""}`

const isSummed = `
    AND (SELECT sequence FROM usage_rollup_progress) >= p.end_sequence - 1
    AND NOT EXISTS (SELECT FROM usage_rollup_days d WHERE d.rolled_rows <> d.ledger_rows AND d.day <= times.newest_at
      AND d.day > coalesce((SELECT max(g.newest_at) FROM sequence_partitions g WHERE g.parent = 'usage_ledger'), '-infinity'))
    AND NOT EXISTS (SELECT FROM event_id_copy)`

/** The earlier of the node's clock and the database server's, so that a clock that is far ahead removes nothing. */
const earlierClock = Effect.fnUntraced(function* ({ values }: PartitionSession, clockOffsetSeconds: number) {
  const now = yield* Clock.currentTimeMillis
  const [[serverNow]] = (yield* values("SELECT clock_timestamp()")) as [[number]]
  return Math.min(now, serverNow + clockOffsetSeconds * 1_000)
})

/** Detaches the partitions of a table that are older than some days, oldest first. 0 days: none. */
export const detachOld = Effect.fnUntraced(function* (
  session: PartitionSession,
  parent: Parent,
  days: number,
  clockOffsetSeconds: number
) {
  const { values } = session
  while (days > 0) {
    const now = yield* earlierClock(session, clockOffsetSeconds)
    const before = instant(now - days * dayMillis)
    const [found] = yield* values(expendable(parent), [before])
    if (found === undefined) return
    const name = String(found[0])
    let isDetached = false
    const detach = Effect.gen(function* () {
      yield* values(`LOCK TABLE ONLY ${parent.name} IN ACCESS EXCLUSIVE MODE`)
      const rows = yield* values(
        `UPDATE sequence_partitions p SET detached_at = $2, newest_at = times.newest_at
          FROM (${expendable(parent)}) AS times WHERE p.name = times.name AND p.name = '${name}' RETURNING p.name`,
        [before, instant(now)]
      )
      isDetached = rows.length > 0
      if (isDetached) yield* values(`ALTER TABLE ${parent.name} DETACH PARTITION ${name}`)
    })
    if (!(yield* inShortLocks(session, name, detach)) || !isDetached) return
    yield* Effect.logInfo("Detached a partition that is past its retention.", { partition: name })
  }
})

/** Drops detached partitions that still exist under their names, except those that others read, as a backup does. */
export const dropDetached = Effect.fnUntraced(function* ({ values }: PartitionSession) {
  const rows = yield* values(`
    SELECT name FROM sequence_partitions p JOIN pg_class c ON c.relname = p.name
    WHERE p.detached_at IS NOT NULL AND c.relnamespace = 'public'::regnamespace AND NOT c.relispartition`)
  for (const [name] of rows) {
    if (!(yield* unlessContended(values, values(`DROP TABLE ${name}`)))) continue
    yield* Effect.logInfo("Dropped a detached partition.", { partition: name })
  }
})
