/** The columns of the tables around a license, and the conversion of rows into records. */

import { storedMetadata } from "../../contract/api/Metadata.ts"
import { type Nullable, withoutNulls } from "../../platform/postgres/queries/Sql.ts"
import { sha256Hex } from "../../platform/signing/Digest.ts"
import { clockLagMillisMax } from "../model/ClockLag.ts"
import type { DeviceStatus } from "../model/Device.ts"
import { resettableStatuses } from "../model/DeviceTransitions.ts"
import type { DeviceRecord, LeaseRecord, LicenseRecord, PolicyRecord } from "../model/LicenseRecords.ts"
import type { Limits } from "../model/Limits.ts"
import { type CachedDevice, CommittedState } from "../state/CommittedState.ts"
import { type AssignmentRow, assignmentOf } from "./AssignmentRows.ts"
import { licenseOf } from "./LicenseTable.ts"

/** `clockLagMillisMax` as an interval of SQL. */
export const clockLag = `interval '${clockLagMillisMax} milliseconds'`

export interface LicenseOwned {
  readonly license_id: string
}

/** The maximum number of devices that are loaded with a license. If it has more, they are looked up when needed. */
const devicesLoaded = 64

export const hasManyDevices = `EXISTS (SELECT FROM devices WHERE license_id = l.id OFFSET ${devicesLoaded})`

/** Columns of the same row as the license's. Names that both tables have begin with `policy_`. */
export const policyColumns = `p.license_type, p.max_activations AS policy_max_activations,
  p.max_floating_users AS policy_max_floating_users, p.max_container_instances AS policy_max_container_instances,
  p.floating_timeout_minutes, p.grace_period_days, p.validation_interval_minutes, p.require_heartbeat,
  p.allow_offline_activation, p.offline_grace_days AS policy_offline_grace_days, p.allow_vm, p.allow_container,
  p.max_transfers AS policy_max_transfers, p.allow_transfer, p.borrow_days_max,
  p.self_deactivations_per_month AS policy_self_deactivations_per_month, p.hold_offline_slots, p.show_licensee, p.show_metadata,
  coalesce(p.duration_days, p.maintenance_days) AS duration_days, p.duration_starts,
  p.not_due_before AS policy_not_due_before, p.revision AS policy_revision, p.entitlement_counter AS policy_entitlement_counter`

export const deviceColumns = `d.license_id, d.id, d.binding_kind, d.binding_key, d.fingerprint, d.hostname, d.os, d.ip_address,
  d.container_id, d.cluster_id, d.namespace, d.pod_name, d.is_vm, d.is_container, d.status, d.holds_slot, d.activated_at,
  d.first_seen_at, d.last_seen_at, d.last_validated_at, d.due_at, d.offline_expires_at, d.slot_held_until, d.metadata, d.created_at, d.updated_at`

/** The column `listed_as` by status. Active and deactivated are `either`, because their difference depends on seats. */
export const listStatusOf = (status: DeviceStatus): string =>
  status === "active" || status === "deactivated" ? "either" : status

/** Whether a device `d` has a slot, in a form that matches the index. */
export const holdsSlot = "d.listed_as = 'either' AND d.holds_slot"

/** The `listed_as` of devices that a reset changes. */
export const resettableListStatuses: ReadonlyArray<string> = Array.from(new Set(resettableStatuses.map(listStatusOf)))

/** When a device `d` with a slot is due by stored instants alone: no edit makes this earlier. */
export const storedDueAt = "greatest(d.due_at, l.not_due_before, p.not_due_before)"

/** `Heartbeat.dueAfterStart`, or NULL. */
const dueAfterStart = `CASE WHEN l.not_due_before >= l.starts_at
  AND greatest(d.activated_at, d.last_validated_at, '-infinity') < l.starts_at
  THEN l.starts_at + make_interval(mins => p.validation_interval_minutes, secs => 30) END`

