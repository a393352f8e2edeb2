/**
 * The resources of the products of a token, so that the feed of a small product is found by its resources. Without them, a page
 * scans the events of all products.
 */
import { Effect, Schema } from "effect"
import type { SqlClient } from "effect/sql"
import type { EventType } from "../../ledger/events/EventType.ts"
import { columns } from "../../platform/postgres/driver/Parameters.ts"
import { decodeRows, unionAll } from "../../platform/postgres/queries/Sql.ts"
import { eventTable } from "./EventScan.ts"
import { candidates } from "./FeedScan.ts"
import { resourcesMax } from "./ScanRange.ts"

const tables = [
  "policies",
  "features",
  "product_versions",
  "custom_field_definitions",
  "orders",
  "subscriptions",
  "licenses"
]

/** Of a deleted record, the events that name its product are in the feed. */
const deletions: ReadonlyArray<EventType> = [
  "policy.deleted",
  "feature.deleted",
  "product_version.deleted",
  "custom_field.deleted"
]

/** Deletions of each type that are read. */
const deletionsMax = 500

const decodeIds = decodeRows(Schema.Struct({ id: Schema.String }))
const decodeDeleted = decodeRows(Schema.Struct({ id: Schema.optionalKey(Schema.String), isPartial: Schema.Boolean }))

/** Undefined if the products have too many resources, or the service too many deletions. */
export const ownResourceIds = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, products: ReadonlyArray<string>) {
  const isOwn = (column: string) => sql`${sql(column)} = ANY(${columns.text(products)}::text[])`
  const existing = yield* decodeIds(sql`
    SELECT id FROM (
      SELECT id FROM products WHERE ${isOwn("id")}
      UNION ALL ${unionAll(
        sql,
        tables.map(
          (table) => sql`(SELECT id FROM ${sql(table)} WHERE ${isOwn("product_id")} LIMIT ${resourcesMax + 1})`
        )
      )}
      UNION ALL (
        SELECT customer_id FROM licenses WHERE ${isOwn("product_id")} AND customer_id IS NOT NULL LIMIT ${resourcesMax + 1}
      )
    ) AS resources LIMIT ${resourcesMax + 1}`)
  if (existing.length > resourcesMax) return undefined
  const lookups = [{ column: "event_type", keys: deletions, fewValues: true }]
  const target = { lookups, ranges: [{ from: 1, to: undefined }], rowsMax: deletions.length * deletionsMax }
  const deleted = yield* decodeDeleted(sql`
    WITH ${candidates(sql, eventTable, target)}
    SELECT scanned.floor IS NOT NULL AS "isPartial", own.id
    FROM scanned LEFT JOIN (
      SELECT resource_id AS id FROM candidates WHERE metadata ->> 'product_id' = ANY(${columns.text(products)}::text[])
    ) AS own ON TRUE`)
  const ids = new Set([...existing, ...deleted].flatMap(({ id }) => id ?? []))
  return deleted.some(({ isPartial }) => isPartial) || ids.size > resourcesMax ? undefined : [...ids]
})
