/** What the customer's page shows of a license. It has no addresses, no metadata, and nothing of other customers. */
import { Schema } from "effect"
import { Instant, Timestamp } from "../../contract/api/Timestamp.ts"
import { LicenseType } from "../../vendor/policies/Policy.ts"
import { Device } from "../model/Device.ts"
import { License } from "../model/License.ts"
import { LicenseFeature } from "../model/LicenseFeature.ts"

const { active_device_count, expires_at, id, license_key_last4, limits, maintenance_expires_at, starts_at, status } =
  License.fields

const {
  extra_credits,
  feature_id,
  feature_name,
  max_consumptions,
  overage,
  remaining,
  resets_at,
  rolled_over,
  total_consumptions
} = LicenseFeature.fields

export const PortalLicense = Schema.Struct({
  id,
  product_name: Schema.String,
  license_type: LicenseType,
  license_key_last4,
  status,
  active_device_count,
  limits,
  allow_offline_activation: Schema.Boolean,
  /** Whether a new key can be mailed: to the address of the license. */
  can_mail_key: Schema.Boolean,
  starts_at,
  expires_at,
  access_ends_at: Schema.optionalKey(Instant("The end of access: the expiry with the grace period.")),
  maintenance_expires_at
})
export type PortalLicense = typeof PortalLicense.Type

const PortalFeature = Schema.Struct({
  feature_id,
  feature_name,
  total_consumptions,
  max_consumptions,
  remaining,
  rolled_over,
  extra_credits,
  overage,
  resets_at,
  expires_at: LicenseFeature.fields.expires_at
})

const PortalDevice = Schema.Struct({
  /** Until when the slot of a deactivated device stays taken, because it may work offline until then. */
  slot_held_until: Schema.optionalKey(Timestamp),
  id: Device.fields.id,
  name: Schema.optionalKey(Schema.String),
  os: Device.fields.os,
  binding_kind: Device.fields.binding_kind,
  first_seen_at: Device.fields.first_seen_at,
  last_seen_at: Device.fields.last_seen_at
})
export type PortalDevice = typeof PortalDevice.Type

const PortalSeat = Schema.Struct({
  id: Schema.String,
  device_name: Schema.optionalKey(Schema.String),
  checked_out_at: Timestamp,
  expires_at: Timestamp,
  /** Until when the seat is borrowed: its device needs no connection. */
  borrowed_until: Schema.optionalKey(Timestamp)
})
export type PortalSeat = typeof PortalSeat.Type

/** A license with all that the page shows of it. The counts are of all devices and seats, the lists of the newest. */
export const PortalLicenseDetails = Schema.Struct({
  ...PortalLicense.fields,
  features: Schema.Array(PortalFeature),
  device_count: Schema.Number,
  /** Slots of max_activations that are taken or held. */
  taken_slots: Schema.Number,
  /** The same of max_container_instances, if containers have a limit of their own. */
  taken_container_slots: Schema.optionalKey(Schema.Number),
  devices: Schema.Array(PortalDevice),
  seat_count: Schema.Number,
  seats: Schema.Array(PortalSeat)
})
export type PortalLicenseDetails = typeof PortalLicenseDetails.Type
