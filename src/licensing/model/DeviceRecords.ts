/** The stored state of a license's devices and of their floating seats. */
import type { Metadata } from "../../contract/api/Metadata.ts"
import type { DeviceBindingKind, DeviceStatus } from "./Device.ts"

export interface DeviceRecord {
  readonly id: string
  readonly binding_kind: DeviceBindingKind
  readonly binding_key: string
  /** SHA-256 of the binding key, lower-case hex. Computed when the record is made, and not stored. */
  readonly binding_hash: string
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
  /** Whether the device has an activation slot. The holder of a floating seat is active without a slot. */
  readonly holds_slot: boolean
  /** The start of the current or the lapsed activation; absent for a device that only had seats. */
  readonly activated_at?: number | undefined
  readonly first_seen_at: number
  readonly last_seen_at: number
  readonly last_validated_at?: number | undefined
  /** Until when the device was promised its slot. */
  readonly due_at?: number | undefined
  /** When its latest offline envelope expires. */
  readonly offline_expires_at?: number | undefined
  /** Until when the slot of the deactivated device stays taken, because of its offline envelope. */
  readonly slot_held_until?: number | undefined
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
  /** Until when the seat stays taken without heartbeats, whatever happens to the license or its device, except a revocation. */
  readonly borrowed_until?: number | undefined
  readonly ended_at?: number | undefined
}
