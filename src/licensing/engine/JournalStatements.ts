/** The statements of a group commit: one for each kind of row, for all its licenses. */
import { Effect } from "effect"
import type { SqlClient, SqlError } from "effect/sql"
import { isUsage } from "../../ledger/events/Entry.ts"
import { columns } from "../../platform/postgres/driver/Parameters.ts"
import { mayTakeLong } from "../../platform/postgres/driver/Transactions.ts"
import { violates } from "../../platform/postgres/queries/Sql.ts"
import type { Assignment, DeviceRecord, LeaseRecord } from "../model/LicenseRecords.ts"
import { writeAssignments } from "../rows/AssignmentRows.ts"
import { resettableListStatuses } from "../rows/LicenseRows.ts"
import { updateProfiles } from "../rows/LicenseTable.ts"
import type { PendingChanges } from "./PendingChanges.ts"

type PendingGroup = ReadonlyArray<PendingChanges>

/** Rows with the license that they belong to. */
const owned = <A>(
  group: PendingGroup,
  rowsOf: (pending: PendingChanges) => Iterable<A>
): ReadonlyArray<A & { readonly license_id: string }> =>
  group.flatMap((pending) => Array.from(rowsOf(pending), (row) => ({ ...row, license_id: pending.base.license.id })))

type Statement = Effect.Effect<unknown, SqlError.SqlError>

const unlessEmpty = (rows: ReadonlyArray<unknown>, statement: () => Statement): ReadonlyArray<Statement> =>
  rows.length === 0 ? [] : [statement()]

/** The statements for all rows except stored responses and events, in their order. */
export const rowsOf = (sql: SqlClient.SqlClient, group: PendingGroup): ReadonlyArray<Statement> =>
  [timeLimit, profiles, othersReset, deviceRows, counts, assignments, removedAssignments, leases, seen].flatMap(
    (write) => write(sql, group)
  )

/** The number of devices and leases that a group can write within the time limit of commits. */
const rowsMax = 1_000

/** A revocation or the end of access changes all devices or leases of a license. 30,000 devices exceeded the limit. */
const timeLimit = (sql: SqlClient.SqlClient, group: PendingGroup): ReadonlyArray<Statement> => {
  let rows = 0
  for (const { changedDevices, changedLeases, othersResetAt } of group)
    rows += changedDevices.size + changedLeases.size + (othersResetAt === undefined ? 0 : rowsMax)
  return rows < rowsMax ? [] : [mayTakeLong(sql)]
}

/** Whether an event id is used already. The second index exists while event ids of earlier rows are being copied. */
export const repeatsEventId = (error: unknown): boolean =>
  violates(error, "usage_ledger_event_id") || violates(error, "usage_ledger_from_1_event_id")

/** The licenses whose changes count an event id that was counted before. */
export const licensesWithRepeatedEventIds = (sql: SqlClient.SqlClient, group: PendingGroup) => {
  const rows = group.flatMap((pending) =>
    pending.entries.filter(isUsage).filter(({ event_id }) => event_id !== undefined)
  )
  return Effect.map(
    sql<{ readonly license_id: string }>`
      SELECT DISTINCT license_id FROM unnest(
        ${columns.text(rows.map((row) => row.license_id))}, ${columns.text(rows.map((row) => row.event_id ?? null))}
      ) AS drafted (license_id, event_id) CROSS JOIN LATERAL counted_event(license_id, event_id) AS used`,
    (repeated): ReadonlySet<string> => new Set(repeated.map((row) => row.license_id))
  )
}

/** Writes the license columns that few commands change. The fence has already checked and locked the rows. */
const profiles = (sql: SqlClient.SqlClient, group: PendingGroup) => {
  const rows = group.filter((pending) => pending.profileChanged).map((pending) => pending.license)
  return unlessEmpty(rows, () => updateProfiles(sql, rows))
}

type Owned<A> = A & { readonly license_id: string }

