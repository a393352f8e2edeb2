/**
 * The state that license rules decide on: the license with its policy, assignments, devices and leases, as the database held
 * them at one revision, and on top of that what has been decided since and not yet committed. Rules read it through
 * `LicenseView` and never change it; `Draft` is the one place where decisions are applied.
 */
import type { Metadata } from "../../api/Metadata.ts"
import type { LicenseType } from "../../catalog/policies/Policy.ts"
import type { NewEvent } from "../../events/EventLog.ts"
import type { DeviceBindingKind, DeviceStatus } from "./Device.ts"
import type { LicenseStatus } from "./License.ts"
import type { Entitlement } from "./Payloads.ts"

export interface LicenseRecord {
  readonly id: string
  readonly product_id: string
  readonly policy_id: string
  readonly customer_id?: string | undefined
  readonly order_id?: string | undefined
  readonly subscription_id?: string | undefined
  /** SHA-256 of the license key, lower-case hex. */
  readonly key_hash: string
  readonly license_key_prefix: string
  readonly license_key_last4: string
  /** As last written; `Lifecycle.statusAt` applies the clock. */
  readonly status: LicenseStatus
  readonly customer_email?: string | undefined
  readonly customer_name?: string | undefined
  readonly starts_at?: number | undefined
  readonly expires_at?: number | undefined
  readonly maintenance_expires_at?: number | undefined
  readonly active_device_count: number
  readonly times_activated: number
  readonly times_transferred: number
  readonly total_consumptions: number
  /** The license's own share of its published entitlement version. */
  readonly entitlement_counter: number
  readonly metadata: Metadata
  readonly revision: number
  readonly created_at: number
  readonly updated_at: number
}

/** The revisions that a license's state depends on: its own, its policy's, its product's catalog's. They only rise. */
export interface Revisions {
  readonly license: number
  readonly policy: number
  readonly catalog: number
}

/** The rules that the license follows, with the revision that a commit names. */
export interface PolicyRecord {
  readonly id: string
  readonly license_type: LicenseType
  readonly max_activations: number
  readonly max_floating_users?: number | undefined
  readonly max_container_instances?: number | undefined
  readonly floating_timeout_minutes: number
  readonly grace_period_days: number
  readonly validation_interval_minutes: number
  readonly require_heartbeat: boolean
  readonly allow_offline_activation: boolean
  readonly offline_grace_days: number
  readonly allow_vm: boolean
  readonly allow_container: boolean
  readonly max_transfers: number
  readonly revision: number
  readonly entitlement_counter: number
}

export interface Assignment {
  readonly feature_id: string
  readonly feature_code: string
  readonly feature_name: string
  readonly enabled: boolean
  readonly max_consumptions?: number | undefined
  readonly total_consumptions: number
  readonly expires_at?: number | undefined
  readonly metadata: Metadata
  readonly created_at: number
  readonly updated_at: number
}

export interface DeviceRecord {
  readonly id: string
  readonly binding_kind: DeviceBindingKind
  readonly binding_key: string
  readonly fingerprint?: string | undefined
  readonly hostname?: string | undefined
  readonly os?: string | undefined
  readonly ip_address?: string | undefined
  readonly container_id?: string | undefined
  readonly cluster_id?: string | undefined
  readonly namespace?: string | undefined
  readonly pod_name?: string | undefined
  readonly is_vm: boolean
  readonly is_container: boolean
  readonly status: DeviceStatus
  /** Whether an activation slot is taken; a floating seat's holder is active without one. */
  readonly holds_slot: boolean
  /** When the activation began that the device has, or had before it lapsed; absent for one that only ever held a seat. */
  readonly activated_at?: number | undefined
  readonly first_seen_at: number
  readonly last_seen_at: number
  readonly last_validated_at?: number | undefined
  readonly metadata: Metadata
  readonly created_at: number
  readonly updated_at: number
}

export type LeaseStatus = "live" | "checked_in" | "superseded" | "expired" | "ended" | "blacklisted"

export interface LeaseRecord {
  readonly id: string
  readonly device_id: string
  /** SHA-256 of the lease token, lower-case hex. */
  readonly token_hash: string
  readonly status: LeaseStatus
  readonly checked_out_at: number
  readonly heartbeat_at: number
  readonly expires_at: number
  readonly ended_at?: number | undefined
}

/** A row of the usage ledger without what the commit adds: sequence, license, actor, request. */
export interface LedgerEntry {
  readonly feature_id: string
  readonly action: "consume" | "reset" | "top_up" | "set_limit"
  readonly event_id?: string | undefined
  readonly amount: number
  readonly balance_after: number
  readonly max_after?: number | undefined
  readonly device_id?: string | undefined
  /** Of a consumption, which is an event by itself: it must tell what no record may tell later. */
  readonly feature_code?: string | undefined
}

