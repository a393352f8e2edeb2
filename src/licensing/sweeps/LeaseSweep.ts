/** Records the lapsed leases of unused licenses: the changes of `Lifecycle.settle`, for many licenses at once. */
import { Clock, Context, Effect, Layer, Option } from "effect"
import { SqlClient } from "effect/sql"
import { EventLog } from "../../ledger/events/EventLog.ts"
import { columns, instant, int8 } from "../../platform/postgres/driver/Parameters.ts"
import { nextRevision } from "../../platform/postgres/queries/Revision.ts"
import { exclusively } from "../../platform/workers/Exclusive.ts"
import type { LeaseRecord, LicenseRecord, PolicyRecord } from "../model/LicenseRecords.ts"
import { endsAfter } from "../rows/LicenseRows.ts"
import { leaseExpiredEvent } from "../rules/ClockEvents.ts"
import { isCutOff } from "../rules/Lifecycle.ts"
import { clockEvents, lockLicenses } from "./SweepBatches.ts"

/** Leases in one transaction: a request that waits for one of their licenses, or for a processor, waits about 3 ms. */
const batchSize = 50

/** The end of a batch in the order of the checks. */
type SweepPosition = Pick<LeaseRecord, "id"> & { readonly due_at: number }

type DuePosition = SweepPosition & { readonly license_id: string }

type DueLease = Pick<LeaseRecord, "id" | "expires_at" | "device_id"> &
  Pick<DuePosition, "license_id"> &
  Pick<LicenseRecord, "status"> &
  Pick<PolicyRecord, "grace_period_days"> & { readonly license_expires_at: number | null }

export class LeaseSweep extends Context.Service<LeaseSweep, { readonly pass: Effect.Effect<void> }>()(
  "licensing/licensing/sweeps/LeaseSweep"
) {
  static readonly layer = Layer.effect(
    LeaseSweep,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { appendRows } = yield* EventLog

      const batch = Effect.fnUntraced(function* (after: SweepPosition) {
        const now = yield* Clock.currentTimeMillis
        const candidates = yield* selectDue(sql, after, now)
        const licenses = yield* lockLicenses(sql, Array.from(new Set(candidates.map((lease) => lease.license_id))))
        const leases = licenses.length === 0 ? [] : yield* readDue(sql, candidates, licenses, now)
        const [ended, lapsed] = [true, false].map((cut) => leases.filter((lease) => isCut(lease, now) === cut))
        if (leases.length > 0) yield* writeEnds(sql, ended!, lapsed!, yield* nextRevision, now)
        if (licenses.length > 0) yield* postpone(sql, candidates, licenses, now)
        yield* appendRows(
          clockEvents(
            lapsed!.map((lease) => leaseExpiredEvent(lease.license_id, lease)),
            now
          )
        )
        return candidates
      })

      const pass = Effect.gen(function* () {
        let position: SweepPosition = { id: "", due_at: 0 }
        while (true) {
          const candidates = yield* exclusively(sql, "lease-sweep")(batch(position))
          if (Option.isNone(candidates) || candidates.value.length < batchSize) return
          position = candidates.value.at(-1)!
        }
      })
      return LeaseSweep.of({ pass: Effect.orDie(Effect.withSpan(pass, "LeaseSweep.pass")) })
    })
  )
}

/** Leases that may have lapsed. The condition and the order match an index. */
const selectDue = (sql: SqlClient.SqlClient, after: SweepPosition, now: number) => sql<DuePosition>`
  SELECT id, license_id, ${sql.literal(endsAfter)} AS due_at FROM leases e
  WHERE status = 'live' AND ${sql.literal(endsAfter)} <= ${instant(now)}
    AND (${sql.literal(endsAfter)}, id) > (${instant(after.due_at)}, ${after.id})
  ORDER BY ${sql.literal(endsAfter)}, id LIMIT ${batchSize}`

/** Postpones the check of extended leases to their new end. */
const postpone = (
  sql: SqlClient.SqlClient,
  candidates: ReadonlyArray<DuePosition>,
  licenses: ReadonlyArray<string>,
  now: number
) => sql`
  UPDATE leases SET sweep_at = expires_at
  WHERE id = ANY(${columns.text(candidates.map(({ id }) => id))}) AND license_id = ANY(${columns.text(licenses)})
    AND status = 'live' AND expires_at > ${instant(now)}`

/** The leases that are still due after their licenses were locked. */
const readDue = (
  sql: SqlClient.SqlClient,
  candidates: ReadonlyArray<DuePosition>,
  licenses: ReadonlyArray<string>,
  now: number
) =>
  sql<DueLease>`
    SELECT e.id, e.license_id, e.device_id, e.expires_at, l.status, l.expires_at AS license_expires_at, p.grace_period_days
    FROM leases e JOIN licenses l ON l.id = e.license_id JOIN policies p ON p.id = l.policy_id
    WHERE e.id = ANY(${columns.text(candidates.map(({ id }) => id))}) AND e.license_id = ANY(${columns.text(licenses)})
      AND e.status = 'live' AND e.expires_at <= ${instant(now)}
    ORDER BY e.expires_at, e.id`

const isCut = (lease: DueLease, now: number): boolean =>
  isCutOff(lease, { status: lease.status, expires_at: lease.license_expires_at ?? undefined }, lease, now)

/** An activated device stays active, and a device with a lapsed activation is expired again. */
const writeEnds = (
  sql: SqlClient.SqlClient,
  ended: ReadonlyArray<DueLease>,
  lapsed: ReadonlyArray<DueLease>,
  revision: number,
  nowMillis: number
) => {
  const now = instant(nowMillis)
  return sql`
    WITH over AS (
      SELECT * FROM unnest(${columns.text([...ended, ...lapsed].map(({ id }) => id))},
        ${columns.text([...ended.map(() => "ended"), ...lapsed.map(() => "expired")])},
        ${columns.timestamptz([...ended.map(() => nowMillis), ...lapsed.map(({ expires_at }) => expires_at)])}
      ) AS over (id, status, ended_at)
    ), written AS (
      UPDATE leases SET status = over.status, ended_at = over.ended_at FROM over WHERE leases.id = over.id
      RETURNING leases.license_id, leases.device_id, over.status
    ), freed AS (
      UPDATE devices SET updated_at = ${now},
        status = CASE WHEN written.status = 'ended' AND activated_at IS NULL THEN 'deactivated' ELSE 'expired' END
      FROM written WHERE devices.id = written.device_id AND devices.status = 'active' AND NOT devices.holds_slot
    )
    UPDATE licenses SET revision = ${int8(revision)} WHERE id IN (SELECT license_id FROM written)`
}