/** Leaves the stored due instant as it is if the decision did not change it. */
const withNewPromise = ({ base }: PendingChanges, key: string, device: DeviceRecord): DeviceRecord =>
  base.devices.get(key)?.due_at === device.due_at ? { ...device, due_at: undefined } : device

/**
 * The times of a device's last contact never decrease: another node may have stored later ones, which raises no
 * revision if the policy requires no heartbeats.
 */
export const deviceRows = (sql: SqlClient.SqlClient, group: PendingGroup) => {
  const rows: ReadonlyArray<Owned<DeviceRecord>> = owned(group, (pending) =>
    Array.from(pending.changedDevices, ([key, device]) => withNewPromise(pending, key, device))
  )
  const text = (column: keyof DeviceRecord & string) =>
    sql`unnest(${columns.text(rows.map((row) => (row[column] as string | undefined) ?? null))})`
  const instants = (column: keyof DeviceRecord & string) =>
    sql`unnest(${columns.timestamptz(rows.map((row) => (row[column] as number | undefined) ?? null))})`
  return unlessEmpty(
    rows,
    () => sql`
      INSERT INTO devices (id, license_id, binding_kind, binding_key, fingerprint, hostname, os, ip_address, container_id,
        cluster_id, namespace, pod_name, is_vm, is_container, status, holds_slot, activated_at, first_seen_at, last_seen_at,
        last_validated_at, due_at, offline_expires_at, slot_held_until, metadata, created_at, updated_at)
      SELECT ${text("id")}, unnest(${columns.text(rows.map((row) => row.license_id))}), ${text("binding_kind")},
        ${text("binding_key")}, ${text("fingerprint")}, ${text("hostname")}, ${text("os")}, ${text("ip_address")},
        ${text("container_id")}, ${text("cluster_id")}, ${text("namespace")}, ${text("pod_name")},
        unnest(${columns.bool(rows.map((row) => row.is_vm))}), unnest(${columns.bool(rows.map((row) => row.is_container))}),
        ${text("status")}, unnest(${columns.bool(rows.map((row) => row.holds_slot))}), ${instants("activated_at")},
        ${instants("first_seen_at")}, ${instants("last_seen_at")}, ${instants("last_validated_at")},
        ${instants("due_at")}, ${instants("offline_expires_at")}, ${instants("slot_held_until")},
        unnest(${columns.jsonb(rows.map((row) => row.metadata))}), ${instants("created_at")}, ${instants("updated_at")}
      ON CONFLICT (id) DO UPDATE SET hostname = excluded.hostname, os = excluded.os, ip_address = excluded.ip_address,
        is_vm = excluded.is_vm, status = excluded.status, holds_slot = excluded.holds_slot,
        activated_at = excluded.activated_at, last_seen_at = GREATEST(devices.last_seen_at, excluded.last_seen_at),
        last_validated_at = GREATEST(devices.last_validated_at, excluded.last_validated_at),
        due_at = coalesce(excluded.due_at, devices.due_at),
        offline_expires_at = GREATEST(devices.offline_expires_at, excluded.offline_expires_at),
        slot_held_until = excluded.slot_held_until, metadata = excluded.metadata, updated_at = excluded.updated_at`
  )
}

/**
 * Resets the devices that are not cached: 100,000 took 1.8 s, and no memory of this process. It runs before
 * `deviceRows`, whose decisions on cached devices take precedence.
 */
const othersReset = (sql: SqlClient.SqlClient, group: PendingGroup) => {
  const rows = group.filter((pending) => pending.othersResetAt !== undefined)
  return unlessEmpty(
    rows,
    () => sql`
      UPDATE devices d SET status = 'reset', holds_slot = false, slot_held_until = NULL, updated_at = r.at
      FROM unnest(${columns.text(rows.map((pending) => pending.license.id))},
        ${columns.timestamptz(rows.map((pending) => pending.othersResetAt ?? null))}) AS r (license_id, at)
      WHERE d.license_id = r.license_id AND d.listed_as = ANY(${columns.text(resettableListStatuses)})`
  )
}

