/** Activities that are refused calls of the runtime. */
import { Effect } from "effect"
import type { SqlClient } from "effect/sql"
import type { Code } from "../api/ErrorCode.ts"
import { instant } from "../postgres/Parameters.ts"
import { equals, present } from "../postgres/Sql.ts"
import type { Activity, ActivityFilter } from "./Activity.ts"
import type { FeedQuery } from "./FeedQuery.ts"
import { candidates, type KeyLookup, rangesBelow, type ScanResult, scanFinished, scanResultOf } from "./FeedScan.ts"

const own =
  "activity_sequence, occurred_at, action, license_id, device_id, feature_code, code, status_code, request_id, ip_address"
const table = { name: "refusals", number: "activity_sequence", columns: own }

const linked = ["product_id", "customer_id", "order_id", "subscription_id"] as const

type RefusalRow = { readonly [K in (typeof linked)[number]]: string | null } & {
  readonly floor: number | null
  readonly sequence: number | null
  readonly occurred_at: number
  readonly action: string
  readonly license_id: string
  readonly device_id: string | null
  readonly feature_code: string | null
  readonly code: Code
  readonly status_code: number
  readonly request_id: string
  readonly ip_address: string | null
}

/** The newest refusals below a place that the filter lets through, among at most `rowsMax`. */
export const scanRefusals = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  { below, filter, keys, limit, rowsMax }: FeedQuery
) {
  const { result_class = "refused", source = "runtime" } = filter
  if (result_class !== "refused" || source !== "runtime" || keys?.length === 0) return scanFinished
  const stretches = rangesBelow([{ from: 1, to: undefined }], below === undefined ? undefined : below - 1)
  if (stretches.length === 0) return scanFinished
  const found = yield* sql<RefusalRow>`
    WITH ${candidates(sql, table, { by: keyedBy(filter, keys), stretches, rowsMax })}
    SELECT scanned.floor, shown.*
    FROM scanned LEFT JOIN LATERAL (
      SELECT * FROM (${explained(sql)}) AS told
      WHERE ${passes(sql, filter)} AND (scanned.floor IS NULL OR sequence >= scanned.floor)
      ORDER BY sequence DESC LIMIT ${limit}
    ) AS shown ON TRUE
    ORDER BY shown.sequence DESC`
  const { floor, rows } = scanResultOf(found, limit)
  const seen: ScanResult<Activity> = { floor, rows: rows.map(activityOf) }
  return seen
})

const keyedBy = (
  { action, request_id }: ActivityFilter,
  keys: ReadonlyArray<string> | undefined
): ReadonlyArray<KeyLookup> | undefined => {
  if (request_id !== undefined) return [{ column: "request_id", keys: [request_id] }]
  if (keys !== undefined) return [{ column: "license_id", keys }]
  return action === undefined ? undefined : [{ column: "action", keys: [action], coarse: true }]
}

const explained = (sql: SqlClient.SqlClient) =>
  sql.literal(`
  SELECT c.activity_sequence AS sequence, c.occurred_at, c.action, c.license_id, c.device_id, c.feature_code, c.code, c.status_code,
    c.request_id, c.ip_address, l.product_id, l.customer_id, l.order_id, l.subscription_id
  FROM candidates c LEFT JOIN LATERAL (
    SELECT product_id, customer_id, order_id, subscription_id FROM licenses WHERE licenses.id = c.license_id LIMIT 1
  ) AS l ON TRUE`)

const passes = (sql: SqlClient.SqlClient, filter: ActivityFilter) => {
  const { action, device_id, feature_code, from, license_id, request_id, status_code, to } = filter
  return sql.and([
    equals(sql, { action, license_id, device_id, feature_code, request_id }),
    equals(sql, Object.fromEntries(linked.map((name) => [name, filter[name]]))),
    status_code === undefined ? sql`TRUE` : sql`status_code = ${status_code}`,
    from === undefined ? sql`TRUE` : sql`occurred_at >= ${instant(from)}`,
    to === undefined ? sql`TRUE` : sql`occurred_at < ${instant(to)}`
  ])
}

const activityOf = ({ floor: _, ...row }: RefusalRow & { readonly sequence: number }): Activity =>
  present<Activity>({
    ...row,
    source: "runtime",
    result_class: "refused",
    actor_type: "license",
    actor_id: row.license_id
  } as never)
