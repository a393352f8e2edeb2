/**
 * Stores the changes by the clock for unused licenses: grace, expiry, and the notices before expiry and of maintenance. It uses the functions of
 * `Lifecycle.settle` for many licenses at once. A sweep skips locked licenses: their actors write the same changes.
 */
import { Context, Effect, Layer } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import { formatTimestamp } from "../../contract/api/Timestamp.ts"
import type { NewEvent } from "../../ledger/events/Entry.ts"
import { columns, instant, int8 } from "../../platform/postgres/driver/Parameters.ts"
import { makeRevisions } from "../../platform/postgres/queries/Revision.ts"
import { concurrentChange } from "../../platform/postgres/queries/Sql.ts"
import type { LicenseStatus } from "../model/License.ts"
import type { LicenseRecord, PolicyRecord } from "../model/LicenseRecords.ts"
import { clockLag } from "../rows/LicenseRows.ts"
import { statusEvents } from "../rules/ClockEvents.ts"
import { licenseEvent } from "../rules/LicenseCommand.ts"
import { statusAt, statusesPassed } from "../rules/Lifecycle.ts"
import { maintenanceNotices } from "./MaintenanceNotices.ts"
import { type MailedNotice, reminderMails } from "./ReminderMails.ts"
import { noNotice, reachedDays } from "./Reminders.ts"
import { byId, lockClause, makePasses } from "./SweepBatches.ts"

type DueLicense = Pick<LicenseRecord, "id" | "policy_id" | "status" | "revision"> &
  Pick<PolicyRecord, "grace_period_days"> & { readonly expires_at: number; readonly policy_revision: number }

interface Expiring extends Pick<LicenseRecord, "id" | "revision">, MailedNotice {}

export class ExpirySweep extends Context.Service<
  ExpirySweep,
  {
    /** Writes the states that the clock has changed, then gives the due notices. */
    readonly pass: Effect.Effect<void>
  }
>()("licensing/licensing/sweeps/ExpirySweep") {
  static readonly layer = Layer.effect(
    ExpirySweep,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const passOf = yield* makePasses("expiry-sweep")
      const nextRevision = yield* makeRevisions
      const move = passOf<DueLicense>({
        select: (now, limit, lock) => selectOutdated(sql, now, limit, lock),
        isDue: (row, now) => statusAt(row, row, now) !== row.status,
        write: (rows, now) => writeMoves(sql, rows, nextRevision(), now),
        eventsOf: (row, now) => statusEvents(row.id, statusesPassed(row, row, now))
      })
      const giveNotices = passOf<Expiring>({
        select: (now, limit, lock) => selectNoticesDue(sql, now, limit, lock),
        isDue: (row, now) => row.ends > now && reachedDays(row, now) < row.told,
        write: (rows, now) => writeNotices(sql, rows, now),
        eventsOf: (row, now) => [notice(row, now)],
        mailsOf: (rows, now) => reminderMails(sql, "expiry_reminder", rows, now)
      })
      const pass = Effect.all([move, giveNotices, passOf(maintenanceNotices(sql))], { discard: true })
      return ExpirySweep.of({ pass: Effect.orDie(Effect.withSpan(pass, "ExpirySweep.pass")) })
    })
  )
}

/** Licenses whose stored state differs from `statusAt`, also after an edit that moves it back. */
const outdatedLicenses = (sql: SqlClient.SqlClient, nowMillis: number, limit: number) => {
  const now = sql`(${instant(nowMillis)} AT TIME ZONE 'UTC')`
  const graceBefore = sql`(${now} - make_interval(days => p.grace_period_days))`
  const lag = sql.literal(clockLag)
  const inState = (status: LicenseStatus, expires: Statement.Fragment) => sql`
    (SELECT s.license_id FROM license_states s WHERE s.policy_id || ' ' || s.status = p.id || ${` ${status}`}
      AND s.expires_at AT TIME ZONE 'UTC' ${expires} AND s.expires_at IS NOT NULL LIMIT ${limit})`
  return sql`
    SELECT due.license_id FROM policies p CROSS JOIN LATERAL (
      ${inState("active", sql`<= ${now}`)} UNION ALL
      ${inState("grace_period", sql`<= ${graceBefore}`)} UNION ALL
      ${inState("grace_period", sql`> ${now} + ${lag}`)} UNION ALL
      ${inState("expired", sql`> ${graceBefore} + ${lag}`)}
    ) AS due LIMIT ${limit}`
}

