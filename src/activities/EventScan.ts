/** Activities that are events. Their place in the feed is the event's own sequence number plus the refusals before it. */
import { Effect } from "effect"
import type { SqlClient } from "effect/sql"
import type { Code } from "../api/ErrorCode.ts"
import { eventColumns } from "../events/Events.ts"
import type { EventType } from "../events/EventType.ts"
import { columns, instant } from "../postgres/Parameters.ts"
import { equals, present } from "../postgres/Sql.ts"
import { actOf, resultOf, wantedTypes } from "./Action.ts"
import type { Activity, ActivityFilter, ActivitySource } from "./Activity.ts"
import type { FeedQuery } from "./FeedQuery.ts"
import { candidates, type KeyLookup, rangesBelow, type ScanResult, scanFinished, scanResultOf } from "./FeedScan.ts"

const table = { name: "events", number: "sequence", columns: eventColumns }

const actorTypes: { readonly [K in ActivitySource]: ReadonlyArray<Activity["actor_type"]> } = {
  runtime: ["license"],
  management: ["api_key", "oidc_subject"],
  system: ["system"]
}

const sourceOf = (actorType: Activity["actor_type"]): ActivitySource =>
  actorType === "license" ? "runtime" : actorType === "system" ? "system" : "management"

const ids = ["license_id", "product_id", "customer_id", "order_id", "subscription_id", "device_id"] as const

type EventRow = { readonly [K in (typeof ids)[number]]: string | null } & {
  readonly floor: number | null
  readonly sequence: number | null
  readonly event_sequence: number
  readonly event_type: EventType
  readonly actor_type: Activity["actor_type"]
  readonly actor_id: string
  readonly occurred_at: number
  readonly code: Code | null
  readonly request_id: string | null
  readonly feature_code: string | null
  readonly ip_address: string | null
}

/** The last event whose place in the feed lies below a number. */
const lastEventBelow = (sql: SqlClient.SqlClient, below: number) =>
  Effect.map(
    sql<{ readonly refusals: number | null; readonly next: number | null }>`
      SELECT
        (SELECT refusals_total FROM activity_offsets WHERE activity_sequence < ${below}
          ORDER BY activity_sequence DESC LIMIT 1) AS refusals,
        (SELECT after_sequence FROM activity_offsets WHERE activity_sequence >= ${below}
          ORDER BY activity_sequence LIMIT 1) AS next`,
    ([row]) => Math.min(below - 1 - (row?.refusals ?? 0), row?.next ?? Number.POSITIVE_INFINITY)
  )

/** The newest events below a place that the filter lets through, among at most `rowsMax`. */
export const scanEvents = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  { below, filter, keys, limit, rowsMax, stretches }: FeedQuery
) {
  const types = wantedTypes(filter)
  if (types?.length === 0 || keys?.length === 0) return scanFinished
  const last = below === undefined ? undefined : yield* lastEventBelow(sql, below)
  const left = rangesBelow(stretches, last)
  if (left.length === 0) return scanFinished
  const found = yield* sql<EventRow>`
    WITH ${candidates(sql, table, { by: keyedBy(filter, types, keys), stretches: left, rowsMax })}
    SELECT scanned.floor + ${refusalsBefore(sql, "scanned.floor")} AS floor, shown.*
    FROM scanned LEFT JOIN LATERAL (
      SELECT event_sequence + ${refusalsBefore(sql, "event_sequence")} AS sequence, passing.* FROM (
        SELECT * FROM (${explained(sql)}) AS told
        WHERE ${passes(sql, filter, types)} AND (scanned.floor IS NULL OR event_sequence >= scanned.floor)
        ORDER BY event_sequence DESC LIMIT ${limit}
      ) AS passing
    ) AS shown ON TRUE
    ORDER BY shown.event_sequence DESC`
  const { floor, rows } = scanResultOf(found, limit)
  const seen: ScanResult<Activity> = { floor, rows: rows.map(activityOf) }
  return seen
})

/** The index that leads to the fewest rows: of the resources that events are about, of their types, of who acted. */
const keyedBy = (
  { source }: ActivityFilter,
  types: ReadonlyArray<EventType> | undefined,
  keys: ReadonlyArray<string> | undefined
): ReadonlyArray<KeyLookup> | undefined => {
  if (keys !== undefined)
    return [
      { column: "resource_id", keys },
      { column: "metadata ->> 'license_id'", keys, only: "resource_type IN ('device', 'lease')" }
    ]
  if (types !== undefined) return [{ column: "event_type", keys: types, coarse: true }]
  return source === undefined ? undefined : [{ column: "actor_type", keys: actorTypes[source], coarse: true }]
}

