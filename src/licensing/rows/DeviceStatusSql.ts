/**
 * Applies the clock to stored devices in SQL, for reads. The rules are those of `Lifecycle.settle` and of the sweeps,
 * so a read returns the same before and after a sweep has written a change. Expressions refer to a device `d`, its
 * license `l` and its policy `p`.
 */
import type { SqlClient } from "effect/sql"
import { instant } from "../../platform/postgres/driver/Parameters.ts"
import { deviceDueAt, earliestDueAt, endsAfter, holdsSlot } from "./LicenseRows.ts"

/** Whether the license's access has ended. Suspended and revoked licenses have no seats that could end with it. */
const accessHasEnded = (sql: SqlClient.SqlClient, now: number) =>
  sql`(l.status NOT IN ('suspended', 'revoked') AND coalesce(l.expires_at + make_interval(days => p.grace_period_days) <= ${instant(now)}::timestamptz, FALSE))`

/**
 * A device that holds a slot is overdue if it was due before this instant; NULL = none is, because the runtime refuses
 * the license: see `Lifecycle.isOverdue`.
 */
const overdueBefore = (sql: SqlClient.SqlClient, now: number) => sql`
  CASE WHEN p.require_heartbeat AND l.status NOT IN ('suspended', 'revoked') THEN
    least(${instant(now)}::timestamptz, l.expires_at + make_interval(days => p.grace_period_days) - interval '1 ms')
  END`

/** Whether a device `d` that holds a slot is overdue. */
export const isOverdue = (sql: SqlClient.SqlClient, now: number) =>
  sql`coalesce(${sql.literal(deviceDueAt)} < ${overdueBefore(sql, now)}, FALSE)`

/** Whether some activation of the license may have lapsed since the last sweep: rarely true, and cheap to check. */
const maybeSilent = (sql: SqlClient.SqlClient, now: number) =>
  sql`coalesce(greatest(${sql.literal(earliestDueAt)}, l.not_due_before, p.not_due_before) < ${overdueBefore(sql, now)}, FALSE)`

/** What the clock may have changed since the last sweep: activations that fell silent, and seats that ended. */
export interface ClockChanges {
  readonly silent: boolean
  readonly seat_ended: boolean
}

export const clockChangesOf = (sql: SqlClient.SqlClient, licenseId: string, now: number) => sql<ClockChanges>`
  SELECT ${maybeSilent(sql, now)} AS silent, EXISTS (SELECT ${maybeEndedLeases(sql, now)}) AS seat_ended
  FROM licenses l JOIN policies p ON p.id = l.policy_id WHERE l.id = ${licenseId}`

/** The live leases of the license that may have ended. */
const maybeEndedLeases = (sql: SqlClient.SqlClient, now: number) => sql`
  FROM leases e WHERE e.license_id = l.id AND e.status = 'live'
    AND (${sql.literal(endsAfter)} <= ${instant(now)} OR ${accessHasEnded(sql, now)})`

/**
 * A condition for devices, stored as active, that the clock may have changed. Holders whose seats may have ended are
 * found through their leases.
 */
export const mayHaveChanged = (sql: SqlClient.SqlClient, licenseId: string, { silent }: ClockChanges, now: number) =>
  silent
    ? sql`TRUE`
    : sql`d.id IN (
        SELECT over.device_id FROM licenses l JOIN policies p ON p.id = l.policy_id
        CROSS JOIN LATERAL (SELECT e.device_id ${maybeEndedLeases(sql, now)}) AS over WHERE l.id = ${licenseId}
      )`

/** How many of the license's activations have lapsed but are still counted. */
export const lapsedCount = (sql: SqlClient.SqlClient, now: number) => sql`
  CASE WHEN ${maybeSilent(sql, now)} THEN (
    SELECT count(*) FROM devices d WHERE d.license_id = l.id AND ${sql.literal(holdsSlot)}
      AND ${isOverdue(sql, now)}
  ) ELSE 0 END`

/**
 * The device's current status. A device that holds neither a slot nor a seat has the status that `statusUnseated`
 * gives.
 */
export const statusNow = (sql: SqlClient.SqlClient, now: number) => {
  const seatEnds = sql`(SELECT e.expires_at FROM leases e WHERE e.device_id = d.id AND e.status = 'live')`
  const accessEnds = sql`l.expires_at + make_interval(days => p.grace_period_days)`
  return sql`
    CASE
      WHEN d.status <> 'active' THEN d.status
      WHEN d.holds_slot AND NOT ${isOverdue(sql, now)} THEN 'active'
      WHEN ${seatEnds} > ${instant(now)} AND NOT ${accessHasEnded(sql, now)} THEN 'active'
      WHEN d.holds_slot OR d.activated_at IS NOT NULL THEN 'expired'
      WHEN ${accessHasEnded(sql, now)} AND ${seatEnds} >= ${accessEnds} THEN 'deactivated'
      ELSE 'expired'
    END`
}
