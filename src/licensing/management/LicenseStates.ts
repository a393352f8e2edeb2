/** The states of listed licenses in SQL, by the clock. Expressions refer to a license `l` and its policy `p`. */
import type { SqlClient, Statement } from "effect/sql"
import { instant } from "../../platform/postgres/driver/Parameters.ts"
import type { LicenseStatus } from "../model/License.ts"
import { clockLag } from "../rows/LicenseRows.ts"

/** Whether a license that is stored in a state is still in it by the clock. */
export const storedStateCondition = (sql: SqlClient.SqlClient, status: LicenseStatus, nowMillis: number) => {
  const now = instant(nowMillis)
  const graceBegan = sql`${now}::timestamptz - make_interval(days => p.grace_period_days)`
  const lag = sql.literal(clockLag)
  switch (status) {
    case "suspended":
    case "revoked":
      return sql`TRUE`
    case "active":
      return sql`(l.expires_at IS NULL OR l.expires_at > ${now})`
    case "grace_period":
      return sql`l.expires_at <= ${now}::timestamptz + ${lag} AND l.expires_at > ${graceBegan}`
    case "expired":
      return sql`l.expires_at <= ${graceBegan} + ${lag}`
  }
}

/**
 * Licenses, with their policies, that are stored in another state and are in this one by the clock, until a sweep
 * writes it. They are few and scattered over the list's order, so index ranges find them: one range for a condition on
 * the clock alone, and one for each policy for a condition on the grace period.
 */
export const movedIntoState = (
  sql: SqlClient.SqlClient,
  status: LicenseStatus,
  nowMillis: number,
  rowConditions: Statement.Fragment
): ReadonlyArray<Statement.Fragment> => {
  const expiry = sql.literal("s.expires_at AT TIME ZONE 'UTC'")
  const now = sql`(${instant(nowMillis)} AT TIME ZONE 'UTC')`
  const graceBegan = sql`(${now} - make_interval(days => p.grace_period_days))`
  const of = (condition: Statement.Fragment) => sql`
    (SELECT l.* FROM (SELECT s.license_id FROM license_states s WHERE ${condition} OFFSET 0) AS s,
      LATERAL (SELECT * FROM licenses WHERE id = s.license_id OFFSET 0) AS l WHERE ${rowConditions} OFFSET 0) AS l`
  const storedAs = (state: LicenseStatus) => sql`s.policy_id || ' ' || s.status = p.id || ${` ${state}`}
    AND s.expires_at IS NOT NULL`
  const activeUntilNow = (ended: Statement.Fragment) =>
    sql`policies p CROSS JOIN LATERAL ${of(sql`${storedAs("active")} AND ${expiry} <= ${now} AND ${ended}`)}`
  switch (status) {
    case "suspended":
    case "revoked":
      return []
    case "active":
      return [
        sql`${of(sql`s.status IN ('grace_period', 'expired')
          AND CASE WHEN s.status IN ('grace_period', 'expired') THEN ${expiry} END > ${now} + ${sql.literal(clockLag)}`)}
          JOIN policies p ON p.id = l.policy_id`
      ]
    case "grace_period":
      return [
        activeUntilNow(sql`${expiry} > ${graceBegan}`),
        sql`policies p CROSS JOIN LATERAL
          ${of(sql`${storedAs("expired")} AND ${expiry} <= ${now} + ${sql.literal(clockLag)}
            AND ${expiry} > ${graceBegan} + ${sql.literal(clockLag)}`)}
          WHERE p.grace_period_days > 0`
      ]
    case "expired":
      return [
        activeUntilNow(sql`${expiry} <= ${graceBegan}`),
        sql`policies p CROSS JOIN LATERAL ${of(sql`${storedAs("grace_period")} AND ${expiry} <= ${graceBegan}`)}`
      ]
  }
}
