/** A device: a machine or container instance that a license was bound to. */
import { Schema } from "effect"
import { Metadata } from "../../contract/api/Metadata.ts"
import { Instant, Timestamp } from "../../contract/api/Timestamp.ts"
import { Customer } from "../../vendor/customers/Customer.ts"
import { releaseBorrowed } from "./Lease.ts"
import { License } from "./License.ts"

export const DeviceStatus = Schema.Literals(["active", "deactivated", "blacklisted", "reset", "expired"]).annotate({
  identifier: "DeviceStatus",
  description: "The state of the device; only an active one uses an activation."
})
export type DeviceStatus = typeof DeviceStatus.Type

export const DeviceBindingKind = Schema.Literals(["hardware", "container"]).annotate({
  identifier: "DeviceBindingKind",
  description: "What identifies the device: the fingerprint of hardware, or the ids of a container."
})
export type DeviceBindingKind = typeof DeviceBindingKind.Type

export const Device = Schema.Struct({
  id: Schema.String,
  license_id: Schema.String,
  binding_kind: DeviceBindingKind,
  binding_key: Schema.String.annotate({ description: "The hash that identifies the machine or container instance." }),
  is_vm: Schema.Boolean,
  is_container: Schema.Boolean,
  status: DeviceStatus,
  first_seen_at: Instant("When the device was first used."),
  last_seen_at: Instant("When the device was last used."),
  metadata: Metadata,
  created_at: Timestamp,
  updated_at: Timestamp,
  fingerprint: Schema.optionalKey(
    Schema.String.annotate({ description: "What identifies the machine, chosen by the application." })
  ),
  hostname: Schema.optionalKey(Schema.String),
  os: Schema.optionalKey(Schema.String),
  ip_address: Schema.optionalKey(Schema.String),
  container_id: Schema.optionalKey(Schema.String),
  cluster_id: Schema.optionalKey(Schema.String),
  namespace: Schema.optionalKey(Schema.String),
  pod_name: Schema.optionalKey(Schema.String),
  last_validated_at: Schema.optionalKey(Instant("When the device was last validated.")),
  slot_held_until: Schema.optionalKey(
    Instant("Until when the slot of a deactivated device stays taken, because the device may work offline until then.")
  ),
  expanded: Schema.optionalKey(
    Schema.Struct({ license: Schema.optionalKey(License), customer: Schema.optionalKey(Customer) }).annotate({
      description: "With expand: the device's license, and the license's customer if one is linked."
    })
  )
}).annotate({ identifier: "Device", description: "A machine or container that has activated a license." })
export type Device = typeof Device.Type

/** The records that the query parameter `expand` can add to a device. */
export const deviceExpandable = ["license", "customer"] as const
export type DeviceExpandable = (typeof deviceExpandable)[number]

export const DeviceReset = Schema.Struct({ release_borrowed: releaseBorrowed }).annotate({
  identifier: "DeviceResetRequest"
})
export type DeviceReset = typeof DeviceReset.Type

export const deviceSorts = { created_at: "instant" } as const
