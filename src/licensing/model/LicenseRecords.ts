/**
 * The state that license rules decide on: the license with its policy, assignments, devices and leases at one revision,
 * and the pending changes. Rules read it through `LicenseView`; only `PendingChanges` applies decisions.
 */
import type { Metadata } from "../../contract/api/Metadata.ts"
import type { NewEvent } from "../../ledger/events/Entry.ts"
import type { LicenseType, Policy } from "../../vendor/policies/Policy.ts"
import type { PolicyFeatureRecord } from "../../vendor/policies/PolicyFeature.ts"
import type { DeviceBindingKind } from "./Device.ts"
import type { DeviceRecord, LeaseRecord } from "./DeviceRecords.ts"
import type { LicenseStatus } from "./License.ts"
import type { Limits, OwnLimits } from "./Limits.ts"
import type { Entitlement } from "./Payloads.ts"
import type { CountedUsage, KeptCount, LedgerEntry, Quota, ReversalMark, Usage } from "./Usage.ts"

export type { DeviceRecord, LeaseRecord, LeaseStatus } from "./DeviceRecords.ts"

export interface LicenseRecord extends OwnLimits {
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
  /** The stored status; `Lifecycle.statusAt` applies the clock. */
  readonly status: LicenseStatus
  readonly customer_email?: string | undefined
  readonly customer_name?: string | undefined
  readonly starts_at?: number | undefined
  readonly expires_at?: number | undefined
  readonly maintenance_expires_at?: number | undefined
  /** The days of a term that begins with the first use; present until then. */
  readonly term_days?: number | undefined
  /** When a term that began with the first use began. */
  readonly term_began_at?: number | undefined
  /** What was consumed of features that a policy took away, by feature id: it counts when they return. */
  readonly kept_counts?: { readonly [featureId: string]: KeptCount } | undefined
  /** When the holder of the key deactivated devices by their ids: the latest instants that count. */
  readonly self_deactivated_at?: ReadonlyArray<number> | undefined
  /** No slot of a deactivated device is held from this instant on; absent: none ever was. */
  readonly slots_held_until?: number | undefined
  readonly active_device_count: number
  readonly times_activated: number
  readonly times_transferred: number
  readonly total_consumptions: number
  /** The license's part of its published entitlement version. */
  readonly entitlement_counter: number
  /** When an activation refused by a limit was last recorded as an event. */
  readonly activation_limit_recorded_at?: number | undefined
  readonly metadata: Metadata
  /** No device is due before this instant, because the license was not usable before. */
  readonly not_due_before?: number | undefined
  /** No device with a slot is due before this instant. This bound lets the sweep read few licenses. */
  readonly heartbeat_from?: number | undefined
  readonly revision: number
  readonly created_at: number
  readonly updated_at: number
}

/** The revisions of a license, its policy and its product's catalog. Each revision is unique. */
export interface Revisions {
  readonly license: number
  readonly policy: number
  readonly catalog: number
}

/** The license's policy, with the revision that the fence checks. */
export interface PolicyRecord extends Limits {
  readonly id: string
  readonly license_type: LicenseType
  /** The days of the term; those of a perpetual license are the days of its maintenance. */
  readonly duration_days?: number | undefined
  readonly duration_starts: Policy["duration_starts"]
  readonly floating_timeout_minutes: number
  readonly grace_period_days: number
  readonly validation_interval_minutes: number
  readonly require_heartbeat: boolean
  readonly allow_offline_activation: boolean
  readonly allow_vm: boolean
  readonly allow_container: boolean
  readonly allow_transfer: boolean
  /** Absent or 0: floating seats cannot be borrowed. */
  readonly borrow_days_max?: number | undefined
  /** Whether a device that deactivates itself keeps its slot until its offline envelope expires. */
  readonly hold_offline_slots: boolean
  readonly show_licensee: boolean
  /** The members of the license's metadata in signed payloads. */
  readonly show_metadata: ReadonlyArray<string>
  /** No device is due before this instant, because heartbeats were switched on. */
  readonly not_due_before?: number | undefined
  readonly revision: number
  readonly entitlement_counter: number
}

export interface Assignment extends Usage, Quota {
  readonly feature_id: string
  readonly feature_code: string
  readonly feature_name: string
  readonly enabled: boolean
  readonly expires_at?: number | undefined
  readonly expires_after_days?: number | undefined // Until the license's term begins.
  readonly expires_with_license?: boolean | undefined // True: it ends with the license's access.
  /** Whether the expiry has been recorded, or needs no record. */
  readonly expiry_recorded: boolean
  /** Whether the feature came with the policy and was not assigned by hand since. */
  readonly from_policy: boolean
  readonly metadata: Metadata
  readonly created_at: number
  readonly updated_at: number
}

export interface FeatureRecord {
  readonly id: string
  readonly product_id: string
  readonly code: string
  readonly name: string
}

/** A policy that a license may move to, with the features that come with it. */
export interface TargetPolicy {
  readonly policy: PolicyRecord
  readonly product_id: string
  readonly features: ReadonlyArray<PolicyFeatureRecord>
}

export const linkKinds = ["customer", "order", "subscription"] as const
export type LinkKind = (typeof linkKinds)[number]