const selectOutdated = (sql: SqlClient.SqlClient, nowMillis: number, limit: number, lock: boolean) => sql<DueLicense>`
  WITH due AS MATERIALIZED (${outdatedLicenses(sql, nowMillis, limit)})
  SELECT l.id, l.policy_id, l.status, l.expires_at, l.revision, p.grace_period_days, p.revision AS policy_revision
  FROM due JOIN licenses l ON l.id = due.license_id JOIN policies p ON p.id = l.policy_id
  WHERE l.expires_at IS NOT NULL AND l.status IN ('active', 'grace_period', 'expired')
  ${sql.literal(lock ? lockClause : "")}`

/**
 * Writes licenses in the order of their ids, as the Journal does, each looked up by id and written by row address
 * (ctid). `written` are the licenses that are unchanged since they were read; `restated` are those whose row in
 * license_states was updated.
 */
const writeLicenses = (
  sql: SqlClient.SqlClient,
  decided: Statement.Fragment,
  holds: Statement.Fragment,
  set: Statement.Fragment
) => sql`
  written AS (
    UPDATE licenses l SET ${set}
    FROM (SELECT ${decided}) AS decided,
      LATERAL (
        SELECT ctid AS address, status AS old_status FROM licenses WHERE id = decided.id FOR NO KEY UPDATE SKIP LOCKED
      ) AS target,
      (SELECT set_config('licensing.states_kept', 'on', true) AS kept OFFSET 0) AS states
    WHERE l.ctid = target.address AND l.revision = decided.revision AND states.kept = 'on' AND ${holds}
    RETURNING l.id, l.created_at, target.old_status, l.status, l.policy_id, l.expires_at,
      license_notice(l.status, l.expires_at, l.expiring_for, l.expiring_days) AS notice
  ), restated AS (
    UPDATE license_states s SET status = written.status, notice = written.notice
    FROM written, LATERAL (
      SELECT ctid AS address FROM license_states
      WHERE status = written.old_status AND created_at = written.created_at AND license_id = written.id OFFSET 0
    ) AS target
    WHERE s.ctid = target.address
    RETURNING s.license_id
  )`

const allWritten = (sql: SqlClient.SqlClient, rows: ReadonlyArray<unknown>) => sql`
  (SELECT count(*) FROM written) = ${rows.length} AND (SELECT count(*) FROM restated) = ${rows.length}`

/**
 * Writes the states, ends the leases that were live at the end of access, and releases the devices that were active
 * only by such a lease. Leases and devices are looked up for each license: with a plan for small tables, a join would
 * read all of them.
 */
const writeMoves = (
  sql: SqlClient.SqlClient,
  unordered: ReadonlyArray<DueLicense>,
  revision: number,
  nowMillis: number
) => {
  const now = instant(nowMillis)
  const rows = byId(unordered)
  const statuses = rows.map((row) => statusAt(row, row, nowMillis))
  const policies = new Map(rows.map((row) => [`${row.policy_id} ${row.policy_revision}`, row]))
  const decided = sql`unnest(${columns.text(rows.map((row) => row.id))}) AS id,
    unnest(${columns.int8(rows.map((row) => row.revision))}) AS revision,
    unnest(${columns.text(statuses)}) AS status,
    unnest(${columns.int4(rows.map((row) => statusesPassed(row, row, nowMillis).length))}) AS moves`
  return sql`
    WITH ${writeLicenses(
      sql,
      decided,
      sql`TRUE`,
      sql`status = decided.status, entitlement_counter = l.entitlement_counter + decided.moves, revision = ${int8(revision)}`
    )}, ended AS (
      UPDATE leases SET status = 'ended', ended_at = ${now} WHERE id = ANY(ARRAY(
        SELECT live.id FROM written JOIN policies p ON p.id = written.policy_id CROSS JOIN LATERAL (
          SELECT id FROM leases
          WHERE license_id = written.id AND status = 'live'
            AND expires_at >= written.expires_at + make_interval(days => p.grace_period_days)
            AND coalesce(borrowed_until <= ${now}, TRUE) OFFSET 0
        ) AS live WHERE written.status = 'expired'))
      RETURNING device_id
    ), freed AS (
      UPDATE devices SET status = CASE WHEN activated_at IS NULL THEN 'deactivated' ELSE 'expired' END, updated_at = ${now}
      WHERE id = ANY(ARRAY(SELECT device_id FROM ended)) AND status = 'active' AND NOT holds_slot
    )
    SELECT demand(${allWritten(sql, rows)} AND NOT EXISTS (
        SELECT FROM unnest(${columns.text(Array.from(policies.values(), (row) => row.policy_id))},
          ${columns.int8(Array.from(policies.values(), (row) => row.policy_revision))}) AS seen (id, revision)
        WHERE revision IS DISTINCT FROM (SELECT p.revision FROM policies p WHERE p.id = seen.id)
      ), ${concurrentChange}, 'a license was changed meanwhile')`
}