/** Devices that were only seen, in a batch that also changed their license. */
const seen = (sql: SqlClient.SqlClient, group: PendingGroup) => {
  const rows = group.flatMap((pending) => Array.from(pending.seen.values()))
  return unlessEmpty(rows, () => sql`${updateSeen(sql, rows)} WHERE d.id = s.id`)
}

/**
 * Records devices that were only seen. No decision depends on this, so the commit does not wait for the disk: a failure
 * of the database server may lose the last records. It fails soon if another transaction holds a device.
 */
export const recordSeenDevices = (sql: SqlClient.SqlClient, devices: ReadonlyArray<DeviceRecord>) => sql`
  WITH relaxed AS (SELECT set_config('synchronous_commit', 'off', true), set_config('lock_timeout', ${String(seenLockMillisMax)}, true))
  ${updateSeen(sql, devices)}, relaxed WHERE d.id = s.id`

/** As `recordSeenDevices`, without devices that another transaction holds. Locking each device first costs more. */
export const recordFreeSeenDevices = (sql: SqlClient.SqlClient, devices: ReadonlyArray<DeviceRecord>) => sql`
  ${updateSeen(sql, devices)}, LATERAL (
    SELECT ctid AS address FROM devices WHERE id = s.id FOR NO KEY UPDATE SKIP LOCKED
  ) AS free WHERE d.ctid = free.address`

const seenLockMillisMax = 250

const updateSeen = (sql: SqlClient.SqlClient, rows: ReadonlyArray<DeviceRecord>) => sql`
  UPDATE devices d SET last_seen_at = GREATEST(d.last_seen_at, s.last_seen_at),
    last_validated_at = GREATEST(d.last_validated_at, s.last_validated_at), due_at = GREATEST(d.due_at, s.due_at),
    offline_expires_at = GREATEST(d.offline_expires_at, s.offline_expires_at)
  FROM unnest(${columns.text(rows.map((row) => row.id))}, ${columns.timestamptz(rows.map((row) => row.last_seen_at))},
    ${columns.timestamptz(rows.map((row) => row.last_validated_at ?? null))}, ${columns.timestamptz(rows.map((row) => row.due_at ?? null))},
    ${columns.timestamptz(rows.map((row) => row.offline_expires_at ?? null))}) AS s (id, last_seen_at, last_validated_at, due_at, offline_expires_at)`

/** Whether only the consumption of an assignment has changed. Other assignments are written as a whole. */
const isOnlyCountChanged = ({ base }: PendingChanges, changed: Assignment): boolean => {
  const committed = base.assignments.get(changed.feature_code)
  return (
    committed !== undefined &&
    committed.feature_id === changed.feature_id &&
    committed.enabled === changed.enabled &&
    committed.max_consumptions === changed.max_consumptions &&
    committed.expires_at === changed.expires_at &&
    committed.expires_after_days === changed.expires_after_days &&
    committed.expires_with_license === changed.expires_with_license &&
    committed.expiry_recorded === changed.expiry_recorded &&
    committed.from_policy === changed.from_policy &&
    committed.metadata === changed.metadata &&
    hasSameQuota(committed, changed)
  )
}

/** Bought credits and overage are rarely used; then the row is written as a whole. */
const hasSameQuota = (one: Assignment, other: Assignment): boolean =>
  one.reset_period === other.reset_period &&
  one.reset_anchor === other.reset_anchor &&
  one.rollover_max === other.rollover_max &&
  one.overage_max === other.overage_max &&
  one.credits_used === other.credits_used &&
  one.overage === other.overage &&
  one.rolled_over === other.rolled_over &&
  one.extra_credits === other.extra_credits &&
  one.period_anchor === other.period_anchor &&
  one.periods_end_at === other.periods_end_at &&
  one.period_start === other.period_start &&
  one.resets_at === other.resets_at

