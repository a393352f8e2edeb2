/**
 * Records the overdue heartbeats of unused licenses: the changes of `Lifecycle.settle`, for many licenses at once. Each
 * check of a license stores the earliest due instant of its devices, at most one interval ahead (`heartbeat_from`); the
 * next check follows it.
 */
import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { EventLog } from "../../ledger/events/EventLog.ts"
import { columns, instant, int8 } from "../../platform/postgres/driver/Parameters.ts"
import { nextRevision } from "../../platform/postgres/queries/Revision.ts"
import { emptyBatch, exclusively, untilDone } from "../../platform/workers/Exclusive.ts"
import { isOverdue } from "../rows/DeviceStatusSql.ts"
import { deviceDueAt, earliestDueAt, holdsSlot, storedDueAt } from "../rows/LicenseRows.ts"
import { deviceExpiredEvent } from "../rules/ClockEvents.ts"
import { clockEvents, idsOf, lockLicenses } from "./SweepBatches.ts"

/** Licenses in one transaction. */
const batchSize = 500
/** Devices in one transaction; the others follow in the next batch. */
const devicesMax = 2000

interface Silent {
  readonly id: string
  readonly license_id: string
  /** A device with a floating seat stays active. */
  readonly holds_seat: boolean
}

export class HeartbeatSweep extends Context.Service<
  HeartbeatSweep,
  {
    /** Expires each overdue device and frees its slot. */
    readonly pass: Effect.Effect<void>
  }
>()("licensing/licensing/sweeps/HeartbeatSweep") {
  static readonly layer = Layer.effect(
    HeartbeatSweep,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { appendRows } = yield* EventLog

      const batch = Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis
        const candidates = yield* idsOf(dueLicenses(sql, now))
        const licenses = yield* lockLicenses(sql, candidates)
        if (licenses.length === 0) return emptyBatch
        const silent = yield* readSilent(sql, licenses, now)
        yield* writeDevices(sql, silent, now)
        yield* writeLicenses(sql, licenses, silent, yield* nextRevision, now)
        const events = silent.map((device) => deviceExpiredEvent(device.license_id, device.id))
        yield* appendRows(clockEvents(events, now))
        return { found: silent.length === devicesMax ? batchSize : candidates.length, done: licenses.length }
      })

      const pass = untilDone(batchSize, exclusively(sql, "heartbeat-sweep")(batch))
      return HeartbeatSweep.of({ pass: Effect.orDie(Effect.withSpan(pass, "HeartbeatSweep.pass")) })
    })
  )
}

const statusOf = ({ holds_seat }: Silent) => (holds_seat ? "active" : "expired")

const dueLicenses = (sql: SqlClient.SqlClient, now: number) => sql<{ readonly id: string }>`
  SELECT due.id FROM policies p CROSS JOIN LATERAL (
    SELECT l.id FROM licenses l
    WHERE l.policy_id || '' = p.id AND ${sql.literal(earliestDueAt)} < ${instant(now)}
    LIMIT ${batchSize}
  ) AS due
  WHERE p.require_heartbeat AND coalesce(p.not_due_before < ${instant(now)}, TRUE) LIMIT ${batchSize}`

const readSilent = (sql: SqlClient.SqlClient, licenses: ReadonlyArray<string>, nowMillis: number) => {
  const now = instant(nowMillis)
  return sql<Silent>`
    SELECT d.id, d.license_id, EXISTS (
      SELECT FROM leases e WHERE e.device_id = d.id AND e.status = 'live' AND e.expires_at > ${now}
        AND (l.status IN ('suspended', 'revoked') OR l.expires_at IS NULL
          OR greatest(l.expires_at + make_interval(days => p.grace_period_days), e.borrowed_until) > ${now})
    ) AS holds_seat
    FROM devices d JOIN licenses l ON l.id = d.license_id JOIN policies p ON p.id = l.policy_id
    WHERE d.license_id = ANY(${columns.text(licenses)}) AND ${sql.literal(holdsSlot)}
      AND ${isOverdue(sql, nowMillis)}
    ORDER BY d.license_id, d.id LIMIT ${devicesMax}`
}

const writeDevices = (sql: SqlClient.SqlClient, silent: ReadonlyArray<Silent>, now: number) => sql`
  UPDATE devices SET status = silent.status, holds_slot = false, updated_at = ${instant(now)}
  FROM unnest(${columns.text(silent.map(({ id }) => id))}, ${columns.text(silent.map(statusOf))}) AS silent (id, status)
  WHERE devices.id = silent.id`

/**
 * A later promise of a slot is due after `heartbeat_from`, or lowers it. For that, decisions must know the stored
 * instant, so this raises the revision. Devices that are due after the end of access also count, because a renewal may
 * move the end.
 */
const writeLicenses = (
  sql: SqlClient.SqlClient,
  licenses: ReadonlyArray<string>,
  silent: ReadonlyArray<Silent>,
  revision: number,
  now: number
) => {
  const expired = Map.groupBy(silent, ({ license_id }) => license_id)
  const due = sql.literal(deviceDueAt)
  const stored = sql.literal(storedDueAt)
  const at = sql`${instant(now)}::timestamptz`
  // After a start a shorter interval of the policy may make a device due earlier, so it is checked again after a minute.
  const bound = sql`CASE WHEN ${due} > ${stored} THEN least(${due}, greatest(${stored}, ${at} + interval '1 minute')) ELSE ${due} END`
  return sql`
    UPDATE licenses l SET active_device_count = l.active_device_count - checked.expired, revision = ${int8(revision)},
      heartbeat_from = least(
        (SELECT min(${bound}) FROM devices d WHERE d.license_id = l.id AND ${sql.literal(holdsSlot)}
          AND l.status NOT IN ('suspended', 'revoked') AND (${due} >= ${at} OR l.expires_at IS NULL
            OR ${due} < l.expires_at + make_interval(days => p.grace_period_days) - interval '1 ms')),
        ${at} + make_interval(mins => p.validation_interval_minutes, secs => 30))
    FROM unnest(${columns.text(licenses)}, ${columns.int4(licenses.map((id) => expired.get(id)?.length ?? 0))}) AS checked (id, expired),
      policies p
    WHERE l.id = checked.id AND p.id = l.policy_id`
}
