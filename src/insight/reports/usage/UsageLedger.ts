import { Effect } from "effect"
import type { SqlClient } from "effect/sql"
import type { Page } from "../../../contract/api/Paging.ts"
import { removedLedgerRows } from "../../../ledger/partitions/Removed.ts"
import { decodeRows } from "../../../platform/postgres/queries/Sql.ts"
import type { UsageLedgerFilter } from "../model/Filter.ts"
import { UsageLedgerRow } from "../model/Report.ts"
import { isChange, ledgerCondition, ledgerTables } from "./LedgerRows.ts"

const decodeLedger = decodeRows(UsageLedgerRow)

/** The columns of a row, in the order of its fields, given those of its license and its feature. */
export const ledgerColumnsWith = (license: (column: string) => string, featureCode: string): string =>
  `u.sequence, u.occurred_at, u.action, u.event_id, u.license_id, ${license("product_id")}, ${license("customer_id")},
  ${license("order_id")}, ${license("subscription_id")}, u.feature_id, ${featureCode} AS feature_code, u.amount,
  u.balance_after - CASE WHEN u.action ${isChange} THEN u.amount ELSE 0 END AS balance_before,
  u.balance_after, u.max_after, u.device_id, u.actor_type, u.actor_id, u.request_id, u.actor_name, u.credits, u.overage, u.reverses`

export const ledgerColumns = ledgerColumnsWith((column) => `l.${column}`, "f.code")

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
  const removedTo = rows.length > limit ? undefined : yield* removedLedgerRows(sql)
  const page: Page<UsageLedgerRow, number> = {
    items,
    ...(rows.length > limit && last !== undefined ? { next: last.sequence } : undefined),
    ...(removedTo === undefined ? undefined : { removedTo })
  }
  return page
})
