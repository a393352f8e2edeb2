/** The payloads that the runtime signs. */
import { Schema } from "effect"
import { Count } from "../../contract/api/Int64.ts"
import { Metadata } from "../../contract/api/Metadata.ts"
import { Instant, Timestamp } from "../../contract/api/Timestamp.ts"
import { LicenseType } from "../../vendor/policies/Policy.ts"
import { DeviceBindingKind, DeviceStatus } from "./Device.ts"
import { LicenseStatus, Limits } from "./License.ts"

const FeatureEntitlement = Schema.Struct({
  code: Schema.String,
  enabled: Schema.Boolean,
  quota: Schema.optionalKey(
    Count.annotate({ description: "The maximum, of the current period if there are periods; absent: unlimited." })
  ),
  consumed: Schema.optionalKey(
    Count.annotate({ description: "The amount consumed so far, in the current period if there are periods." })
  ),
  remaining: Schema.optionalKey(Count.annotate({ description: "What is left of the quota." })),
  extra_credits: Schema.optionalKey(
    Count.annotate({
      description: "Bought credits that are left. They are used after the quota, and no period ends them."
    })
  ),
  overage: Schema.optionalKey(
    Count.annotate({ description: "The amount consumed beyond quota and bought credits in the current period." })
  ),
  resets_at: Schema.optionalKey(Instant("When the current period ends and the quota begins anew.")),
  expires_at: Schema.optionalKey(Instant("From then on the feature is not included; absent: it ends with the license."))
}).annotate({ identifier: "FeatureEntitlement" })

const VersionEligibility = Schema.Struct({
  app_version: Schema.String,
  is_entitled: Schema.Boolean.annotate({ description: "Whether the license may use this version." }),
  enforced: Schema.Boolean.annotate({ description: "False if the product has no version catalog." }),
  released_at: Schema.optionalKey(Timestamp),
  eligible_through: Schema.optionalKey(
    Instant("Versions released later are not entitled; absent: no version is too late.")
  )
}).annotate({
  identifier: "VersionEligibility",
  description: "Whether the license covers the version of the application."
})

const Licensee = Schema.Struct({ name: Schema.String }).annotate({
  identifier: "Licensee",
  description: "Whose license it is, if the policy's show_licensee is true and the license has a customer_name."
})

/** The fields of every signed payload. `kind` prevents the use of one payload as another. */
const licenseFactsOf = <const Kind extends string>(kind: Kind) => ({
  kind: Schema.Literal(kind),
  license_id: Schema.String,
  product_id: Schema.String,
  product_code: Schema.String,
  policy_id: Schema.String,
  status: LicenseStatus,
  license_type: LicenseType,
  entitlement_version: Count,
  issued_at: Timestamp,
  expires_at: Schema.optionalKey(Timestamp),
  access_ends_at: Schema.optionalKey(
    Instant("expires_at and the policy's grace after it: the license is served until then.")
  ),
  licensee: Schema.optionalKey(Licensee),
  metadata: Schema.optionalKey(
    Metadata.annotate({ description: "The members of the license's metadata that the policy's show_metadata names." })
  ),
  nonce: Schema.optionalKey(Schema.String.annotate({ description: "The request's nonce, if it had one." }))
})

/** The fields of the payloads about one device. */
const commonOf = <const Kind extends string>(kind: Kind) => ({
  ...licenseFactsOf(kind),
  device_id: Schema.String,
  binding_kind: DeviceBindingKind,
  binding_hash: Schema.String.annotate({
    description: "SHA-256 of the binding key in lower-case hex: the fingerprint, or a container's digest."
  })
})

const features = Schema.Array(FeatureEntitlement)

const entitlement = {
  next_check_at: Timestamp,
  features,
  version_eligibility: Schema.optionalKey(VersionEligibility)
}

export const EntitlementPayload = Schema.Struct({ ...commonOf("entitlement"), ...entitlement }).annotate({
  identifier: "Entitlement",
  description: "What the device may use now."
})

export const TrialPayload = Schema.Struct({
  ...commonOf("entitlement"),
  ...entitlement,
  license_key: Schema.String.annotate({ description: "The trial's license key. It is shown only here: store it." })
}).annotate({ identifier: "TrialEntitlement", description: "What the trial allows." })

export const DeactivationPayload = Schema.Struct(commonOf("deactivation")).annotate({
  identifier: "Deactivation",
  description: "The device has given back its activation."
})

const leaseEnd = Instant("When the seat becomes free unless a heartbeat comes first.")

const borrowed_until = Schema.optionalKey(
  Instant("Of a borrowed seat: until when the client may work without heartbeats and without a connection.")
)

