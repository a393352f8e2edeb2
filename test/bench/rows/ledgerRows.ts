/**
 * Fills the ledger of a database that scaleRows.ts has filled: uses of metered features over a year, as the service
 * writes them.
 */
import { Effect } from "effect"
import type { Session, Sizes } from "./scaleRows.ts"

/**
 * Rows of a database for reports: enough licenses that joining them has a cost, and a ledger much larger than all other
 * tables.
 */
export const reportSizes = (share: number): Sizes => ({
  products: 100,
  licenses: Math.max(1_000, 100_000 * share),
  customers: Math.max(100, 10_000 * share),
  devices: Math.max(1_000, 100_000 * share),
  events: Math.max(100, 100_000 * share),
  others: Math.max(100, 1_000 * share),
  crowd: 0
})

/** The days over which the rows are spread; the last one is today. */
export const ledgerDays = 365

/** Writes rows in the order of their times: three of four are of the hot product, a few are resets and top-ups. */
export const fillLedger = Effect.fnUntraced(function* ({ values }: Session, rows: number, licenses: number) {
  yield* values("SET session_replication_role = replica")
  yield* values("SET maintenance_work_mem = '256MB'")
  // The table contains only these rows: reports are counted.
  yield* values("TRUNCATE usage_ledger, usage_event_ids")
  yield* values("UPDATE event_sequence SET ledger_last = 0")
  const indexes = [
    "usage_ledger_license",
    "usage_ledger_time",
    "usage_ledger_from_1_event",
    "usage_ledger_from_1_license_event"
  ]
  const definitions = yield* values(
    `SELECT indexdef FROM pg_indexes WHERE indexname IN (${indexes.map((name) => `'${name}'`).join(", ")})`
  )
  for (const name of indexes) yield* values(`DROP INDEX ${name}`)
  yield* values(`
    INSERT INTO usage_ledger (sequence, license_id, feature_id, action, event_id, amount, balance_after, max_after, device_id,
      actor_type, actor_id, request_id, occurred_at, event_sequence, event_feature_code, event_ip_address)
    SELECT n, l.id, f.id, action, CASE WHEN action = 'consume' THEN 'event-' || n END,
      CASE WHEN action = 'reset' THEN -5 ELSE 1 + n % 20 END, n + 20, 1000000000,
      CASE WHEN action = 'consume' THEN replace(l.id, 'lic_', 'dev_') END,
      CASE WHEN action = 'consume' THEN 'license' ELSE 'api_key' END, l.id,
      'req_' || upper(lpad(to_hex(n), 26, '0')),
      date_trunc('milliseconds', now() - (${rows} - n) * (interval '${ledgerDays} days' / ${rows})),
      CASE WHEN action = 'consume' THEN last + n END, CASE WHEN action = 'consume' THEN f.code END,
      CASE WHEN action = 'consume' THEN '192.0.2.1' END
    FROM event_sequence, generate_series(1, ${rows}) n,
      LATERAL (SELECT CASE WHEN n % 500 = 7 THEN 'reset' WHEN n % 500 = 8 THEN 'top_up' ELSE 'consume' END AS action,
        (hashint8extended(n, 21) & 2147483647) % ${licenses} + 1 AS number) drawn
      JOIN licenses l ON l.id = 'lic_' || upper(lpad(to_hex(number), 26, '0'))
      JOIN (SELECT DISTINCT ON (product_id) product_id, id, code FROM features ORDER BY product_id, id) f ON f.product_id = l.product_id`)
  for (const [definition] of definitions) yield* values(String(definition).replace(" ON ONLY ", " ON "))
  yield* values(`SELECT copy_event_ids(0, ${rows})`)
  yield* values(`UPDATE event_sequence SET ledger_last = ${rows}, last = last + ${rows}`)
  yield* values("SET session_replication_role = origin")
  yield* values("VACUUM (ANALYZE) usage_ledger")
})
