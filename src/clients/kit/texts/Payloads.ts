/**
 * The signed payloads as they are sent: instants are text. Written out here, because the kit imports nothing of the service; a test
 * compares them with the contract, so that a renamed field does not compile.
 */

import type { RefusalCode } from "./Decisions.ts"

export type LicenseStatus = "active" | "suspended" | "expired" | "revoked" | "grace_period"

export interface FeatureEntitlement {
  readonly code: string
  readonly enabled: boolean
  /** The maximum, of the current period if there are periods; absent: unlimited. */
  readonly quota?: number
  readonly consumed?: number
  readonly remaining?: number
  /** Bought credits that are left. They are used after the quota, and no period ends them. */
  readonly extra_credits?: number
  /** What is consumed beyond quota and bought credits in the current period. */
  readonly overage?: number
  /** When the current period ends and the quota begins anew. */
  readonly resets_at?: string
  /** From then on the feature is not included. */
  readonly expires_at?: string
}

export interface VersionEligibility {
  readonly app_version: string
  readonly is_entitled: boolean
  readonly enforced: boolean
  readonly released_at?: string
  readonly eligible_through?: string
}

export type Json = string | number | boolean | null | ReadonlyArray<Json> | { readonly [name: string]: Json }

/** What every signed payload says of the license. */
export interface LicenseFacts {
  readonly license_id: string
  readonly product_id: string
  readonly product_code: string
  readonly policy_id: string
  readonly status: LicenseStatus
  readonly license_type: "perpetual" | "time_limited" | "subscription" | "trial" | "consumption"
  readonly entitlement_version: number
  readonly issued_at: string
  readonly expires_at?: string
  /** expires_at and the policy's grace after it: the license is served until then. */
  readonly access_ends_at?: string
  /** Whose license it is, if the policy shows it. */
  readonly licensee?: { readonly name: string }
  /** The members of the license's metadata that the policy shows. */
  readonly metadata?: { readonly [name: string]: Json }
  readonly nonce?: string
}

interface Payload<Kind extends string> extends LicenseFacts {
  readonly kind: Kind
  readonly device_id: string
  readonly binding_kind: "hardware" | "container"
  readonly binding_hash: string
}

export interface Entitlement extends Payload<"entitlement"> {
  readonly next_check_at: string
  readonly features: ReadonlyArray<FeatureEntitlement>
  readonly version_eligibility?: VersionEligibility
}

export interface OfflineEntitlement extends Payload<"offline"> {
  readonly next_check_at: string
  readonly features: ReadonlyArray<FeatureEntitlement>
  readonly version_eligibility?: VersionEligibility
  /** Until when the application may run without contacting the service. */
  readonly offline_expires_at: string
}

export interface FloatingCheckout extends Payload<"floating_checkout"> {
  readonly lease_token: string
  readonly lease_expires_at: string
  /** Until when the borrowed seat needs no heartbeat. */
  readonly borrowed_until?: string
  readonly features: ReadonlyArray<FeatureEntitlement>
  readonly version_eligibility?: VersionEligibility
}

export interface FloatingLease extends Payload<"floating_lease"> {
  readonly lease_expires_at: string
  /** Until when the borrowed seat needs no heartbeat. */
  readonly borrowed_until?: string
  /** True if the lease had lapsed and this heartbeat took a free seat again. */
  readonly renewed?: boolean
  readonly features?: ReadonlyArray<FeatureEntitlement>
  readonly version_eligibility?: VersionEligibility
}

export interface Deactivation extends Payload<"deactivation"> {}

/** A device of the license, without what identifies it elsewhere. */
export interface OwnDevice {
  readonly id: string
  readonly binding_kind: "hardware" | "container"
  readonly status: "active" | "deactivated" | "blacklisted" | "reset" | "expired"
  /** Whether it has a slot. A floating seat needs none. */
  readonly is_activated: boolean
  readonly hostname?: string
  readonly os?: string
  readonly pod_name?: string
  readonly first_seen_at: string
  readonly last_seen_at: string
  readonly last_validated_at?: string
  /** Until when the device may work offline. */
  readonly offline_expires_at?: string
  /** Until when the slot of the deactivated device stays taken, because it may work offline until then. */
  readonly slot_held_until?: string
  readonly seat_expires_at?: string
  readonly borrowed_until?: string
}

/** A page of the license's devices, the newest first. */
export interface OwnDevices extends LicenseFacts {
  readonly kind: "devices"
  readonly limits: {
    readonly max_activations: number
    readonly max_container_instances?: number
    readonly max_floating_users?: number
    readonly max_transfers: number
    readonly offline_grace_days: number
    readonly self_deactivations_per_month: number
  }
  /** The devices that may be deactivated by their ids now. */
  readonly self_deactivations_remaining: number
  readonly devices: ReadonlyArray<OwnDevice>
  /** Null on the last page. */
  readonly next_cursor: string | null
}

export interface OfflineEnvelope {
  readonly kid: string
  readonly salt: string
  readonly nonce: string
  readonly ciphertext: string
}

/** The signed part of a refusal: what an application can show. Later versions of the service may have further codes. */
export interface Refusal {
  readonly code: RefusalCode | (string & {})
  readonly message: string
  readonly detail?: string
  readonly license_id?: string
  readonly product_id?: string
  readonly issued_at?: string
  readonly status?: string
  readonly starts_at?: string
  readonly expires_at?: string
  readonly access_ends_at?: string
  readonly eligible_through?: string
  readonly quota?: number
  readonly consumed?: number
  readonly remaining?: number
  readonly extra_credits?: number
  readonly overage?: number
  readonly resets_at?: string
  /** Until when a seat can be borrowed now. */
  readonly until_max?: string
  readonly max?: number
  readonly used?: number
  readonly retry_after_seconds?: number
}

/** What the request says of the machine or container. */
export interface Binding {
  /** Identifies the machine; required unless is_container is true. */
  readonly fingerprint?: string
  readonly hostname?: string
  readonly os?: string
  readonly is_vm?: boolean
  readonly is_container?: boolean
  readonly container_id?: string
  readonly cluster_id?: string
  readonly namespace?: string
  readonly pod_name?: string
}

export interface Consumption {
  readonly feature_code: string
  /** The application's id of this use: the same id is counted once, so a repetition is safe. */
  readonly event_id: string
  /** 1 unless given. */
  readonly amount?: number
}

/** A consumption to take back: its feature and its event_id. */
export type Consumed = Pick<Consumption, "feature_code" | "event_id">
