/** A license and its feature assignments as the management API shows them (contract, "License", "License feature"). */
import { Schema } from "effect"
import { Count } from "../api/Int64.ts"
import { Metadata } from "../api/Metadata.ts"
import { Email, Name, Reference } from "../api/Text.ts"
import { Timestamp } from "../api/Timestamp.ts"

export const LicenseStatus = Schema.Literals(["active", "suspended", "expired", "revoked", "grace_period"]).annotate({
  identifier: "LicenseStatus"
})
export type LicenseStatus = typeof LicenseStatus.Type

export const License = Schema.Struct({
  id: Schema.String,
  product_id: Schema.String,
  policy_id: Schema.String,
  status: LicenseStatus,
  license_key_prefix: Schema.String,
  license_key_last4: Schema.String,
  active_device_count: Count,
  times_activated: Count,
  times_transferred: Count,
  total_consumptions: Count,
  entitlement_version: Count,
  metadata: Metadata,
  created_at: Timestamp,
  updated_at: Timestamp,
  customer_id: Schema.optionalKey(Schema.String),
  order_id: Schema.optionalKey(Schema.String),
  subscription_id: Schema.optionalKey(Schema.String),
  customer_email: Schema.optionalKey(Schema.String),
  customer_name: Schema.optionalKey(Schema.String),
  starts_at: Schema.optionalKey(Timestamp),
  expires_at: Schema.optionalKey(Timestamp),
  maintenance_expires_at: Schema.optionalKey(Timestamp)
}).annotate({ identifier: "License" })
export type License = typeof License.Type

/** The answer of a create or key rotation: the only place where the full key stands. */
export const LicenseWithKey = Schema.Struct({
  license: License,
  license_key: Schema.String.annotate({ description: "The full key. It is shown only here: keep it." })
}).annotate({ identifier: "LicenseWithKey" })

export const LicenseCreate = Schema.Struct({
  product_id: Reference,
  policy_id: Reference,
  customer_id: Schema.optionalKey(Reference),
  order_id: Schema.optionalKey(Reference),
  subscription_id: Schema.optionalKey(Reference),
  customer_email: Schema.optionalKey(Email),
  customer_name: Schema.optionalKey(Name),
  starts_at: Schema.optionalKey(Timestamp),
  expires_at: Schema.optionalKey(Timestamp),
  maintenance_expires_at: Schema.optionalKey(Timestamp),
  metadata: Schema.optionalKey(Metadata)
}).annotate({ identifier: "LicenseCreateRequest" })

export const LicenseUpdate = Schema.Struct({
  customer_email: Schema.optionalKey(Schema.NullOr(Email)),
  customer_name: Schema.optionalKey(Schema.NullOr(Name)),
  starts_at: Schema.optionalKey(Schema.NullOr(Timestamp)),
  expires_at: Schema.optionalKey(Schema.NullOr(Timestamp)),
  maintenance_expires_at: Schema.optionalKey(Schema.NullOr(Timestamp)),
  metadata: Schema.optionalKey(Metadata)
}).annotate({ identifier: "LicenseUpdateRequest" })

export const LicenseFeature = Schema.Struct({
  license_id: Schema.String,
  feature_id: Schema.String,
  feature_code: Schema.String,
  feature_name: Schema.String,
  enabled: Schema.Boolean,
  total_consumptions: Count,
  metadata: Metadata,
  max_consumptions: Schema.optionalKey(Count),
  remaining: Schema.optionalKey(Count),
  expires_at: Schema.optionalKey(Timestamp)
}).annotate({ identifier: "LicenseFeature" })
export type LicenseFeature = typeof LicenseFeature.Type

export const LicenseFeatureAssign = Schema.Struct({
  feature_id: Reference,
  enabled: Schema.optionalKey(Schema.Boolean),
  max_consumptions: Schema.optionalKey(Schema.NullOr(Count)),
  expires_at: Schema.optionalKey(Schema.NullOr(Timestamp)),
  metadata: Schema.optionalKey(Metadata)
}).annotate({ identifier: "LicenseFeatureAssignRequest" })
