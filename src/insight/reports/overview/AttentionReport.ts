/**
 * What needs attention: licenses that are refused again and again, and quotas near their end. It reads the newest refusals and
 * events up to a number, so its time does not depend on the number of licenses, and no consumption writes anything for it.
 */
import { Effect, Schema } from "effect"
import type { SqlClient } from "effect/sql"
import { dayMillis, Timestamp } from "../../../contract/api/Timestamp.ts"
import type { EventType } from "../../../ledger/events/EventType.ts"
import { presentAt } from "../../../licensing/changes/Assignments.ts"
import type { LicenseStatus } from "../../../licensing/model/License.ts"
import { type AssignmentRow, assignmentColumns, assignmentOf } from "../../../licensing/rows/AssignmentRows.ts"
import { quotaOf } from "../../../licensing/rules/Quota.ts"
import { columns, instant } from "../../../platform/postgres/driver/Parameters.ts"
import { decodeRows } from "../../../platform/postgres/queries/Sql.ts"
import { type NearQuota, RefusedLicense } from "../model/Attention.ts"

const daysBack = 7
const refusalsRead = 20_000
/** Events of one type that are read. */
const eventsRead = 5_000
const shownMax = 20
const refusedMin = 3
/** The share of a quota that is left, at most. */
const nearShare = 0.2

/** The products of a report: all of them if undefined. */
type Products = ReadonlyArray<string> | undefined

/** Reads what needs attention of these products, or of all. */
export const attention = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, products: Products, now: number) {
  const rows = yield* decodeRefused(refusedOften(sql, products, now))
  const near = yield* quotasNearEnd(sql, products, now)
  return {
    refusals_from: rows[0]!.refusals_from,
    refused_licenses: rows.flatMap(({ refusals_from: _, ...license }) => (isRefused(license) ? [license] : [])),
    ...near
  }
})

/** The numbers come first, from the index on type and number. To read whole rows, the planner would scan all events. */
const newestEvents = (sql: SqlClient.SqlClient, type: EventType) => sql`
  SELECT event.resource_id AS license_id, event.metadata, event.created_at AS at
  FROM (
    SELECT sequence FROM event_log WHERE event_type = ${type} ORDER BY sequence DESC LIMIT ${eventsRead}
  ) AS newest CROSS JOIN LATERAL (
    SELECT resource_id, metadata, created_at FROM event_log e WHERE e.sequence = newest.sequence LIMIT 1
  ) AS event`

const ofProducts = (sql: SqlClient.SqlClient, products: Products) =>
  products === undefined ? sql`TRUE` : sql`l.product_id = ANY(${columns.text(products)}::text[])`

const { code, license_id, refusals } = RefusedLicense.fields
const decodeRefused = decodeRows(
  Schema.Struct({
    refusals_from: Timestamp,
    license_id: Schema.optionalKey(license_id),
    refusals: Schema.optionalKey(refusals),
    code: Schema.optionalKey(code),
    last_refused_at: Schema.optionalKey(Timestamp)
  })
)

const isRefused = (row: Partial<RefusedLicense>): row is RefusedLicense => row.license_id !== undefined

