/**
 * Applies the clock to stored devices in SQL, for reads. The rules are those of `Lifecycle.settle` and of the sweeps,
 * so a sweep never changes the result of a read. Expressions refer to a device `d`, its license `l` and its policy `p`.
 */
import type { SqlClient } from "effect/sql"
import { instant } from "../../platform/postgres/driver/Parameters.ts"
import { deviceDueAt, earliestDueAt, endsAfter, holdsSlot } from "./LicenseRows.ts"

/** Whether the license's access has ended. Suspended and revoked licenses have no seats. */
const accessHasEnded = (sql: SqlClient.SqlClient, now: number) =>
  sql`(l.status NOT IN ('suspended', 'revoked') AND coalesce(l.expires_at + make_interval(days => p.grace_period_days) <= ${instant(now)}::timestamptz, FALSE))`

/** A device with a slot is overdue if it was due before this instant. NULL: none is, see `Lifecycle.isOverdue`. */
const overdueBefore = (sql: SqlClient.SqlClient, now: number) => sql`
  CASE WHEN p.require_heartbeat AND l.status NOT IN ('suspended', 'revoked') THEN
    least(${instant(now)}::timestamptz, l.expires_at + make_interval(days => p.grace_period_days) - interval '1 ms')
  END`

/** Whether a device `d` with a slot is overdue. */
export const isOverdue = (sql: SqlClient.SqlClient, now: number) =>
  sql`coalesce(${sql.literal(deviceDueAt)} < ${overdueBefore(sql, now)}, FALSE)`

/** Whether an activation of the license may have lapsed since the last sweep: rarely true, and cheap to check. */
const maybeSilent = (sql: SqlClient.SqlClient, now: number) =>
  sql`coalesce(greatest(${sql.literal(earliestDueAt)}, l.not_due_before, p.not_due_before) < ${overdueBefore(sql, now)}, FALSE)`

/** Whether the clock may have changed something since the last sweep: lapsed activations, and ended seats. */
export interface ClockChanges {
  readonly silent: boolean
  readonly seat_ended: boolean
}

export const clockChangesOf = (sql: SqlClient.SqlClient, licenseId: string, now: number) => sql<ClockChanges>`
  SELECT ${maybeSilent(sql, now)} AS silent, EXISTS (SELECT ${maybeEndedLeases(sql, now)}) AS seat_ended
  FROM licenses l JOIN policies p ON p.id = l.policy_id WHERE l.id = ${licenseId}`

const maybeEndedLeases = (sql: SqlClient.SqlClient, now: number) => sql`
  FROM leases e WHERE e.license_id = l.id AND e.status = 'live'
    AND (${sql.literal(endsAfter)} <= ${instant(now)} OR ${accessHasEnded(sql, now)})`

/** A condition for devices that are stored as active and that the clock may have changed. */
export const mayHaveChanged = (sql: SqlClient.SqlClient, licenseId: string, { silent }: ClockChanges, now: number) =>
  silent
    ? sql`TRUE`
    : sql`d.id IN (
        SELECT over.device_id FROM licenses l JOIN policies p ON p.id = l.policy_id
        CROSS JOIN LATERAL (SELECT e.device_id ${maybeEndedLeases(sql, now)}) AS over WHERE l.id = ${licenseId}
      )`

/** The number of the license's activations that have lapsed but are still counted. */
export const lapsedCount = (sql: SqlClient.SqlClient, now: number) => sql`
  CASE WHEN ${maybeSilent(sql, now)} THEN (
    SELECT count(*) FROM devices d WHERE d.license_id = l.id AND ${sql.literal(holdsSlot)}
      AND ${isOverdue(sql, now)}
  ) ELSE 0 END`

/** Whether a lease `e`, stored as live, is live. A borrowed one outlasts the license's access. */
export const seatIsLive = (sql: SqlClient.SqlClient, now: number) =>
  sql`(e.expires_at > ${instant(now)} AND (e.borrowed_until > ${instant(now)} OR NOT ${accessHasEnded(sql, now)}))`

/** The device's current status. Without a slot and a seat it is that of `statusUnseated`. */
export const statusNow = (sql: SqlClient.SqlClient, now: number) => {
  const seatEnds = sql`(SELECT e.expires_at FROM leases e WHERE e.device_id = d.id AND e.status = 'live')`
  const accessEnds = sql`l.expires_at + make_interval(days => p.grace_period_days)`
  return sql`
    CASE
      WHEN d.status <> 'active' THEN d.status
      WHEN d.holds_slot AND NOT ${isOverdue(sql, now)} THEN 'active'
      WHEN EXISTS (SELECT FROM leases e WHERE e.device_id = d.id AND e.status = 'live' AND ${seatIsLive(sql, now)})
        THEN 'active'
      WHEN d.holds_slot OR d.activated_at IS NOT NULL THEN 'expired'
      WHEN ${accessHasEnded(sql, now)} AND ${seatEnds} >= ${accessEnds} THEN 'deactivated'
      ELSE 'expired'
    END`
}
