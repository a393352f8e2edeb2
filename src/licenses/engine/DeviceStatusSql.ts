/**
 * What the clock makes of stored devices, in SQL, for reads: as `Lifecycle.settle` decides it and the sweeps write it down, so that
 * no reader sees whether they have come by yet. Expressions speak of a device `d`, its license `l` and its policy `p`.
 */
import type { SqlClient } from "effect/sql"
import { instant } from "../../postgres/Parameters.ts"
import { earliestHeardAt, endsAfter, holdsSlot, lastHeardAt } from "./LicenseRows.ts"

/** Before this instant a device must have been heard of to be overdue: see `heartbeatDueAt`. */
export const silentSince = (sql: SqlClient.SqlClient, now: number) =>
  sql`${instant(now)}::timestamptz - make_interval(mins => p.validation_interval_minutes, secs => 30)`

/** Whether the license's access is over. What is suspended or revoked has no seats that could end with it. */
const accessIsOver = (sql: SqlClient.SqlClient, now: number) =>
  sql`(l.status NOT IN ('suspended', 'revoked') AND coalesce(l.expires_at + make_interval(days => p.grace_period_days) <= ${instant(now)}::timestamptz, FALSE))`

/** Whether some activation of the license may have lapsed since a sweep looked at it: rarely so, and quickly told. */
const maySilent = (sql: SqlClient.SqlClient, now: number) =>
  sql`(p.require_heartbeat AND ${sql.literal(earliestHeardAt)} < ${silentSince(sql, now)})`

/** What time may have moved of the license's devices since a sweep looked at it: activations, and holders of seats. */
export interface ClockChanges {
  readonly silent: boolean
  readonly unseated: boolean
}

export const clockChangesOf = (sql: SqlClient.SqlClient, licenseId: string, now: number) => sql<ClockChanges>`
  SELECT ${maySilent(sql, now)} AS silent, EXISTS (SELECT ${overSeats(sql, now)}) AS unseated
  FROM licenses l JOIN policies p ON p.id = l.policy_id WHERE l.id = ${licenseId}`

/** The live leases of the license that may be over. */
const overSeats = (sql: SqlClient.SqlClient, now: number) => sql`
  FROM leases e WHERE e.license_id = l.id AND e.status = 'live'
    AND (${sql.literal(endsAfter)} <= ${instant(now)} OR ${accessIsOver(sql, now)})`

/** Which devices time may have moved, of those that are stored as active. Holders whose seats may be over are looked up by them. */
export const mayHaveChanged = (sql: SqlClient.SqlClient, licenseId: string, { silent }: ClockChanges, now: number) =>
  silent
    ? sql`TRUE`
    : sql`d.id IN (
        SELECT over.device_id FROM licenses l JOIN policies p ON p.id = l.policy_id
        CROSS JOIN LATERAL (SELECT e.device_id ${overSeats(sql, now)}) AS over WHERE l.id = ${licenseId}
      )`

/** How many of the license's activations have lapsed and are counted still. */
export const lapsedCount = (sql: SqlClient.SqlClient, now: number) => sql`
  CASE WHEN ${maySilent(sql, now)} THEN (
    SELECT count(*) FROM devices d WHERE d.license_id = l.id AND ${sql.literal(holdsSlot)}
      AND ${sql.literal(lastHeardAt)} < ${silentSince(sql, now)}
  ) ELSE 0 END`

/** The device's status. Whoever neither holds a slot nor a seat any more is what `statusUnseated` says. */
export const statusNow = (sql: SqlClient.SqlClient, now: number) => {
  const seatEnds = sql`(SELECT e.expires_at FROM leases e WHERE e.device_id = d.id AND e.status = 'live')`
  const accessEnds = sql`l.expires_at + make_interval(days => p.grace_period_days)`
  return sql`
    CASE
      WHEN d.status <> 'active' THEN d.status
      WHEN d.holds_slot AND NOT (p.require_heartbeat AND ${sql.literal(lastHeardAt)} < ${silentSince(sql, now)}) THEN 'active'
      WHEN ${seatEnds} > ${instant(now)} AND NOT ${accessIsOver(sql, now)} THEN 'active'
      WHEN d.holds_slot OR d.activated_at IS NOT NULL THEN 'expired'
      WHEN ${accessIsOver(sql, now)} AND ${seatEnds} >= ${accessEnds} THEN 'deactivated'
      ELSE 'expired'
    END`
}
