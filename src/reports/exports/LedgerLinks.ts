/**
 * What a row of the ledger shows of its license and feature. An export looks each license and feature up once and keeps them for the
 * rows that follow: joining them to each row takes PostgreSQL three quarters of the time that reading the row takes.
 */
import { Effect } from "effect"
import type { SqlClient } from "effect/sql"
import { formatTimestamp } from "../../api/Timestamp.ts"
import { columns } from "../../postgres/Parameters.ts"
import type { LedgerRow } from "./LedgerText.ts"

/** The columns of the ledger itself. */
export const ownColumns = `u.sequence, u.occurred_at, u.action, u.event_id, u.license_id, u.feature_id, u.amount,
  u.balance_after - CASE WHEN u.action IN ('consume', 'reset') THEN u.amount ELSE 0 END AS balance_before,
  u.balance_after, u.max_after, u.device_id, u.actor_type, u.actor_id, u.request_id`

export type OwnRow = readonly [
  sequence: LedgerRow[0],
  occurred_at: number,
  action: LedgerRow[2],
  event_id: LedgerRow[3],
  license_id: LedgerRow[4],
  feature_id: LedgerRow[9],
  amount: LedgerRow[11],
  balance_before: LedgerRow[12],
  balance_after: LedgerRow[13],
  max_after: LedgerRow[14],
  device_id: LedgerRow[15],
  actor_type: LedgerRow[16],
  actor_id: LedgerRow[17],
  request_id: LedgerRow[18]
]

type License = readonly [
  id: string,
  product_id: string,
  customer_id: string | null,
  order_id: string | null,
  subscription_id: string | null
]
type Feature = readonly [id: string, code: string]

/** Licenses and features in memory, each: 10 MB at most. When more are needed, all are dropped. */
const linksMax = 50_000

/** Completes rows: all of them have to be read in the snapshot in which the result is read. */
export const makeLedgerLinks = () => {
  const licenses = new Map<string, License>()
  const codes = new Map<string, string | null>()

  return Effect.fnUntraced(function* (sql: SqlClient.SqlClient, rows: ReadonlyArray<OwnRow>) {
    const licenseIds = unknown(licenses, rows, 4)
    if (licenseIds.length > 0) {
      const found = yield* sql`
        SELECT id, product_id, customer_id, order_id, subscription_id FROM licenses
        WHERE id = ANY(${columns.text(licenseIds)})`.values
      for (const license of found as never as ReadonlyArray<License>) licenses.set(license[0], license)
    }
    const featureIds = unknown(codes, rows, 5)
    if (featureIds.length > 0) {
      const found = yield* sql`SELECT id, code FROM features WHERE id = ANY(${columns.text(featureIds)})`.values
      // A feature that is not found has been deleted.
      for (const id of featureIds) codes.set(id, null)
      for (const [id, code] of found as never as ReadonlyArray<Feature>) codes.set(id, code)
    }
    return rows.map((row) => completed(row, licenses.get(row[4])!, codes.get(row[5]) ?? null))
  })
}

/** The ids in a column of rows that are not known yet. Makes room for them. */
const unknown = (known: Map<string, unknown>, rows: ReadonlyArray<OwnRow>, column: 4 | 5): Array<string> => {
  const missing = () => Array.from(new Set(rows.map((row) => row[column]).filter((id) => !known.has(id))))
  const ids = missing()
  if (known.size + ids.length <= linksMax) return ids
  known.clear()
  return missing()
}

const completed = (
  [
    sequence,
    occurred_at,
    action,
    event_id,
    license_id,
    feature_id,
    amount,
    balance_before,
    balance_after,
    max_after,
    device_id,
    actor_type,
    actor_id,
    request_id
  ]: OwnRow,
  [, product_id, customer_id, order_id, subscription_id]: License,
  feature_code: string | null
): LedgerRow => [
  sequence,
  formatTimestamp(occurred_at),
  action,
  event_id,
  license_id,
  product_id,
  customer_id,
  order_id,
  subscription_id,
  feature_id,
  feature_code,
  amount,
  balance_before,
  balance_after,
  max_after,
  device_id,
  actor_type,
  actor_id,
  request_id
]
