/**
 * Scans the events of the feed. An event's number in the feed is its sequence number plus the number of refusals recorded
 * before it.
 */
import { Effect, Schema, Struct } from "effect"
import type { SqlClient } from "effect/sql"
import type { ProductIds } from "../../access/CurrentActor.ts"
import { Count, PositiveCount } from "../../contract/api/Int64.ts"
import { eventColumns } from "../../ledger/events/Events.ts"
import { type EventType, eventTypes } from "../../ledger/events/EventType.ts"
import { isEventOf } from "../../ledger/events/OwnEvents.ts"
import { columns } from "../../platform/postgres/driver/Parameters.ts"
import { decodeRows, equals, within } from "../../platform/postgres/queries/Sql.ts"
import { eventActionOf, matchingTypes, resultOf } from "./Action.ts"
import { Activity, type ActivityFilter, type ActivitySource } from "./Activity.ts"
import { candidates, type KeyLookup, rangesBelow, type ScannedRow, scanFinished, scanResultOf } from "./FeedScan.ts"
import type { FeedQuery } from "./ScanRange.ts"

export const eventTable = {
  name: "events",
  sequenceColumn: "sequence",
  columns: eventColumns,
  rowWith: (number: string) => `event_numbered(${number})`
}

const actorTypes: { readonly [K in ActivitySource]: ReadonlyArray<Activity["actor_type"]> } = {
  runtime: ["license"],
  management: ["api_key", "oidc_subject"],
  system: ["system"]
}

const sourceOf = (actorType: Activity["actor_type"]): ActivitySource =>
  actorType === "license" ? "runtime" : actorType === "system" ? "system" : "management"

const ids = ["license_id", "product_id", "customer_id", "order_id", "subscription_id", "device_id"] as const

const EventRow = Schema.Struct({
  ...Struct.omit(Activity.fields, ["action", "source", "result_class", "status_code"]),
  event_sequence: PositiveCount,
  event_type: Schema.Literals(eventTypes),
  /** The `code` in the event's metadata: an error code in the event of a refused activation only. */
  code: Schema.optionalKey(Schema.String)
})
type EventRow = typeof EventRow.Type
const decodeEventRows = decodeRows(EventRow)

const decodeOffsets = decodeRows(
  Schema.Struct({ refusals: Schema.optionalKey(Count), next: Schema.optionalKey(Count) })
)

const lastEventBelow = (sql: SqlClient.SqlClient, below: number) =>
  Effect.map(
    decodeOffsets(sql`
      SELECT
        (SELECT refusals_total FROM activity_offsets WHERE activity_sequence < ${below}
          ORDER BY activity_sequence DESC LIMIT 1) AS refusals,
        (SELECT after_sequence FROM activity_offsets WHERE activity_sequence >= ${below}
          ORDER BY activity_sequence LIMIT 1) AS next`),
    ([row]) => Math.min(below - 1 - (row?.refusals ?? 0), row?.next ?? Number.POSITIVE_INFINITY)
  )

export const scanEvents = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  { below, filter, limit, products, ranges, resourceIds, rowsMax }: FeedQuery
) {
  const types = matchingTypes(filter)
  if (types?.length === 0 || resourceIds?.length === 0) return scanFinished
  const last = below === undefined ? undefined : yield* lastEventBelow(sql, below)
  const remaining = rangesBelow(ranges, last)
  if (remaining.length === 0) return scanFinished
  const scanned = yield* sql<ScannedRow>`
    WITH ${candidates(sql, eventTable, { lookups: lookupsOf(filter, types, resourceIds), ranges: remaining, rowsMax })}
    SELECT scanned.floor + ${refusalsBefore(sql, "scanned.floor")} AS floor, matching.*
    FROM scanned LEFT JOIN LATERAL (
      SELECT event_sequence + ${refusalsBefore(sql, "event_sequence")} AS sequence, event.* FROM (
        SELECT * FROM (${joined(sql, products)}) AS joined
        WHERE ${matches(sql, filter, types)} AND (scanned.floor IS NULL OR event_sequence >= scanned.floor)
        ORDER BY event_sequence DESC LIMIT ${limit}
      ) AS event
    ) AS matching ON TRUE
    ORDER BY matching.event_sequence DESC`
  const { floor, rows } = scanResultOf(scanned, limit)
  return { floor, rows: (yield* decodeEventRows(Effect.succeed(rows))).map(activityOf) }
})