/** When the heartbeat of a device `d` with a slot is due: `Heartbeat.dueAt`, with NULL for never. */
export const deviceDueAt = `greatest(${storedDueAt}, ${dueAfterStart})`

export const leaseColumns = `e.license_id, e.id, e.device_id, encode(e.token_hash, 'hex') AS token_hash, e.status,
  e.checked_out_at, e.heartbeat_at, e.expires_at, e.borrowed_until, e.ended_at`

/** The policy `p` and the product of a license `l`. */
export const licenseDependencies = "JOIN policies p ON p.id = l.policy_id JOIN products ON products.id = l.product_id"

export const revisionColumns = "l.revision AS license, p.revision AS policy, products.catalog_revision AS catalog"

type PrefixedColumn = keyof Limits | "not_due_before" | "revision" | "entitlement_counter"

/** A policy, with the names of `policyColumns`. */
export type PolicyRow = { readonly policy_id: string } & Nullable<Omit<PolicyRecord, "id" | PrefixedColumn>> & {
    readonly [K in PrefixedColumn as `policy_${K}`]-?: Nullable<PolicyRecord>[K]
  }

export type LoadedLicense = Nullable<LicenseRecord> & {
  readonly has_many_devices: boolean
  /** When the first live lease ends. */
  readonly lapsing_from: number | null
}

/** What all licenses of a policy share. */
export interface Shared {
  readonly policy: PolicyRecord
  readonly productCode: string
  readonly catalogRevision: number
}

/** The columns of `Shared`, of a policy `p` and its product. */
export const sharedColumns = `p.id AS policy_id, ${policyColumns}, products.catalog_revision, products.code AS product_code`

export type SharedRow = PolicyRow & { readonly catalog_revision: number; readonly product_code: string }

export const sharedOf = (row: SharedRow): Shared => ({
  policy: policyOf(row),
  productCode: row.product_code,
  catalogRevision: row.catalog_revision
})

/** A license and its policy in one row. */
export type LicenseAndPolicyRow = Nullable<LicenseRecord> & PolicyRow

export const policyOf = (row: PolicyRow): PolicyRecord =>
  withoutNulls<PolicyRecord>({
    id: row.policy_id,
    license_type: row.license_type,
    max_activations: row.policy_max_activations,
    max_floating_users: row.policy_max_floating_users,
    max_container_instances: row.policy_max_container_instances,
    floating_timeout_minutes: row.floating_timeout_minutes,
    grace_period_days: row.grace_period_days,
    validation_interval_minutes: row.validation_interval_minutes,
    require_heartbeat: row.require_heartbeat,
    allow_offline_activation: row.allow_offline_activation,
    offline_grace_days: row.policy_offline_grace_days,
    allow_vm: row.allow_vm,
    allow_container: row.allow_container,
    max_transfers: row.policy_max_transfers,
    allow_transfer: row.allow_transfer,
    borrow_days_max: row.borrow_days_max,
    self_deactivations_per_month: row.policy_self_deactivations_per_month,
    hold_offline_slots: row.hold_offline_slots,
    show_licensee: row.show_licensee,
    show_metadata: row.show_metadata,
    duration_days: row.duration_days,
    duration_starts: row.duration_starts,
    not_due_before: row.policy_not_due_before,
    revision: row.policy_revision,
    entitlement_counter: row.policy_entitlement_counter
  })

/** A stored device, without the hash of its binding key. */
export type DeviceRow = Nullable<Omit<DeviceRecord, "binding_hash">>

