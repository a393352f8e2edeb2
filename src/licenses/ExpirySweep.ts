/**
 * Writes down what the clock has made of licenses that nobody uses: grace, expiry, and the notices ahead of expiry. It decides
 * by the functions that `Lifecycle.settle` decides by and writes for many licenses at once: states, version counters, leases
 * that end, events, each once. A license that is locked at the moment is in use, and its actor writes the same.
 */
import { Context, Effect, Layer } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import { formatTimestamp } from "../api/Timestamp.ts"
import type { NewEvent } from "../events/EventLog.ts"
import { columns, instant } from "../postgres/Parameters.ts"
import { changedMeanwhile } from "../postgres/Sql.ts"
import { untilDone } from "../workers/Exclusive.ts"
import type { LicenseStatus } from "./License.ts"
import type { LicenseRecord, PolicyRecord } from "./LicenseState.ts"
import { accessEndsAt, passed, passedEvents, statusByClock } from "./Lifecycle.ts"
import { type Found, makeBatches } from "./Sweeping.ts"

/**
 * Licenses in one transaction. With 25 as with 200 the p99 of consumptions beside a sweep was 10 to 13 ms, given as much rest; few
 * keep this process and the events' counter for less at a time, many take less of the database's time in all.
 */
const batchSize = 50

/** Days ahead of expiry at which it is announced, the last first. */
const noticeDays = [1, 3, 7] as const
/** What stands for "not announced yet" in the index of announcements. */
const unannounced = 8
const dayMillis = 86_400_000

type DueLicense = Found &
  Pick<LicenseRecord, "status" | "entitlement_counter" | "revision"> &
  Pick<PolicyRecord, "grace_period_days"> & { readonly expires_at: number; readonly policy_revision: number }

interface Expiring extends Found, Pick<LicenseRecord, "revision"> {
  readonly expires_at: number
  readonly created_at: number
  /** The days of the notice that was given last for this date. */
  readonly announced: number
}

export class ExpirySweep extends Context.Service<
  ExpirySweep,
  {
    /** Moves every license that the clock has moved, then announces what expires soon. */
    readonly pass: Effect.Effect<void>
  }
>()("licensing/licenses/ExpirySweep") {
  static readonly layer = Layer.effect(
    ExpirySweep,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const batchOf = yield* makeBatches("expiry-sweep")
      const move = batchOf<DueLicense>({
        select: (now, hold) => selectOutdated(sql, now, hold),
        isDue: (row, now) => statusByClock(row, row, now) !== row.status,
        write: (rows, now) => writeMoves(sql, rows, now),
        eventsOf: (row, now) => passedEvents(row.id, passed(row, row, now))
      })
      const announce = batchOf<Expiring>({
        select: (now, hold) => selectUnnoticed(sql, now, hold),
        isDue: (row, now) => row.expires_at > now && reachedDays(row, now) < row.announced,
        write: (rows, now) => writeNotices(sql, rows, now),
        eventsOf: notices
      })
      const pass = Effect.andThen(untilDone(batchSize, move), untilDone(batchSize, announce))
      return ExpirySweep.of({ pass: Effect.orDie(Effect.withSpan(pass, "ExpirySweep.pass")) })
    })
  )
}

/**
 * Licenses whose stored state is not the clock's any more. Going back is among it: an edit of the expiry or of the policy's grace
 * may have done that.
 */
const outdated = (sql: SqlClient.SqlClient, nowMillis: number) => {
  const now = sql`(${instant(nowMillis)} AT TIME ZONE 'UTC')`
  const graceBefore = sql`(${now} - make_interval(days => p.grace_period_days))`
  const inState = (status: LicenseStatus, expires: Statement.Fragment) => sql`
    (SELECT l.id FROM licenses l WHERE l.policy_id || ' ' || l.status = p.id || ${` ${status}`}
      AND l.expires_at AT TIME ZONE 'UTC' ${expires} LIMIT ${batchSize})`
  return sql<{ readonly id: string }>`
    SELECT due.id FROM policies p CROSS JOIN LATERAL (
      ${inState("active", sql`<= ${now}`)} UNION ALL
      ${inState("grace_period", sql`<= ${graceBefore}`)} UNION ALL
      ${inState("grace_period", sql`> ${now}`)} UNION ALL
      ${inState("expired", sql`> ${graceBefore}`)}
    ) AS due LIMIT ${batchSize}`
}

/**
 * Locks the licenses `l` in the order of their ids, as the Journal does, and leaves out one that somebody holds: it is in use, and
 * waiting for it would hold up all others. A row is given as it is under its lock.
 */
const locking = "ORDER BY l.id FOR NO KEY UPDATE OF l SKIP LOCKED"

const selectOutdated = (sql: SqlClient.SqlClient, nowMillis: number, hold: boolean) => sql<DueLicense>`
  WITH due AS MATERIALIZED (${outdated(sql, nowMillis)})
  SELECT l.id, l.status, l.expires_at, l.entitlement_counter, l.revision, p.grace_period_days, p.revision AS policy_revision,
    (SELECT count(*) FROM due) AS found
  FROM due JOIN licenses l ON l.id = due.id JOIN policies p ON p.id = l.policy_id
  WHERE l.expires_at IS NOT NULL AND l.status IN ('active', 'grace_period', 'expired')
  ${sql.literal(hold ? locking : "")}`

/**
 * The states, and with them the leases that were live when their license's access ended and the devices that were active for
 * nothing else. Which leases and devices these are is asked license by license: planned while the tables were young, a join
 * would read all live leases and all active devices for each batch.
 */