const refusalsBefore = (sql: SqlClient.SqlClient, sequence: string) =>
  sql.literal(`coalesce((SELECT refusals_total FROM activity_offsets WHERE after_sequence < ${sequence}
    ORDER BY after_sequence DESC LIMIT 1), 0)`)

/** Where a record says itself whose it is. Records that were deleted since no longer do. */
const lookUp = (column: string, tables: { readonly [resource: string]: string }) =>
  Object.entries(tables)
    .map(
      ([resource, table]) => `WHEN '${resource}' THEN (SELECT r.${column} FROM ${table} r WHERE r.id = c.resource_id)`
    )
    .join(" ")

const products = lookUp("product_id", {
  policy: "policies",
  feature: "features",
  product_version: "product_versions",
  custom_field: "custom_field_definitions",
  order: "orders",
  subscription: "subscriptions"
})
const customers = lookUp("customer_id", { order: "orders", subscription: "subscriptions" })
const subscriptions = lookUp("subscription_id", { order: "orders" })
const features = lookUp("code", { feature: "features" })

/** Candidates with the records that they are about; one look-up by key for each row, whatever the planner thinks of it. */
const explained = (sql: SqlClient.SqlClient) =>
  sql.literal(`
  SELECT c.sequence AS event_sequence, c.event_type, c.actor_type, c.actor_id, c.created_at AS occurred_at, c.ip_address,
    c.metadata ->> 'code' AS code, nullif(c.metadata ->> 'request_id', 'req_none') AS request_id, about.license_id,
    coalesce(l.product_id, CASE c.resource_type WHEN 'product' THEN c.resource_id END, c.metadata ->> 'product_id',
      CASE c.resource_type ${products} END) AS product_id,
    coalesce(l.customer_id, CASE c.resource_type WHEN 'customer' THEN c.resource_id ${customers} END) AS customer_id,
    coalesce(l.order_id, CASE c.resource_type WHEN 'order' THEN c.resource_id END) AS order_id,
    coalesce(l.subscription_id, CASE c.resource_type WHEN 'subscription' THEN c.resource_id ${subscriptions} END) AS subscription_id,
    CASE c.resource_type WHEN 'device' THEN c.resource_id ELSE c.metadata ->> 'device_id' END AS device_id,
    coalesce(c.metadata ->> 'feature_code',
      CASE c.resource_type WHEN 'feature' THEN coalesce(c.metadata ->> 'code', CASE c.resource_type ${features} END) END) AS feature_code
  FROM candidates c
  CROSS JOIN LATERAL (
    SELECT CASE c.resource_type WHEN 'license' THEN c.resource_id ELSE c.metadata ->> 'license_id' END AS license_id
  ) AS about
  LEFT JOIN LATERAL (
    SELECT product_id, customer_id, order_id, subscription_id FROM licenses WHERE licenses.id = about.license_id LIMIT 1
  ) AS l ON TRUE`)

const passes = (sql: SqlClient.SqlClient, filter: ActivityFilter, types: ReadonlyArray<EventType> | undefined) => {
  const { feature_code, from, request_id, source, status_code, to } = filter
  return sql.and([
    equals(sql, { feature_code, request_id, ...Object.fromEntries(ids.map((name) => [name, filter[name]])) }),
    types === undefined ? sql`TRUE` : sql`event_type = ANY(${columns.text(types)}::text[])`,
    source === undefined ? sql`TRUE` : sql`actor_type = ANY(${columns.text(actorTypes[source])}::text[])`,
    // What the system does by itself answers nobody.
    status_code === undefined ? sql`TRUE` : sql`actor_type <> 'system'`,
    from === undefined ? sql`TRUE` : sql`occurred_at >= ${instant(from)}`,
    to === undefined ? sql`TRUE` : sql`occurred_at < ${instant(to)}`
  ])
}

const activityOf = ({ floor: _, event_type, code, ...row }: EventRow & { readonly sequence: number }): Activity => {
  const { action, status } = actOf(event_type, row.actor_type)
  const result_class = resultOf(event_type)
  return present<Activity>({
    ...row,
    action,
    source: sourceOf(row.actor_type),
    result_class,
    status_code: status ?? null,
    code: result_class === "refused" ? code : null
  })
}
