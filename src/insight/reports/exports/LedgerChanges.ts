/**
 * Tracks changes during an export of the ledger. Each row shows the customer of its license and the code of its feature as of the
 * request, also after another node has taken the export over: the values before a change are read from the events.
 */
import { Effect } from "effect"
import type { SqlClient } from "effect/sql"

interface Change {
  readonly id: string
  readonly before: string | null
}

export interface LedgerChanges {
  /** The earlier customers of changed licenses, and codes of changed features, by id. */
  readonly before: ReadonlyMap<string, string | null>
  /** Reads the changes since the last call, in the snapshot that the rows are read in. */
  readonly follow: ReturnType<typeof makeFollow>
}

/** `since`: the sequence number of the event of the request; undefined if all rows are read in one snapshot. */
export const makeLedgerChanges = (since: number | undefined): LedgerChanges => {
  const before = new Map<string, string | null>()
  return { before, follow: makeFollow(before, since) }
}

const makeFollow = (before: Map<string, string | null>, since: number | undefined) => {
  let lastRead = since
  return Effect.fnUntraced(function* (sql: SqlClient.SqlClient) {
    if (lastRead === undefined) return
    const [counter] = yield* sql<{ readonly last: number }>`SELECT last FROM event_sequence`
    if (counter === undefined || counter.last <= lastRead) return
    const changes = yield* sql<Change>`
      SELECT resource_id AS id, CASE event_type WHEN 'license.transferred' THEN metadata #>> '{changes,customer_id,old}'
        WHEN 'feature.updated' THEN metadata #>> '{changes,code,old}' ELSE metadata ->> 'code' END AS before
      FROM events WHERE sequence > ${lastRead} AND sequence <= ${counter.last} AND (event_type = 'feature.deleted'
        OR event_type = 'license.transferred' AND metadata -> 'changes' ? 'customer_id'
        OR event_type = 'feature.updated' AND metadata -> 'changes' ? 'code')
      ORDER BY sequence`
    for (const { before: value, id } of changes) if (!before.has(id)) before.set(id, value)
    lastRead = counter.last
  })
}
