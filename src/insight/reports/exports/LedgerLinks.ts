/**
 * Adds the fields of license and feature to rows of the ledger. An export looks each license and feature up once and caches them:
 * joining them to each row takes PostgreSQL three quarters of the time that reading the row takes.
 */
import { Effect } from "effect"
import type { SqlClient } from "effect/sql"
import { formatTimestamp } from "../../../contract/api/Timestamp.ts"
import { columns } from "../../../platform/postgres/driver/Parameters.ts"
import { ledgerColumnsWith } from "../usage/UsageLedger.ts"
import { type LedgerRow, ledgerFields } from "./LedgerText.ts"

/** The columns of a row, with NULL for those that `makeLedgerLinks` fills in. */
export const ownColumns = ledgerColumnsWith((column) => `NULL AS ${column}`, "NULL")

/** A row before its time is formatted and its links are added, which happens in place. */
export type OwnRow = { -readonly [K in keyof LedgerRow]: K extends "1" ? number | string : LedgerRow[K] }

const [occurredAt, licenseAt, productAt, customerAt, orderAt, subscriptionAt, featureAt, codeAt] = (
  [
    "occurred_at",
    "license_id",
    "product_id",
    "customer_id",
    "order_id",
    "subscription_id",
    "feature_id",
    "feature_code"
  ] as const
).map((name) => ledgerFields.indexOf(name)) as [1, 4, 5, 6, 7, 8, 9, 10]

type License = readonly [
  id: string,
  product_id: string,
  customer_id: string | null,
  order_id: string | null,
  subscription_id: string | null
]
type Feature = readonly [id: string, code: string]

/** At most 10 MB each for licenses and features. If more are needed, all are dropped. */
const linksMax = 50_000

/** Links are read in the snapshot of the given connection, which must be that of the rows. */
export const makeLedgerLinks = () => {
  const licenses = new Map<string, License>()
  const codes = new Map<string, string | null>()

  const lookUp = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, rows: ReadonlyArray<OwnRow>) {
    const idsIn = (column: typeof licenseAt | typeof featureAt) =>
      columns.text(Array.from(new Set(rows.map((row) => row[column]))))
    if (licenses.size + rows.length > linksMax) licenses.clear()
    if (codes.size + rows.length > linksMax) codes.clear()
    const found = yield* sql`
      SELECT id, product_id, customer_id, order_id, subscription_id FROM licenses
      WHERE id = ANY(${idsIn(licenseAt)})`.values
    for (const license of found as never as ReadonlyArray<License>) licenses.set(license[0], license)
    const features = yield* sql`SELECT id, code FROM features WHERE id = ANY(${idsIn(featureAt)})`.values
    // Features that are not found are deleted.
    for (const row of rows) codes.set(row[featureAt], null)
    for (const [id, code] of features as never as ReadonlyArray<Feature>) codes.set(id, code)
  })

  const complete = (row: OwnRow): boolean => {
    const [license, code] = [licenses.get(row[licenseAt]), codes.get(row[featureAt])]
    if (license === undefined || code === undefined) return false
    row[occurredAt] = formatTimestamp(Number(row[occurredAt]))
    row[productAt] = license[1]
    row[customerAt] = license[2]
    row[orderAt] = license[3]
    row[subscriptionAt] = license[4]
    row[codeAt] = code
    return true
  }

  return Effect.fnUntraced(function* (sql: SqlClient.SqlClient, rows: ReadonlyArray<OwnRow>) {
    const incomplete = rows.filter((row) => !complete(row))
    if (incomplete.length > 0) {
      yield* lookUp(sql, incomplete)
      incomplete.forEach(complete)
    }
    return rows as ReadonlyArray<LedgerRow>
  })
}
