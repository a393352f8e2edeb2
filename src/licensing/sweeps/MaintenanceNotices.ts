/**
 * Announces the end of maintenance at the policy's reminder_days, and records it: each once for a license and an end, in
 * every state of the license. A revoked license gets no events, but is marked, so that it is not found again.
 */
import type { SqlClient } from "effect/sql"
import { dayMillis, formatTimestamp } from "../../contract/api/Timestamp.ts"
import type { NewEvent } from "../../ledger/events/Entry.ts"
import { columns, instant } from "../../platform/postgres/driver/Parameters.ts"
import { concurrentChange } from "../../platform/postgres/queries/Sql.ts"
import type { LicenseRecord } from "../model/LicenseRecords.ts"
import { licenseEvent } from "../rules/LicenseCommand.ts"
import { type MailedNotice, reminderMails } from "./ReminderMails.ts"
import { noNotice, reachedDays } from "./Reminders.ts"
import { byId, lockClause, type SweepTask, writeUnchanged } from "./SweepBatches.ts"

/** Its `days` are the policy's reminder_days, and 0 for the end itself. */
interface Maintained extends Pick<LicenseRecord, "id" | "revision" | "status">, MailedNotice {}

/** As in the index. */
const told = `(CASE WHEN l.maintenance_told_for = l.maintenance_expires_at THEN l.maintenance_told_days ELSE ${noNotice} END)`

export const maintenanceNotices = (sql: SqlClient.SqlClient): SweepTask<Maintained> => ({
  select: (now, limit, lock) => sql<Maintained>`
    WITH due AS MATERIALIZED (${noticesDue(sql, now, limit)})
    SELECT l.id, l.revision, l.status, l.maintenance_expires_at AS ends, ${sql.literal(told)} AS told,
      p.reminder_days || 0 AS days, p.mail_reminders
    FROM due JOIN licenses l ON l.id = due.id JOIN policies p ON p.id = l.policy_id
    WHERE l.maintenance_expires_at IS NOT NULL
    ${sql.literal(lock ? lockClause : "")}`,
  isDue: (row, now) => reachedDays(row, now) < row.told,
  write: (rows, now) => write(sql, rows, now),
  eventsOf: notices,
  mailsOf: (rows, now) =>
    reminderMails(
      sql,
      "maintenance_reminder",
      rows.filter((row) => isNews(row, now)),
      now
    )
})

/** An end that is longer ago is no news: of licenses that were imported, or are older than these notices. */
const newsMillis = 30 * dayMillis

/** For each policy the index tells which notices were given last; each is followed by the next one of the policy. */
const noticesDue = (sql: SqlClient.SqlClient, now: number, limit: number) => {
  const [stored, ofPolicy] = [sql.literal(told), sql`l.policy_id = p.id AND l.maintenance_expires_at IS NOT NULL`]
  return sql`
    SELECT due.id FROM policies p CROSS JOIN LATERAL (
      WITH RECURSIVE given (told) AS (
        SELECT min(${stored}) FROM licenses l WHERE ${ofPolicy}
        UNION ALL
        SELECT (SELECT min(${stored}) FROM licenses l WHERE ${ofPolicy} AND ${stored} > given.told)
        FROM given WHERE given.told IS NOT NULL
      )
      SELECT given.told, max(days) AS days FROM given CROSS JOIN unnest(p.reminder_days || 0) AS days
      WHERE days < given.told GROUP BY given.told
    ) AS step CROSS JOIN LATERAL (
      SELECT l.id FROM licenses l
      WHERE ${ofPolicy} AND ${stored} = step.told
        AND l.maintenance_expires_at <= ${instant(now)} + make_interval(hours => 24 * step.days) LIMIT ${limit}
    ) AS due WHERE p.license_type = 'perpetual' LIMIT ${limit}`
}

/** Raises no revision, because no decision depends on notices. */
const write = (sql: SqlClient.SqlClient, unordered: ReadonlyArray<Maintained>, now: number) => {
  const rows = byId(unordered)
  return sql`
    WITH written AS (
      ${writeUnchanged(sql, rows, {
        set: sql`maintenance_told_for = l.maintenance_expires_at, maintenance_told_days = decided.days`,
        values: sql`, unnest(${columns.int4(rows.map((row) => row.told))}) AS told,
          unnest(${columns.int4(rows.map((row) => reachedDays(row, now)))}) AS days`,
        holds: sql`${sql.literal(told)} = decided.told`
      })}
    )
    SELECT demand((SELECT count(*) FROM written) = ${rows.length}, ${concurrentChange}, 'a license was changed meanwhile')`
}

const isNews = ({ ends, status }: Maintained, now: number): boolean => status !== "revoked" && now - ends <= newsMillis

const notices = (row: Maintained, now: number): ReadonlyArray<NewEvent> => {
  if (!isNews(row, now)) return []
  const maintenance_expires_at = formatTimestamp(row.ends)
  const days_before = reachedDays(row, now)
  return [
    days_before === 0
      ? licenseEvent("license.maintenance_expired", row.id, { maintenance_expires_at })
      : licenseEvent("license.maintenance_expiring", row.id, { days_before, maintenance_expires_at })
  ]
}
