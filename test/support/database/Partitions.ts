/** Ledgers of many rows, and the partitions that hold them. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { instant } from "../../../src/platform/postgres/driver/Parameters.ts"

export interface StoredPartition {
  readonly first: number
  readonly end: number | null
  readonly detached: boolean
}

/** The partitions of a table as recorded, the oldest first. Their bounds must be those that PostgreSQL has. */
export const partitionsOf = Effect.fnUntraced(function* (parent: "event_log" | "usage_ledger") {
  const sql = yield* SqlClient.SqlClient
  const recorded = yield* sql<StoredPartition & { readonly name: string }>`
    SELECT name, first_sequence AS first, end_sequence AS end, detached_at IS NOT NULL AS detached
    FROM sequence_partitions WHERE parent = ${parent} ORDER BY first_sequence`
  const bounds = yield* sql<{ readonly name: string; readonly bounds: string }>`
    SELECT relname AS name, pg_get_expr(relpartbound, class.oid) AS bounds
    FROM pg_inherits JOIN pg_class class ON class.oid = inhrelid WHERE inhparent = ${parent}::text::regclass`
  const attached = new Map(bounds.map((row) => [row.name, row.bounds]))
  const bound = (number: number | null, open: string) => (number === null ? open : `'${number}'`)
  for (const { detached, end, first, name } of recorded) {
    const from = first === 1 ? "MINVALUE" : bound(first, "")
    const wanted = detached ? undefined : `FOR VALUES FROM (${from}) TO (${bound(end, "MAXVALUE")})`
    if (attached.get(name) !== wanted) return yield* Effect.die(new Error(`${name} is ${attached.get(name)}`))
  }
  return recorded.map(({ detached, end, first }): StoredPartition => ({ first, end, detached }))
})

/**
 * Appends consumptions of a license, one in two minutes, with the event ids `use-<number of the row>`. The last one
 * happens at an instant.
 */
export const appendUses = Effect.fnUntraced(function* (
  license: { readonly license: string; readonly feature: string },
  uses: number,
  lastAt: number
) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    WITH counter AS (
      UPDATE event_sequence SET last = last + ${uses}, ledger_last = ledger_last + ${uses}
      RETURNING last - ${uses} AS base, ledger_last - ${uses} AS ledger_base
    )
    INSERT INTO usage_ledger (sequence, license_id, feature_id, action, event_id, amount, balance_after, device_id, actor_type,
      actor_id, request_id, occurred_at, event_sequence, event_feature_code)
    SELECT ledger_base + n, ${license.license}, ${license.feature}, 'consume', 'use-' || ledger_base + n, 1, n, 'dev_1', 'license',
      ${license.license}, 'req_test', ${instant(lastAt)}::timestamptz - (${uses}::int4 - n) * interval '2 minutes', base + n, 'export'
    FROM counter, generate_series(1, ${uses}::int4) AS n`
})

/** Appends events that are not consumptions. */
export const appendEvents = Effect.fnUntraced(function* (events: number, at: number) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    WITH counter AS (UPDATE event_sequence SET last = last + ${events} RETURNING last - ${events} AS base)
    INSERT INTO event_log (sequence, event_type, actor_type, actor_id, resource_type, resource_id, metadata, created_at)
    SELECT base + n, 'product.created', 'system', 'service', 'product', 'p', '{}', ${instant(at)}
    FROM counter, generate_series(1, ${events}::int4) AS n`
})