const writeMoves = (sql: SqlClient.SqlClient, rows: ReadonlyArray<DueLicense>, nowMillis: number) => {
  const now = instant(nowMillis)
  const statuses = rows.map((row) => statusByClock(row, row, nowMillis))
  return sql`
    WITH decided AS (
      SELECT * FROM unnest(${columns.text(rows.map((row) => row.id))}, ${columns.int8(rows.map((row) => row.revision))},
        ${columns.int8(rows.map((row) => row.policy_revision))}, ${columns.text(statuses)},
        ${columns.int8(rows.map((row) => row.entitlement_counter + passed(row, row, nowMillis).length))},
        ${columns.timestamptz(rows.map((row, index) => (statuses[index] === "expired" ? accessEndsAt(row, row)! : null)))}
      ) AS decided (id, revision, policy_revision, status, entitlement_counter, access_ended_at)
    ), locked AS (
      SELECT decided.* FROM licenses l JOIN decided USING (id) JOIN policies p ON p.id = l.policy_id
      WHERE l.revision = decided.revision AND p.revision = decided.policy_revision ${sql.literal(locking)}
    ), moved AS (
      UPDATE licenses l SET status = locked.status, entitlement_counter = locked.entitlement_counter, revision = l.revision + 1
      FROM locked WHERE l.id = locked.id RETURNING l.id
    ), ended AS (
      UPDATE leases SET status = 'ended', ended_at = ${now} WHERE id = ANY(ARRAY(
        SELECT live.id FROM decided CROSS JOIN LATERAL (
          SELECT id FROM leases
          WHERE license_id = decided.id AND status = 'live' AND expires_at >= decided.access_ended_at OFFSET 0
        ) AS live))
      RETURNING device_id
    ), freed AS (
      UPDATE devices SET status = CASE WHEN activated_at IS NULL THEN 'deactivated' ELSE 'expired' END, updated_at = ${now}
      WHERE id = ANY(ARRAY(SELECT device_id FROM ended)) AND status || '' = 'active' AND NOT holds_slot
    )
    SELECT demand((SELECT count(*) FROM moved) = ${rows.length}, ${changedMeanwhile}, 'a license was changed meanwhile')`
}

/** The days of the latest notice whose time has come. */
const reachedDays = ({ expires_at }: Expiring, now: number): number =>
  noticeDays.find((days) => expires_at - days * dayMillis <= now) ?? unannounced

/** Active licenses that have come nearer to their expiry than the notice that was given last. */
const unnoticed = (sql: SqlClient.SqlClient, nowMillis: number) => {
  const now = sql`(${instant(nowMillis)} AT TIME ZONE 'UTC')`
  return sql<{ readonly id: string }>`
    SELECT due.id FROM (VALUES (8, 7), (7, 3), (3, 1)) AS notice (announced, days) CROSS JOIN LATERAL (
      SELECT l.id FROM licenses l
      WHERE CASE WHEN l.status <> 'active' THEN NULL WHEN l.expiring_for = l.expires_at THEN l.expiring_days ELSE 8 END
          = notice.announced
        AND l.expires_at AT TIME ZONE 'UTC' > ${now}
        AND l.expires_at AT TIME ZONE 'UTC' <= ${now} + make_interval(days => notice.days)
      LIMIT ${batchSize}
    ) AS due LIMIT ${batchSize}`
}

const announced = `CASE WHEN l.expiring_for = l.expires_at THEN l.expiring_days ELSE ${unannounced} END`

const selectUnnoticed = (sql: SqlClient.SqlClient, nowMillis: number, hold: boolean) => sql<Expiring>`
  WITH due AS MATERIALIZED (${unnoticed(sql, nowMillis)})
  SELECT l.id, l.expires_at, l.created_at, l.revision, ${sql.literal(announced)} AS announced, (SELECT count(*) FROM due) AS found
  FROM due JOIN licenses l ON l.id = due.id WHERE l.status = 'active' AND l.expires_at IS NOT NULL
  ${sql.literal(hold ? locking : "")}`

/** No revision rises, for nothing is decided by what was announced: that nobody else has announced it is asked besides. */
const writeNotices = (sql: SqlClient.SqlClient, rows: ReadonlyArray<Expiring>, now: number) => sql`
  WITH decided AS (
    SELECT * FROM unnest(${columns.text(rows.map((row) => row.id))}, ${columns.int8(rows.map((row) => row.revision))},
      ${columns.int4(rows.map((row) => row.announced))}, ${columns.int4(rows.map((row) => reachedDays(row, now)))}
    ) AS decided (id, revision, announced, days)
  ), locked AS (
    SELECT decided.* FROM licenses l JOIN decided USING (id)
    WHERE l.revision = decided.revision AND ${sql.literal(announced)} = decided.announced ${sql.literal(locking)}
  ), noticed AS (
    UPDATE licenses l SET expiring_for = l.expires_at, expiring_days = locked.days FROM locked WHERE l.id = locked.id
    RETURNING l.id
  )
  SELECT demand((SELECT count(*) FROM noticed) = ${rows.length}, ${changedMeanwhile}, 'a license was changed meanwhile')`

/**
 * The notices that a license has come past since the last one: the latest always, the ones before it where the license was
 * there to be announced, so that an outage loses none and a trial of two days is not announced three times at once.
 */
const notices = (row: Expiring, now: number): ReadonlyArray<NewEvent> => {
  const reached = reachedDays(row, now)
  return noticeDays
    .filter((days) => days >= reached && days < row.announced)
    .filter((days) => days === reached || row.expires_at - days * dayMillis >= row.created_at)
    .toReversed()
    .map((days) => ({
      event_type: "license.expiring",
      resource_type: "license",
      resource_id: row.id,
      metadata: { days_before: days, expires_at: formatTimestamp(row.expires_at) }
    }))
}
