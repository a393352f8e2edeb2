import { Effect, Schema, Struct } from "effect"
import type { SqlClient } from "effect/sql"
import { ownedBy } from "../../access/productLimits/OwnedRows.ts"
import { decodeRows, equals, within } from "../../platform/postgres/queries/Sql.ts"
import { Activity, type ActivityFilter } from "./Activity.ts"
import { candidates, type KeyLookup, rangesBelow, type ScannedRow, scanFinished, scanResultOf } from "./FeedScan.ts"
import type { FeedQuery } from "./ScanRange.ts"

const refusalColumns =
  "activity_sequence, occurred_at, action, license_id, device_id, feature_code, code, status_code, request_id, ip_address"
const table = {
  name: "refusals",
  sequenceColumn: "activity_sequence",
  columns: refusalColumns,
  rowWith: (number: string) => `refusals WHERE activity_sequence = ${number}`
}

const licenseColumns = ["product_id", "customer_id", "order_id", "subscription_id"] as const

const RefusalRow = Schema.Struct({
  ...Struct.omit(Activity.fields, ["source", "result_class", "actor_type", "actor_id", "actor_name", "event_sequence"]),
  license_id: Schema.String
})
const decodeRefusals = decodeRows(RefusalRow)

export const scanRefusals = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  { below, filter, limit, products, resourceIds, rowsMax }: FeedQuery
) {
  const { result_class = "refused", source = "runtime" } = filter
  if (result_class !== "refused" || source !== "runtime" || resourceIds?.length === 0) return scanFinished
  const ranges = rangesBelow([{ from: 1, to: undefined }], below === undefined ? undefined : below - 1)
  if (ranges.length === 0) return scanFinished
  const scanned = yield* sql<ScannedRow>`
    WITH ${candidates(sql, table, { lookups: lookupsOf(filter, resourceIds), ranges, rowsMax })}
    SELECT scanned.floor, matching.*
    FROM scanned LEFT JOIN LATERAL (
      SELECT * FROM (${joined(sql)}) AS joined
      WHERE ${matches(sql, filter)} AND ${ownedBy(sql, "licenses", "joined", products)} AND (scanned.floor IS NULL OR sequence >= scanned.floor)
      ORDER BY sequence DESC LIMIT ${limit}
    ) AS matching ON TRUE
    ORDER BY matching.sequence DESC`
  const { floor, rows } = scanResultOf(scanned, limit)
  return { floor, rows: (yield* decodeRefusals(Effect.succeed(rows))).map(activityOf) }
})

const lookupsOf = (
  { action, request_id }: ActivityFilter,
  resourceIds: ReadonlyArray<string> | undefined
): ReadonlyArray<KeyLookup> | undefined => {
  if (request_id !== undefined) return [{ column: "request_id", keys: [request_id] }]
  if (resourceIds !== undefined) return [{ column: "license_id", keys: resourceIds }]
  return action === undefined ? undefined : [{ column: "action", keys: [action], fewValues: true }]
}

const joined = (sql: SqlClient.SqlClient) =>
  sql.literal(`
  SELECT c.activity_sequence AS sequence, c.occurred_at, c.action, c.license_id, c.device_id, c.feature_code, c.code, c.status_code,
    c.request_id, c.ip_address, l.product_id, l.customer_id, l.order_id, l.subscription_id
  FROM candidates c LEFT JOIN LATERAL (
    SELECT product_id, customer_id, order_id, subscription_id FROM licenses WHERE licenses.id = c.license_id LIMIT 1
  ) AS l ON TRUE`)

const matches = (sql: SqlClient.SqlClient, filter: ActivityFilter) => {
  const { action, device_id, feature_code, license_id, request_id, status_code } = filter
  return sql.and([
    equals(sql, { action, license_id, device_id, feature_code, request_id }),
    equals(sql, Object.fromEntries(licenseColumns.map((name) => [name, filter[name]]))),
    status_code === undefined ? sql`TRUE` : sql`status_code = ${status_code}`,
    within(sql, "occurred_at", filter)
  ])
}

const activityOf = (row: typeof RefusalRow.Type): Activity => ({
  ...row,
  source: "runtime",
  result_class: "refused",
  actor_type: "license",
  actor_id: row.license_id
})
