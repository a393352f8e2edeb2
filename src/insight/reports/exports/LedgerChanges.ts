/**
 * Tracks changes during an export of the ledger. Each row shows the links of its license and the code of its feature as of the
 * request, also after another node has taken the export over: the values before a change are read from the events.
 */
import { Effect } from "effect"
import type { SqlClient } from "effect/sql"

/** The fields of a row that a change of its license or feature would change. */
export const linkedFields = ["customer_id", "order_id", "subscription_id", "feature_code"] as const
type LinkedField = (typeof linkedFields)[number]

interface Change {
  readonly id: string
  readonly field: LinkedField
  readonly before: string | null
}

/** The earlier values of the changed fields of a license or feature. */
export type EarlierValues = { [K in LinkedField]?: string | null }

export interface LedgerChanges {
  /** By the ids of licenses and features. */
  readonly before: ReadonlyMap<string, EarlierValues>
  /** Reads the changes since the last call, in the snapshot that the rows are read in. */
  readonly follow: ReturnType<typeof makeFollow>
}

/** `since`: the sequence number of the event of the request; undefined if all rows are read in one snapshot. */
export const makeLedgerChanges = (since: number | undefined): LedgerChanges => {
  const before = new Map<string, EarlierValues>()
  return { before, follow: makeFollow(before, since) }
}

const makeFollow = (before: Map<string, EarlierValues>, since: number | undefined) => {
  let lastRead = since
  return Effect.fnUntraced(function* (sql: SqlClient.SqlClient) {
    if (lastRead === undefined) return
    const [counter] = yield* sql<{ readonly last: number }>`SELECT last FROM event_sequence`
    if (counter === undefined || counter.last <= lastRead) return
    const changes = yield* sql<Change>`
      SELECT resource_id AS id, replace(field, 'code', 'feature_code') AS field,
        CASE event_type WHEN 'feature.deleted' THEN metadata ->> 'code' ELSE metadata #>> ARRAY['changes', field, 'old'] END AS before
      FROM events, unnest(ARRAY['customer_id', 'order_id', 'subscription_id', 'code']) AS field
      WHERE sequence > ${lastRead} AND sequence <= ${counter.last} AND (
        event_type IN ('license.transferred', 'license.updated') AND field <> 'code' AND metadata -> 'changes' ? field
        OR event_type = 'feature.updated' AND field = 'code' AND metadata -> 'changes' ? field
        OR event_type = 'feature.deleted' AND field = 'code')
      ORDER BY sequence`
    for (const { before: value, field, id } of changes) before.set(id, { [field]: value, ...before.get(id) })
    lastRead = counter.last
  })
}