/**
 * Active licenses with a due notice later than the last one. For each policy the index tells which notices were given
 * last, whatever its reminder_days were at that time; each is followed by the next of today's reminder_days. In the
 * index 8 is "no notice yet", and higher numbers are one higher than the days (`license_notice`).
 */
const noticesDue = (sql: SqlClient.SqlClient, nowMillis: number, limit: number) => {
  const now = sql`(${instant(nowMillis)} AT TIME ZONE 'UTC')`
  return sql`
    SELECT due.license_id FROM policies p CROSS JOIN LATERAL (
      WITH RECURSIVE given (notice) AS (
        SELECT min(s.notice) FROM license_states s WHERE s.policy_id = p.id AND s.notice IS NOT NULL
        UNION ALL
        SELECT (SELECT min(s.notice) FROM license_states s WHERE s.policy_id = p.id AND s.notice > given.notice)
        FROM given WHERE given.notice IS NOT NULL
      )
      SELECT given.notice, max(days) AS days FROM given CROSS JOIN unnest(p.reminder_days) AS days
      WHERE given.notice = 8 OR days + (days >= 8)::integer < given.notice GROUP BY given.notice
    ) AS step CROSS JOIN LATERAL (
      SELECT s.license_id FROM license_states s
      WHERE s.policy_id = p.id AND s.notice = step.notice AND s.expires_at AT TIME ZONE 'UTC' > ${now}
        AND s.expires_at AT TIME ZONE 'UTC' <= ${now} + make_interval(days => step.days)
      LIMIT ${limit}
    ) AS due LIMIT ${limit}`
}

const lastNoticeSql = `CASE WHEN l.expiring_for = l.expires_at THEN l.expiring_days ELSE ${noNotice} END`

const selectNoticesDue = (sql: SqlClient.SqlClient, nowMillis: number, limit: number, lock: boolean) => sql<Expiring>`
  WITH due AS MATERIALIZED (${noticesDue(sql, nowMillis, limit)})
  SELECT l.id, l.expires_at AS ends, l.revision, ${sql.literal(lastNoticeSql)} AS told,
    p.reminder_days AS days, p.mail_reminders
  FROM due JOIN licenses l ON l.id = due.license_id JOIN policies p ON p.id = l.policy_id WHERE l.status = 'active' AND l.expires_at IS NOT NULL
  ${sql.literal(lock ? lockClause : "")}`

/** Raises no revision, because no decision depends on notices, but checks that no other node has given them. */
const writeNotices = (sql: SqlClient.SqlClient, unordered: ReadonlyArray<Expiring>, now: number) => {
  const rows = byId(unordered)
  const decided = sql`unnest(${columns.text(rows.map((row) => row.id))}) AS id,
    unnest(${columns.int8(rows.map((row) => row.revision))}) AS revision,
    unnest(${columns.int4(rows.map((row) => row.told))}) AS told,
    unnest(${columns.int4(rows.map((row) => reachedDays(row, now)))}) AS days`
  return sql`
    WITH ${writeLicenses(
      sql,
      decided,
      sql`${sql.literal(lastNoticeSql)} = decided.told`,
      sql`expiring_for = l.expires_at, expiring_days = decided.days`
    )}
    SELECT demand(${allWritten(sql, rows)}, ${concurrentChange}, 'a license was changed meanwhile')`
}

const notice = (row: Expiring, now: number): NewEvent =>
  licenseEvent("license.expiring", row.id, {
    days_before: reachedDays(row, now),
    expires_at: formatTimestamp(row.ends)
  })
