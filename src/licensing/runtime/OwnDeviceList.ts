/** The devices of a license for the holder of its key, with the clock applied: without addresses and fingerprints. */
import { Clock, Effect } from "effect"
import { SqlClient } from "effect/sql"
import { limitDefault, nextCursorOf, type PageRequest, pageOf } from "../../contract/api/Paging.ts"
import { formatTimestamp } from "../../contract/api/Timestamp.ts"
import { instant } from "../../platform/postgres/driver/Parameters.ts"
import { withoutNulls } from "../../platform/postgres/queries/Sql.ts"
import type { OwnDevice, OwnDevices } from "../model/Payloads.ts"
import { isOverdue, seatIsLive, statusNow } from "../rows/DeviceStatusSql.ts"

/** A row of the list: instants in milliseconds, null without a value. */
interface Row extends Pick<OwnDevice, "id" | "binding_kind" | "status" | "is_activated"> {
  readonly hostname: string | null
  readonly os: string | null
  readonly pod_name: string | null
  readonly created_at: number
  readonly first_seen_at: number
  readonly last_seen_at: number
  readonly last_validated_at: number | null
  readonly offline_expires_at: number | null
  readonly slot_held_until: number | null
  readonly seat_expires_at: number | null
  readonly borrowed_until: number | null
}

export const makeOwnDevices = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  /** The newest devices first. */
  return Effect.fnUntraced(function* (licenseId: string, { cursor, limit = limitDefault }: PageRequest) {
    const nowMillis = yield* Clock.currentTimeMillis
    const now = instant(nowMillis)
    const after =
      cursor === undefined ? sql`TRUE` : sql`(d.created_at, d.id) < (${instant(Number(cursor.value))}, ${cursor.id})`
    const rows = yield* sql<Row>`
      SELECT d.id, d.binding_kind, ${statusNow(sql, nowMillis)} AS status,
        d.status = 'active' AND d.holds_slot AND NOT ${isOverdue(sql, nowMillis)} AS is_activated, d.hostname, d.os, d.pod_name,
        d.created_at, d.first_seen_at, d.last_seen_at, d.last_validated_at,
        CASE WHEN d.offline_expires_at > ${now} THEN d.offline_expires_at END AS offline_expires_at,
        CASE WHEN d.slot_held_until > ${now} THEN d.slot_held_until END AS slot_held_until,
        CASE WHEN ${seatIsLive(sql, nowMillis)} THEN e.expires_at END AS seat_expires_at,
        CASE WHEN e.borrowed_until > ${now} THEN e.borrowed_until END AS borrowed_until
      FROM devices d JOIN licenses l ON l.id = d.license_id JOIN policies p ON p.id = l.policy_id
      LEFT JOIN leases e ON e.device_id = d.id AND e.status = 'live'
      WHERE d.license_id = ${licenseId} AND ${after} ORDER BY d.created_at DESC, d.id DESC LIMIT ${limit + 1}`
    const page = pageOf(rows, limit)
    return { devices: page.items.map(shown), next_cursor: nextCursorOf(page) } satisfies Pick<
      OwnDevices,
      "devices" | "next_cursor"
    >
  }, Effect.orDie)
})

const times = [
  "first_seen_at",
  "last_seen_at",
  "last_validated_at",
  "offline_expires_at",
  "slot_held_until",
  "seat_expires_at",
  "borrowed_until"
] as const

const shown = ({ created_at: _, ...row }: Row): OwnDevice =>
  withoutNulls<OwnDevice>({
    ...row,
    ...Object.fromEntries(times.map((time) => [time, row[time] === null ? null : formatTimestamp(row[time])]))
  } as never)
