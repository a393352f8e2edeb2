/**
 * Applies the clock to stored devices in SQL, for reads. The rules are those of `Lifecycle.settle` and of the sweeps,
 * so a read returns the same before and after a sweep has written a change. Expressions refer to a device `d`, its
 * license `l` and its policy `p`.
 */
import type { SqlClient } from "effect/sql"
import { instant } from "../../postgres/Parameters.ts"
import { earliestHeardAt, endsAfter, holdsSlot, lastHeardAt } from "./LicenseRows.ts"

/** A device last heard of before this instant is overdue: see `heartbeatDueAt`. */
export const silentSince = (sql: SqlClient.SqlClient, now: number) =>
  sql`${instant(now)}::timestamptz - make_interval(mins => p.validation_interval_minutes, secs => 30)`

/** Whether the license's access has ended. Suspended and revoked licenses have no seats that could end with it. */
const accessHasEnded = (sql: SqlClient.SqlClient, now: number) =>
  sql`(l.status NOT IN ('suspended', 'revoked') AND coalesce(l.expires_at + make_interval(days => p.grace_period_days) <= ${instant(now)}::timestamptz, FALSE))`

/** Whether some activation of the license may have lapsed since the last sweep: rarely true, and cheap to check. */
const maybeSilent = (sql: SqlClient.SqlClient, now: number) =>
  sql`(p.require_heartbeat AND ${sql.literal(earliestHeardAt)} < ${silentSince(sql, now)})`

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
      AND ${sql.literal(lastHeardAt)} < ${silentSince(sql, now)}
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
      WHEN d.holds_slot AND NOT (p.require_heartbeat AND ${sql.literal(lastHeardAt)} < ${silentSince(sql, now)}) THEN 'active'
      WHEN ${seatEnds} > ${instant(now)} AND NOT ${accessHasEnded(sql, now)} THEN 'active'
      WHEN d.holds_slot OR d.activated_at IS NOT NULL THEN 'expired'
      WHEN ${accessHasEnded(sql, now)} AND ${seatEnds} >= ${accessEnds} THEN 'deactivated'
      ELSE 'expired'
    END`
}