const changedAssignments = (group: PendingGroup, counted: boolean): ReadonlyArray<Owned<Assignment>> =>
  owned(group, (pending) =>
    Array.from(pending.changedAssignments.values()).filter((row) => isOnlyCountChanged(pending, row) === counted)
  )

/** Writes consumption counters by row address (ctid), as the fence does. */
const counts = (sql: SqlClient.SqlClient, group: PendingGroup) => {
  const rows = changedAssignments(group, true)
  return unlessEmpty(
    rows,
    () => sql`
      UPDATE license_features a SET total_consumptions = counted.total_consumptions, updated_at = counted.updated_at
      FROM (
        SELECT unnest(${columns.text(rows.map((row) => row.license_id))}) AS license_id,
          unnest(${columns.text(rows.map((row) => row.feature_id))}) AS feature_id,
          unnest(${columns.int8(rows.map((row) => row.total_consumptions))}) AS total_consumptions,
          unnest(${columns.timestamptz(rows.map((row) => row.updated_at))}) AS updated_at
      ) AS counted CROSS JOIN LATERAL (
        SELECT ctid AS address FROM license_features
        WHERE license_id = counted.license_id AND feature_id = counted.feature_id OFFSET 0
      ) AS target WHERE a.ctid = target.address`
  )
}

const assignments = (sql: SqlClient.SqlClient, group: PendingGroup) => {
  const rows = changedAssignments(group, false)
  return unlessEmpty(rows, () => writeAssignments(sql, rows))
}

const removedAssignments = (sql: SqlClient.SqlClient, group: PendingGroup) => {
  const rows = owned(group, (pending) => Array.from(pending.removedAssignments, (feature_id) => ({ feature_id })))
  return unlessEmpty(
    rows,
    () => sql`
      DELETE FROM license_features USING unnest(
        ${columns.text(rows.map((row) => row.license_id))}, ${columns.text(rows.map((row) => row.feature_id))}
      ) AS gone (license_id, feature_id)
      WHERE license_features.license_id = gone.license_id AND license_features.feature_id = gone.feature_id`
  )
}

const leases = (sql: SqlClient.SqlClient, group: PendingGroup) => {
  const all: ReadonlyArray<Owned<LeaseRecord>> = owned(group, (pending) => pending.changedLeases.values())
  // A device has at most one live lease, so leases that end are written before leases that begin.
  const rows = [...all.filter((lease) => lease.status !== "live"), ...all.filter((lease) => lease.status === "live")]
  const ends = columns.timestamptz(rows.map((row) => row.expires_at))
  return unlessEmpty(
    rows,
    () => sql`
      INSERT INTO leases (id, license_id, device_id, token_hash, status, checked_out_at, heartbeat_at, expires_at, sweep_at, borrowed_until, ended_at)
      SELECT unnest(${columns.text(rows.map((row) => row.id))}), unnest(${columns.text(rows.map((row) => row.license_id))}),
        unnest(${columns.text(rows.map((row) => row.device_id))}),
        decode(unnest(${columns.text(rows.map((row) => row.token_hash))}), 'hex'),
        unnest(${columns.text(rows.map((row) => row.status))}),
        unnest(${columns.timestamptz(rows.map((row) => row.checked_out_at))}),
        unnest(${columns.timestamptz(rows.map((row) => row.heartbeat_at))}), unnest(${ends}), unnest(${ends}),
        unnest(${columns.timestamptz(rows.map((row) => row.borrowed_until ?? null))}),
        unnest(${columns.timestamptz(rows.map((row) => row.ended_at ?? null))})
      ON CONFLICT (id) DO UPDATE SET status = excluded.status, heartbeat_at = excluded.heartbeat_at,
        expires_at = excluded.expires_at, sweep_at = LEAST(leases.sweep_at, excluded.expires_at),
        borrowed_until = excluded.borrowed_until, ended_at = excluded.ended_at`
  )
}