/** A refused activation that recorded an event is no row of refusals. OFFSET forces one look-up for each license. */
const refusedOften = (sql: SqlClient.SqlClient, products: Products, now: number) => sql`
  WITH refused AS MATERIALIZED (
    SELECT license_id, code, occurred_at AS at FROM refusals ORDER BY activity_sequence DESC LIMIT ${refusalsRead}
  ), activations AS MATERIALIZED (
    SELECT license_id, coalesce(metadata ->> 'code', 'ACTIVATION_LIMIT_REACHED') AS code, at
    FROM (${newestEvents(sql, "license.activation_limit_reached")}) AS events
  ), since AS (
    SELECT greatest(${instant(now - daysBack * dayMillis)}, (SELECT min(at) FROM refused HAVING count(*) = ${refusalsRead}),
      (SELECT min(at) FROM activations HAVING count(*) = ${eventsRead})) AS at
  ), counted AS (
    SELECT license_id, count(*) AS refusals, mode() WITHIN GROUP (ORDER BY code) AS code, max(calls.at) AS last_refused_at
    FROM (SELECT * FROM refused UNION ALL SELECT * FROM activations) AS calls CROSS JOIN since
    WHERE calls.at >= since.at GROUP BY license_id HAVING count(*) >= ${refusedMin}
  )
  SELECT since.at AS refusals_from, often.license_id, often.refusals, often.code, often.last_refused_at
  FROM since LEFT JOIN (
    SELECT counted.* FROM counted CROSS JOIN LATERAL (
      SELECT product_id FROM licenses WHERE id = counted.license_id OFFSET 0
    ) AS l WHERE ${ofProducts(sql, products)} ORDER BY refusals DESC, last_refused_at DESC, license_id LIMIT ${shownMax}
  ) AS often ON TRUE ORDER BY often.refusals DESC, often.last_refused_at DESC, often.license_id`

interface NearRow extends AssignmentRow {
  readonly status: LicenseStatus
  readonly access_ends: number | null
}

/** Each quota whose usage has reached the threshold, as it is now: it may have been raised, or begun anew, since. */
const quotasNearEnd = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, products: Products, now: number) {
  const [read] = yield* decodeRead(sql`
    SELECT min(at) AS quotas_from FROM (${newestEvents(sql, "usage.threshold_reached")}) AS events HAVING count(*) = ${eventsRead}`)
  const rows = yield* sql<NearRow>`
    SELECT ${sql.literal(assignmentColumns)}, l.status, l.access_ends
    FROM (
      SELECT DISTINCT license_id, metadata ->> 'feature_id' AS feature_id
      FROM (${newestEvents(sql, "usage.threshold_reached")}) AS events
    ) AS reached CROSS JOIN LATERAL (
      SELECT * FROM license_features n
      WHERE n.license_id = reached.license_id AND n.feature_id = reached.feature_id AND n.enabled OFFSET 0
    ) AS a CROSS JOIN LATERAL (
      SELECT o.product_id, o.status, o.expires_at + make_interval(days => p.grace_period_days) AS access_ends
      FROM licenses o JOIN policies p ON p.id = o.policy_id WHERE o.id = reached.license_id OFFSET 0
    ) AS l CROSS JOIN LATERAL (SELECT code, name FROM features WHERE features.id = reached.feature_id OFFSET 0) AS f
    WHERE l.status IN ('active', 'grace_period') AND (l.access_ends IS NULL OR l.access_ends > ${instant(now)})
      AND ${ofProducts(sql, products)}`
  const near = rows.flatMap((row) => nearOf(row, now))
  const sorted = near.toSorted((one, other) => one.remaining / one.quota - other.remaining / other.quota)
  return { ...read, near_quotas: sorted.slice(0, shownMax) }
})

const decodeRead = decodeRows(Schema.Struct({ quotas_from: Timestamp }))

const nearOf = (row: NearRow, now: number): ReadonlyArray<NearQuota> => {
  const { access_ends, license_id, status } = row
  const feature = presentAt(license_id, assignmentOf(row), access_ends ?? undefined, status, now)
  const { expires_at = Number.POSITIVE_INFINITY, extra_credits = 0, feature_code, feature_id, feature_name } = feature
  const quota = quotaOf(feature) ?? 0
  const remaining = (feature.remaining ?? 0) + extra_credits
  if (quota === 0 || remaining > quota * nearShare || expires_at <= now) return []
  const { resets_at } = feature
  return [
    {
      license_id,
      feature_id,
      feature_code,
      feature_name,
      quota,
      remaining,
      ...(resets_at === undefined ? undefined : { resets_at })
    }
  ]
}
