/**
 * Writes down what the clock has made of licenses that nobody uses: grace, expiry, and the notices ahead of expiry. It decides
 * by the functions that `Lifecycle.settle` decides by and writes for many licenses at once: states, version counters, leases
 * that end, events, each once. A license that is locked at the moment is in use, and its actor writes the same.
 */
import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import { formatTimestamp } from "../api/Timestamp.ts"
import { EventLog, type NewEvent } from "../events/EventLog.ts"
import { columns, instant } from "../postgres/Parameters.ts"
import { exclusively, nothing, untilDone } from "../workers/Exclusive.ts"
import type { LicenseStatus } from "./License.ts"
import type { LicenseRecord, PolicyRecord } from "./LicenseState.ts"
import { accessEndsAt, passed, passedEvents, statusByClock } from "./Lifecycle.ts"
import { byClock } from "./Sweeping.ts"

/**
 * Licenses in one transaction: whoever waits for one of them, for the one counter row of events, or for a processor, waits some
 * 3 ms. Twice as many made the p99 of a consumption a fifth longer.
 */
const batchSize = 50

/** Days ahead of expiry at which it is announced, the last first. */
const noticeDays = [1, 3, 7] as const
/** What stands for "not announced yet" in the index of announcements. */
const unannounced = 8
const dayMillis = 86_400_000

interface Found {
  readonly id: string
  /** How many were found with it, those included that somebody else held. */
  readonly found: number
}

type DueLicense = Found &
  Pick<LicenseRecord, "status" | "entitlement_counter"> &
  Pick<PolicyRecord, "grace_period_days"> & { readonly expires_at: number }

interface Expiring extends Found {
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
      const { appendRows } = yield* EventLog

      const move = Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis
        const due = yield* holdOutdated(sql, now)
        if (due.length === 0) return nothing
        const moved = due.filter((row) => statusByClock(row, row, now) !== row.status)
        yield* writeMoves(sql, moved, now)
        yield* appendRows(
          byClock(
            moved.flatMap((row) => passedEvents(row.id, passed(row, row, now))),
            now
          ),
          []
        )
        return { found: due[0]!.found, done: moved.length }
      })

      const announce = Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis
        const expiring = yield* holdUnnoticed(sql, now)
        if (expiring.length === 0) return nothing
        const due = expiring.filter((row) => row.expires_at > now && reachedDays(row, now) < row.announced)
        yield* writeNotices(sql, due, now)
        yield* appendRows(
          byClock(
            due.flatMap((row) => notices(row, now)),
            now
          ),
          []
        )
        return { found: expiring[0]!.found, done: due.length }
      })

      const exclusive = exclusively(sql, "expiry-sweep")
      const pass = Effect.andThen(untilDone(batchSize, exclusive(move)), untilDone(batchSize, exclusive(announce)))
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
 * Finds, locks and reads them in one statement. They are locked in the order of their ids, as the Journal does, and one that
 * somebody holds is left out: it is in use, and waiting for it would hold up all others. A row is given as it is under its lock.
 */
const holdOutdated = (sql: SqlClient.SqlClient, nowMillis: number) => sql<DueLicense>`
  WITH due AS MATERIALIZED (${outdated(sql, nowMillis)})
  SELECT l.id, l.status, l.expires_at, l.entitlement_counter, p.grace_period_days, (SELECT count(*) FROM due) AS found
  FROM due JOIN licenses l ON l.id = due.id JOIN policies p ON p.id = l.policy_id
  WHERE l.expires_at IS NOT NULL AND l.status IN ('active', 'grace_period', 'expired')
  ORDER BY l.id FOR NO KEY UPDATE OF l SKIP LOCKED`

/**
 * The states, and with them the leases that were live when their license's access ended and the devices that were active for
 * nothing else.
 */
const writeMoves = (sql: SqlClient.SqlClient, rows: ReadonlyArray<DueLicense>, nowMillis: number) => {
  const now = instant(nowMillis)
  const over = rows.filter((row) => statusByClock(row, row, nowMillis) === "expired")
  return sql`
    WITH moved AS (
      UPDATE licenses l SET status = moved.status, entitlement_counter = moved.entitlement_counter, revision = l.revision + 1
      FROM unnest(${columns.text(rows.map((row) => row.id))},
        ${columns.text(rows.map((row) => statusByClock(row, row, nowMillis)))},
        ${columns.int8(rows.map((row) => row.entitlement_counter + passed(row, row, nowMillis).length))}
      ) AS moved (id, status, entitlement_counter)
      WHERE l.id = moved.id
    ), ended AS (
      UPDATE leases SET status = 'ended', ended_at = ${now}
      FROM unnest(${columns.text(over.map((row) => row.id))}, ${columns.timestamptz(over.map((row) => accessEndsAt(row, row)!))}
      ) AS over (license_id, access_ended_at)
      WHERE leases.license_id = over.license_id AND leases.status = 'live' AND leases.expires_at >= over.access_ended_at
      RETURNING leases.device_id
    )
    UPDATE devices SET status = CASE WHEN activated_at IS NULL THEN 'deactivated' ELSE 'expired' END, updated_at = ${now}
    FROM ended WHERE devices.id = ended.device_id AND devices.status = 'active' AND NOT devices.holds_slot`
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

const holdUnnoticed = (sql: SqlClient.SqlClient, nowMillis: number) => sql<Expiring>`
  WITH due AS MATERIALIZED (${unnoticed(sql, nowMillis)})
  SELECT l.id, l.expires_at, l.created_at, CASE WHEN l.expiring_for = l.expires_at THEN l.expiring_days ELSE ${unannounced} END
    AS announced, (SELECT count(*) FROM due) AS found
  FROM due JOIN licenses l ON l.id = due.id WHERE l.status = 'active' AND l.expires_at IS NOT NULL
  ORDER BY l.id FOR NO KEY UPDATE OF l SKIP LOCKED`

/** No revision rises: nothing is decided by what was announced. */
const writeNotices = (sql: SqlClient.SqlClient, rows: ReadonlyArray<Expiring>, now: number) => sql`
  UPDATE licenses SET expiring_for = licenses.expires_at, expiring_days = notice.days
  FROM unnest(${columns.text(rows.map((row) => row.id))}, ${columns.int4(rows.map((row) => reachedDays(row, now)))}
  ) AS notice (id, days)
  WHERE licenses.id = notice.id`

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
