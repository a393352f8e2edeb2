/** Lists the changes of counters, the newest first, in pages by sequence number. */
import { Effect } from "effect"
import type { SqlClient } from "effect/sql"
import type { Page } from "../../api/Paging.ts"
import { decodeRows } from "../../postgres/Sql.ts"
import type { UsageLedgerFilter } from "../model/Filter.ts"
import { UsageLedgerRow } from "../model/Report.ts"
import { ledgerCondition, ledgerTables } from "./LedgerRows.ts"

const decodeLedger = decodeRows(UsageLedgerRow)

export const ledgerColumns = `u.sequence, u.occurred_at, u.action, u.event_id, u.license_id, l.product_id, l.customer_id,
  l.order_id, l.subscription_id, u.feature_id, f.code AS feature_code, u.amount,
  u.balance_after - CASE WHEN u.action IN ('consume', 'reset') THEN u.amount ELSE 0 END AS balance_before,
  u.balance_after, u.max_after, u.device_id, u.actor_type, u.actor_id, u.request_id`

export const usageLedger = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  filter: UsageLedgerFilter,
  { limit, cursor }: { readonly limit: number; readonly cursor?: number }
) {
  const rows = yield* decodeLedger(sql`
    SELECT ${sql.literal(ledgerColumns)}
    FROM ${ledgerTables(sql)}
    WHERE ${ledgerCondition(sql, filter)} AND ${cursor === undefined ? sql`TRUE` : sql`u.sequence < ${cursor}`}
    ORDER BY u.sequence DESC LIMIT ${limit + 1}`)
  const items = rows.slice(0, limit)
  const last = items.at(-1)
  const page: Page<UsageLedgerRow, number> =
    rows.length > limit && last !== undefined ? { items, next: last.sequence } : { items }
  return page
})