/** A consumption that was counted before, as the ledger holds it. */
export interface CountedUsage {
  readonly feature_code: string
  readonly amount: number
}

/** A feature of the catalog, for assignments yet to be made. */
export interface FeatureRecord {
  readonly id: string
  readonly product_id: string
  readonly code: string
  readonly name: string
}

export type LinkKind = "customer" | "order" | "subscription"

/** A record that a command links to. */
export interface LinkRecord {
  readonly kind: LinkKind
  readonly id: string
  /** Customers belong to no product. */
  readonly product_id?: string | undefined
  /** The subscription that an order is linked to. */
  readonly subscription_id?: string | undefined
}

/** What the catalog says of an application version; `enforced` is false where the product has no versions. */
export interface VersionRecord {
  readonly enforced: boolean
  readonly released_at?: number | undefined
}

/** What a binding names: hardware by its fingerprint, a container by a digest of its ids. */
export interface BindingName {
  readonly kind: DeviceBindingKind
  readonly key: string
}

/** The features of an answer: the same at every instant from `since` on, and before `until`. */
interface FeaturesText {
  readonly since: number
  readonly until: number
  readonly features: Entitlement["features"]
}

/** What is made of a license's assignments alone, for as long as none of them changes. */
export interface CachedViews {
  shownFeatures?: FeaturesText
}

/** What rules see. Every answer reflects the decisions applied before. */
export interface LicenseView {
  readonly license: LicenseRecord
  readonly policy: PolicyRecord
  /** Sorted by feature code. */
  readonly assignments: ReadonlyArray<Assignment>
  /** Kept with them, as they are; undefined where nothing is worth keeping. */
  readonly kept?: CachedViews | undefined
  assignmentByCode(code: string): Assignment | undefined
  assignmentById(featureId: string): Assignment | undefined
  device(binding: BindingName): DeviceRecord | undefined
  deviceById(id: string): DeviceRecord | undefined
  /** The devices known here; all of them where the license has few. */
  readonly devices: Iterable<DeviceRecord>
  /** Containers that hold a slot. Told where the policy limits them and the command's needs name them. */
  readonly activeContainers: number
  /** Devices whose activation lapsed for want of a validation, still active as nobody wrote it down yet. */
  overdue(now: number): ReadonlyArray<DeviceRecord>
  /**
   * Leases whose stored status is live, the lapsed ones among them, with their devices. Told where the command's needs name them,
   * and once the license's access has ended.
   */
  readonly liveLeases: Iterable<LeaseRecord>
  /** How many these are: after time was applied, the floating seats that are taken. Told where the command's needs name it. */
  readonly liveLeaseCount: number
  /** The live lease of a device; it has one at most. */
  liveLeaseOf(deviceId: string): LeaseRecord | undefined
  /** Live leases whose end has come. */
  lapsed(now: number): ReadonlyArray<LeaseRecord>
  /** A lease in whatever state. */
  leaseByToken(tokenHash: string): LeaseRecord | undefined
  /** The consumption that used this event id before. */
  counted(eventId: string): CountedUsage | undefined
  version(appVersion: string): VersionRecord
  feature(featureId: string): FeatureRecord | undefined
  link(kind: LinkKind, id: string): LinkRecord | undefined
  /** How many devices beyond those known here a reset would move. */
  readonly otherResettable: number
}

/** A license and its policy at one moment: what an answer may keep, for a view goes on to change. */
export interface LicenseSnapshot {
  readonly license: LicenseRecord
  readonly policy: PolicyRecord
}

export const snapshot = ({ license, policy }: LicenseView): LicenseSnapshot => ({ license, policy })

/** What a decision changes. Records are whole: the new state of a device, assignment or lease. */
export interface Changes {
  readonly license?: Partial<LicenseRecord>
  /** Whether the published entitlement version rises by one. */
  readonly entitlement?: boolean
  readonly devices?: ReadonlyArray<DeviceRecord>
  /** Whether all devices beyond those known here are reset, however many there are. */
  readonly othersReset?: boolean
  readonly assignments?: ReadonlyArray<Assignment>
  readonly removedAssignments?: ReadonlyArray<string>
  readonly leases?: ReadonlyArray<LeaseRecord>
  readonly ledger?: ReadonlyArray<LedgerEntry>
  readonly events?: ReadonlyArray<NewEvent>
  /** A device that was only seen: written without raising the revision, for nothing is decided by it but heartbeats. */
  readonly seen?: DeviceRecord
}