/** Chooses the index that finds the fewest rows: by resource, by event type, or by actor. */
const lookupsOf = (
  { source }: ActivityFilter,
  types: ReadonlyArray<EventType> | undefined,
  resourceIds: ReadonlyArray<string> | undefined
): ReadonlyArray<KeyLookup> | undefined => {
  if (resourceIds !== undefined)
    return [
      { column: "resource_id", keys: resourceIds },
      { column: "metadata ->> 'license_id'", keys: resourceIds, condition: "resource_type IN ('device', 'lease')" }
    ]
  if (types !== undefined) return [{ column: "event_type", keys: types, fewValues: true }]
  return source === undefined ? undefined : [{ column: "actor_type", keys: actorTypes[source], fewValues: true }]
}

const refusalsBefore = (sql: SqlClient.SqlClient, sequence: string) =>
  sql.literal(`coalesce((SELECT refusals_total FROM activity_offsets WHERE after_sequence < ${sequence}
    ORDER BY after_sequence DESC LIMIT 1), 0)`)

/** Null if the resource is deleted. */
const resourceColumn = (column: string, tables: { readonly [resource: string]: string }) =>
  Object.entries(tables)
    .map(
      ([resource, table]) => `WHEN '${resource}' THEN (SELECT r.${column} FROM ${table} r WHERE r.id = c.resource_id)`
    )
    .join(" ")

const products = resourceColumn("product_id", {
  policy: "policies",
  feature: "features",
  product_version: "product_versions",
  custom_field: "custom_field_definitions",
  order: "orders",
  subscription: "subscriptions"
})
const customers = resourceColumn("customer_id", { order: "orders", subscription: "subscriptions" })
const subscriptions = resourceColumn("subscription_id", { order: "orders" })
const features = resourceColumn("code", { feature: "features" })

/** Candidates joined with their licenses and resources. LATERAL and LIMIT force the planner to one lookup by key for each row. */
const joined = (sql: SqlClient.SqlClient, productIds: ProductIds) => sql`
  ${joinedEvents(sql)} WHERE ${productIds === undefined ? sql`TRUE` : isEventOf(sql, "c", productIds)}`

const joinedEvents = (sql: SqlClient.SqlClient) =>
  sql.literal(`
  SELECT c.sequence AS event_sequence, c.event_type, c.actor_type, c.actor_id, c.actor_name, c.created_at AS occurred_at, c.ip_address,
    c.metadata ->> 'code' AS code, nullif(c.metadata ->> 'request_id', 'req_none') AS request_id, subject.license_id,
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
  ) AS subject
  LEFT JOIN LATERAL (
    SELECT product_id, customer_id, order_id, subscription_id FROM licenses WHERE licenses.id = subject.license_id LIMIT 1
  ) AS l ON TRUE`)

const matches = (sql: SqlClient.SqlClient, filter: ActivityFilter, types: ReadonlyArray<EventType> | undefined) => {
  const { feature_code, request_id, source, status_code } = filter
  return sql.and([
    equals(sql, { feature_code, request_id, ...Object.fromEntries(ids.map((name) => [name, filter[name]])) }),
    types === undefined ? sql`TRUE` : sql`event_type = ANY(${columns.text(types)}::text[])`,
    source === undefined ? sql`TRUE` : sql`actor_type = ANY(${columns.text(actorTypes[source])}::text[])`,
    // The system's own actions have no response, so no status.
    status_code === undefined ? sql`TRUE` : sql`actor_type <> 'system'`,
    within(sql, "occurred_at", filter)
  ])
}

const activityOf = ({ event_type, code, ...row }: EventRow): Activity => {
  const { action, status } = eventActionOf(event_type, row.actor_type)
  const result_class = resultOf(event_type)
  return {
    ...row,
    action,
    source: sourceOf(row.actor_type),
    result_class,
    ...(status === undefined ? undefined : { status_code: status }),
    ...(result_class === "refused" && isErrorCode(code) ? { code } : undefined)
  }
}

const isErrorCode = Schema.is(Activity.fields.code)