/** A record that a command links to. */
export interface LinkRecord {
  readonly kind: LinkKind
  readonly id: string
  readonly product_id?: string | undefined
  /** The subscription that an order is linked to. */
  readonly subscription_id?: string | undefined
  /** The current period of a subscription, or of the subscription that an order is linked to. */
  readonly period_start?: number | undefined
  readonly period_end?: number | undefined
  /** Of a customer. */
  readonly name?: string | undefined
  readonly email?: string | undefined
  /** Of a customer: the language of mails, as its metadata name it. */
  readonly language?: string | undefined
  /** Whether a customer is being erased. Until then, licenses must not link to it or copy its data. */
  readonly erasing?: boolean | undefined
  /** Changes when an erasure of the customer begins. */
  readonly erasure_revision?: number | undefined
}

/** The catalog's entry for an application version; `enforced` is false if the product has no versions. */
export interface VersionRecord {
  readonly enforced: boolean
  readonly released_at?: number | undefined
}

/** The fingerprint of a machine, or a digest of a container's ids. */
export interface BindingName {
  readonly kind: DeviceBindingKind
  readonly key: string
}

/** The features in a response, valid from `since`, before `until`, and while the license's access ends at `accessEnds`. */
export interface FeaturesText {
  readonly since: number
  readonly until: number
  readonly accessEnds: number | undefined
  readonly features: Entitlement["features"]
}

/** Views of a license's assignments, cached until an assignment changes. */
export interface CachedViews {
  features?: FeaturesText
}

/** The state that rules read. It includes all decisions applied so far. */
export interface LicenseView {
  readonly license: LicenseRecord
  readonly policy: PolicyRecord
  /** The limits that hold for the license. */
  readonly limits: Limits
  /** The code of the license's product. */
  readonly productCode: string
  /** Sorted by feature code. */
  readonly assignments: ReadonlyArray<Assignment>
  /** Views cached with the assignments; undefined if nothing is worth caching. */
  readonly cachedViews?: CachedViews | undefined
  assignmentByCode(code: string): Assignment | undefined
  assignmentById(featureId: string): Assignment | undefined
  /** Features that have expired and whose expiry is not recorded yet. */
  expiredFeatures(now: number): ReadonlyArray<Assignment>
  /** Features with a period that has ended and whose end is not recorded yet. */
  endedPeriods(now: number): ReadonlyArray<Assignment>
  device(binding: BindingName): DeviceRecord | undefined
  deviceById(id: string): DeviceRecord | undefined
  /** The cached devices; all devices, unless the license has very many. */
  readonly devices: Iterable<DeviceRecord>
  /** Containers with a slot. Available only if the policy limits them and the command declares it in `needs`. */
  readonly activeContainers: number
  /** Devices with a lapsed activation whose stored status is still active. */
  overdue(now: number): ReadonlyArray<DeviceRecord>
  /**
   * Leases whose stored status is live, including lapsed ones. Available only if the command declares `allLeases` in
   * `needs`, or after the end of access.
   */
  readonly liveLeases: Iterable<LeaseRecord>
  /** The number of taken seats. Available only if declared in `needs`. */
  readonly liveLeaseCount: number
  /** The live lease of a device; there is at most one. */
  liveLeaseOf(deviceId: string): LeaseRecord | undefined
  /** Live leases that have lapsed. */
  lapsed(now: number): ReadonlyArray<LeaseRecord>
  /** A lease in any state. */
  leaseByToken(tokenHash: string): LeaseRecord | undefined
  /** The consumption that used this event id before. */
  counted(eventId: string): CountedUsage | undefined
  /**
   * The newest ledger row of a feature that is the consumption with this event id, its reversal, or a reset of the
   * feature's count. Available only if the command declares it in `needs`.
   */
  reversalMark(featureId: string, eventId: string): ReversalMark | undefined
  version(appVersion: string): VersionRecord
  feature(featureId: string): FeatureRecord | undefined
  link(kind: LinkKind, id: string): LinkRecord | undefined
  targetPolicy(id: string): TargetPolicy | undefined
  /** The number of uncached devices that a reset changes. */
  readonly otherResettable: number
}

/** A license, its policy and its assignments at one moment. Replies keep this, because the view changes. */
export interface LicenseSnapshot {
  readonly license: LicenseRecord
  readonly policy: PolicyRecord
  readonly assignments: ReadonlyArray<Assignment>
}

export const snapshot = (view: LicenseView): LicenseSnapshot => {
  const { assignments, license, policy } = view
  return { license, policy, assignments }
}

/** The changes of a decision, with complete records of changed devices, assignments and leases. */
export interface Changes {
  readonly license?: Partial<LicenseRecord>
  /** Whether the published entitlement version rises by one. */
  readonly entitlement?: boolean
  /** The license's new policy. */
  readonly policy?: PolicyRecord
  readonly devices?: ReadonlyArray<DeviceRecord>
  /** Whether all uncached devices are also reset. */
  readonly othersReset?: boolean
  readonly assignments?: ReadonlyArray<Assignment>
  readonly removedAssignments?: ReadonlyArray<string>
  readonly leases?: ReadonlyArray<LeaseRecord>
  readonly ledger?: ReadonlyArray<LedgerEntry>
  readonly events?: ReadonlyArray<NewEvent>
  /** A device that was only seen. Written without a new revision, because only heartbeats depend on it. */
  readonly seen?: DeviceRecord
}