/** Runs for nearly each request of a large license. Copies each field, because rest patterns make slow objects. */
export const deviceOf = (row: DeviceRow): DeviceRecord =>
  withoutNulls<DeviceRecord>({
    id: row.id,
    binding_kind: row.binding_kind,
    binding_key: row.binding_key,
    binding_hash: sha256Hex(row.binding_key),
    fingerprint: row.fingerprint,
    hostname: row.hostname,
    os: row.os,
    ip_address: row.ip_address,
    container_id: row.container_id,
    cluster_id: row.cluster_id,
    namespace: row.namespace,
    pod_name: row.pod_name,
    is_vm: row.is_vm,
    is_container: row.is_container,
    status: row.status,
    holds_slot: row.holds_slot,
    activated_at: row.activated_at,
    first_seen_at: row.first_seen_at,
    last_seen_at: row.last_seen_at,
    last_validated_at: row.last_validated_at,
    due_at: row.due_at,
    offline_expires_at: row.offline_expires_at,
    slot_held_until: row.slot_held_until,
    metadata: storedMetadata(row.metadata),
    created_at: row.created_at,
    updated_at: row.updated_at
  })

const leaseOf = (row: Nullable<LeaseRecord>): LeaseRecord =>
  withoutNulls<LeaseRecord>({
    id: row.id,
    device_id: row.device_id,
    token_hash: row.token_hash,
    status: row.status,
    checked_out_at: row.checked_out_at,
    heartbeat_at: row.heartbeat_at,
    expires_at: row.expires_at,
    borrowed_until: row.borrowed_until,
    ended_at: row.ended_at
  })

/** A device `d` and its lease `e`, if it has one. */
export const cachedDeviceColumns = `${deviceColumns}, e.id AS lease_id, encode(e.token_hash, 'hex') AS lease_token_hash,
  e.status AS lease_status, e.checked_out_at AS lease_checked_out_at, e.heartbeat_at AS lease_heartbeat_at,
  e.expires_at AS lease_expires_at, e.borrowed_until AS lease_borrowed_until, e.ended_at AS lease_ended_at`

/** No device with a slot of a license `l` is due before this instant. */
export const earliestDueAt = "coalesce(l.heartbeat_from, l.created_at)"

/** No live lease `e` ends before this instant. Indexes contain it instead of the end, which each heartbeat changes. */
export const endsAfter = "coalesce(e.sweep_at, e.checked_out_at)"

/** The live lease `e` of a device `d`, if it has one. */
export const joinDeviceLease = "LEFT JOIN leases e ON e.device_id = d.id AND e.status = 'live'"

type JoinedLease = {
  readonly [K in keyof Required<Omit<LeaseRecord, "device_id">> as `lease_${K}`]: LeaseRecord[K] | null
}

export type CachedDeviceRow = DeviceRow & LicenseOwned & JoinedLease

export const cachedDeviceOf = (row: CachedDeviceRow): CachedDevice => ({
  device: deviceOf(row),
  lease:
    row.lease_id === null
      ? undefined
      : withoutNulls<LeaseRecord>({
          id: row.lease_id,
          device_id: row.id,
          token_hash: row.lease_token_hash!,
          status: row.lease_status!,
          checked_out_at: row.lease_checked_out_at!,
          heartbeat_at: row.lease_heartbeat_at!,
          expires_at: row.lease_expires_at!,
          borrowed_until: row.lease_borrowed_until ?? null,
          ended_at: row.lease_ended_at ?? null
        })
})

export const committedStateOf = (
  row: LoadedLicense,
  shared: Shared,
  assignments: ReadonlyArray<AssignmentRow>,
  devices: ReadonlyArray<DeviceRow & LicenseOwned>,
  leases: ReadonlyArray<Nullable<LeaseRecord> & LicenseOwned>
): CommittedState => {
  const mayLapse = row.has_many_devices && shared.policy.require_heartbeat
  return new CommittedState({
    ...shared,
    license: licenseOf(row),
    assignments: assignments.map(assignmentOf),
    devices: devices.map(deviceOf),
    devicesComplete: !row.has_many_devices,
    leases: leases.map(leaseOf),
    lapsingFrom: (row.has_many_devices ? row.lapsing_from : null) ?? Number.POSITIVE_INFINITY,
    silentFrom: mayLapse ? (row.heartbeat_from ?? row.created_at) : Number.POSITIVE_INFINITY
  })
}
