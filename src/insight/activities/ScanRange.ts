/**
 * Narrows a scan of the feed to ranges of sequence numbers and to the resources of matching events. It only makes the scan
 * shorter: each row is checked against the whole filter afterwards.
 */
import { Effect, Schema } from "effect"
import type { SqlClient } from "effect/sql"
import type { ProductIds } from "../../access/CurrentActor.ts"
import { PositiveCount } from "../../contract/api/Int64.ts"
import { hourMillis } from "../../contract/api/Timestamp.ts"
import { instant } from "../../platform/postgres/driver/Parameters.ts"
import { decodeRows } from "../../platform/postgres/queries/Sql.ts"
import type { ActivityFilter } from "./Activity.ts"

/** If a filter matches more resources, the feed is scanned instead of looking up each resource. */
export const resourcesMax = 200

/** Sequence numbers of events, both ends inclusive; the newest range has no end. */
export interface SequenceRange {
  readonly from: number
  readonly to: number | undefined
}

export interface FeedQuery {
  readonly filter: ActivityFilter
  readonly products: ProductIds
  /** The resource ids of matching events; undefined if there are too many. */
  readonly resourceIds: ReadonlyArray<string> | undefined
  /** The ranges that contain the events of the filter's period. */
  readonly ranges: ReadonlyArray<SequenceRange>
  /** Only activities below this number; undefined: starts with the newest. */
  readonly below: number | undefined
  /** The most rows that a scan reads. */
  readonly rowsMax: number
  /** The most rows that a scan returns. */
  readonly limit: number
}

const decodeIds = decodeRows(Schema.Struct({ id: Schema.String }))
const decodeBounds = decodeRows(
  Schema.Struct({
    indexed: Schema.optionalKey(PositiveCount),
    first: Schema.optionalKey(PositiveCount),
    last: Schema.optionalKey(PositiveCount)
  })
)

/** Undefined if there are too many resources, or the filter names none. */
export const resourceIdsOf = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, filter: ActivityFilter) {
  const { customer_id, device_id, license_id, order_id, subscription_id } = filter
  if (license_id !== undefined) return [license_id]
  const resources =
    device_id !== undefined
      ? sql`SELECT license_id AS id FROM devices WHERE id = ${device_id}`
      : order_id !== undefined
        ? sql`SELECT ${order_id}::text AS id UNION ALL SELECT id FROM licenses WHERE order_id = ${order_id}`
        : subscription_id !== undefined
          ? sql`
              SELECT ${subscription_id}::text AS id
              UNION ALL SELECT id FROM licenses WHERE subscription_id = ${subscription_id}
              UNION ALL SELECT id FROM orders WHERE subscription_id = ${subscription_id}`
          : customer_id !== undefined
            ? sql`
                SELECT ${customer_id}::text AS id
                UNION ALL SELECT id FROM licenses WHERE customer_id = ${customer_id}
                UNION ALL SELECT id FROM orders WHERE customer_id = ${customer_id}
                UNION ALL SELECT id FROM subscriptions WHERE customer_id = ${customer_id}`
            : undefined
  if (resources === undefined) return undefined
  const rows = yield* decodeIds(sql`SELECT id FROM (${resources}) AS resources LIMIT ${resourcesMax + 1}`)
  return rows.length > resourcesMax ? undefined : rows.map(({ id }) => id)
})

interface Period {
  readonly from?: number
  readonly to?: number
}

/** The ranges that contain the events of a period, newest first. */
export const sequenceRanges = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, period: Period) {
  const { from, to } = period
  if (from === undefined && to === undefined) return [{ from: 1, to: undefined }]
  const [bounds] = yield* decodeBounds(sql`
    SELECT max(last_sequence) AS indexed, min(first_sequence) FILTER (WHERE ${overlaps(sql, period)}) AS first,
      max(last_sequence) FILTER (WHERE ${overlaps(sql, period)}) AS last
    FROM event_spans`)
  const { first, last, indexed = 0 } = bounds ?? {}
  const newest: SequenceRange = { from: indexed + 1, to: undefined }
  return first === undefined || last === undefined ? [newest] : [newest, { from: first, to: last }]
})

const overlaps = (sql: SqlClient.SqlClient, { from, to }: Period) =>
  sql.and([
    from === undefined ? sql`TRUE` : sql`last_at >= ${instant(from)}`,
    to === undefined ? sql`TRUE` : sql`first_at < ${instant(to)}`
  ])

const digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
const ownRequestId = /^req_[0-7][0-9A-HJKMNP-TV-Z]{25}$/

/** A generated request id contains its time, so only the hours around it are scanned. */
export const scanPeriod = ({ from, request_id, to }: ActivityFilter): Period => {
  if (request_id === undefined || !ownRequestId.test(request_id)) {
    return { ...(from === undefined ? undefined : { from }), ...(to === undefined ? undefined : { to }) }
  }
  const generatedAt = [...request_id.slice(4, 14)].reduce((millis, digit) => millis * 32 + digits.indexOf(digit), 0)
  return {
    from: Math.max(from ?? 0, generatedAt - hourMillis),
    to: Math.min(to ?? generatedAt + hourMillis, generatedAt + hourMillis)
  }
}