export const FloatingCheckoutPayload = Schema.Struct({
  ...commonOf("floating_checkout"),
  lease_token: Schema.String.annotate({
    description: "Identifies the lease in heartbeats and at checkin. Shown only here."
  }),
  lease_expires_at: leaseEnd,
  borrowed_until,
  features,
  version_eligibility: Schema.optionalKey(VersionEligibility)
}).annotate({ identifier: "FloatingCheckout", description: "The floating seat that was taken, with its lease token." })

export const FloatingLeasePayload = Schema.Struct({
  ...commonOf("floating_lease"),
  lease_expires_at: leaseEnd,
  borrowed_until,
  renewed: Schema.optionalKey(
    Schema.Boolean.annotate({ description: "True if the lease had lapsed and this heartbeat took a free seat again." })
  ),
  features: Schema.optionalKey(features),
  version_eligibility: Schema.optionalKey(VersionEligibility)
}).annotate({ identifier: "FloatingLease", description: "The lease of a floating seat." })

/** The signed content of an offline envelope. */
export const OfflineEntitlementPayload = Schema.Struct({
  ...commonOf("offline"),
  ...entitlement,
  offline_expires_at: Instant("Until when the client may work without contacting the service.")
}).annotate({ identifier: "OfflineEntitlement" })

const OwnDevice = Schema.Struct({
  id: Schema.String,
  binding_kind: DeviceBindingKind,
  status: DeviceStatus,
  is_activated: Schema.Boolean.annotate({ description: "Whether it has a slot. A floating seat needs none." }),
  hostname: Schema.optionalKey(Schema.String),
  os: Schema.optionalKey(Schema.String),
  pod_name: Schema.optionalKey(Schema.String),
  first_seen_at: Instant("When the device was first used."),
  last_seen_at: Instant("When the device was last used."),
  last_validated_at: Schema.optionalKey(Instant("When the device was last validated.")),
  offline_expires_at: Schema.optionalKey(Instant("Until when the device may work offline.")),
  slot_held_until: Schema.optionalKey(
    Instant("Until when the slot of the deactivated device stays taken, because it may work offline until then.")
  ),
  seat_expires_at: Schema.optionalKey(Instant("Until when the device has a floating seat, unless it is extended.")),
  borrowed_until: Schema.optionalKey(
    Instant("Until when the device has borrowed its seat. Of a reset or blacklisted device the seat is only taken.")
  )
}).annotate({
  identifier: "OwnDevice",
  description: "A device of the license, without what identifies it elsewhere."
})

const ownDevicesFacts = {
  ...licenseFactsOf("devices"),
  limits: Limits,
  self_deactivations_remaining: Count.annotate({
    description: "The devices that may be deactivated by their ids now."
  })
}

export const OwnDevicesPayload = Schema.Struct({
  ...ownDevicesFacts,
  devices: Schema.Array(OwnDevice).annotate({ description: "A page of the devices." }),
  next_cursor: Schema.NullOr(Schema.String).annotate({
    description: "The cursor of the next page; null on the last one."
  })
}).annotate({ identifier: "OwnDevices", description: "The devices of the license, the newest first." })

const OwnDevicesFactsPayload = Schema.Struct(ownDevicesFacts)

/** An offline entitlement and its signature, encrypted for the holder of the license key. All in base64, except kid. */
export const OfflineEnvelopePayload = Schema.Struct({
  kid: Schema.String.annotate({
    description: "The signing key of the payload inside; authenticated as additional data."
  }),
  salt: Schema.String.annotate({ description: "HKDF salt, 32 bytes." }),
  nonce: Schema.String.annotate({ description: "AES-GCM nonce, 12 bytes." }),
  ciphertext: Schema.String.annotate({ description: "The encrypted signed payload, its 16-byte tag at the end." })
}).annotate({
  identifier: "OfflineEnvelope",
  description: "An encrypted, signed entitlement for a device without a network."
})

/** The signed form: JSON values, timestamps as text. Fields without a value are omitted. */
export type Entitlement = typeof EntitlementPayload.Encoded
export type Deactivation = typeof DeactivationPayload.Encoded
export type FloatingCheckout = typeof FloatingCheckoutPayload.Encoded
export type FloatingLease = typeof FloatingLeasePayload.Encoded
export type OfflineEntitlement = typeof OfflineEntitlementPayload.Encoded
export type SealedEnvelope = typeof OfflineEnvelopePayload.Encoded
export type OwnDevice = typeof OwnDevice.Encoded
export type OwnDevices = typeof OwnDevicesPayload.Encoded
export type OwnDevicesFacts = typeof OwnDevicesFactsPayload.Encoded
export type Eligibility = typeof VersionEligibility.Encoded
