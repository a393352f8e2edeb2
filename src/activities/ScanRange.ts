/**
 * Where in the feed a filter can have anything: stretches of sequence numbers, and the resources that events are about. It only
 * narrows what is looked at; every row is held against the whole filter afterwards.
 */
import { Effect } from "effect"
import type { SqlClient } from "effect/sql"
import { instant } from "../postgres/Parameters.ts"
import type { ActivityFilter } from "./Activity.ts"

/** Records that are looked up one by one; of more, the feed itself is walked. */
const keysMax = 200

/** Event sequence numbers from one to another, both included; the newest stretch has no end. */
export interface SequenceRange {
  readonly from: number
  readonly to: number | undefined
}

/** The ids under which events tell of what the filter names, or undefined where they are too many, or not named. */
export const resourceIdsOf = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, filter: ActivityFilter) {
  const { customer_id, device_id, license_id, order_id, subscription_id } = filter
  if (license_id !== undefined) return [license_id]
  const found =
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
  if (found === undefined) return undefined
  const rows = yield* sql<{ readonly id: string }>`SELECT id FROM (${found}) AS found LIMIT ${keysMax + 1}`
  return rows.length > keysMax ? undefined : rows.map(({ id }) => id)
})

interface Period {
  readonly from?: number
  readonly to?: number
}

/** The stretches, the newest first. Where no period is asked for, it is all of the events. */
export const sequenceRanges = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, period: Period) {
  const { from, to } = period
  if (from === undefined && to === undefined) return [{ from: 1, to: undefined }]
  const [row] = yield* sql<{
    readonly told: number | null
    readonly first: number | null
    readonly last: number | null
  }>`
    SELECT max(last_sequence) AS told, min(first_sequence) FILTER (WHERE ${overlaps(sql, period)}) AS first,
      max(last_sequence) FILTER (WHERE ${overlaps(sql, period)}) AS last
    FROM event_spans`
  const { first = null, last = null, told = null } = row ?? {}
  const newest: SequenceRange = { from: (told ?? 0) + 1, to: undefined }
  return first === null || last === null ? [newest] : [newest, { from: first, to: last }]
})

const overlaps = (sql: SqlClient.SqlClient, { from, to }: Period) =>
  sql.and([
    from === undefined ? sql`TRUE` : sql`last_at >= ${instant(from)}`,
    to === undefined ? sql`TRUE` : sql`first_at < ${instant(to)}`
  ])

/** Crockford's alphabet: the place of a character is its value. */
const digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
const ownRequestId = /^req_[0-7][0-9A-HJKMNP-TV-Z]{25}$/
const hourMillis = 3_600_000

/** The period asked for, or the hours around the instant that a request id of our own was made at. */
export const scanPeriod = ({ from, request_id, to }: ActivityFilter): Period => {
  if (request_id === undefined || !ownRequestId.test(request_id)) {
    return { ...(from === undefined ? undefined : { from }), ...(to === undefined ? undefined : { to }) }
  }
  const made = [...request_id.slice(4, 14)].reduce((millis, digit) => millis * 32 + digits.indexOf(digit), 0)
  return { from: Math.max(from ?? 0, made - hourMillis), to: Math.min(to ?? made + hourMillis, made + hourMillis) }
}
