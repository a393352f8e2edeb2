/** A license as the management API returns it. */
import { Schema, Struct } from "effect"
import { Count } from "../../contract/api/Int64.ts"
import { Metadata } from "../../contract/api/Metadata.ts"
import { Email, licenseKeyPattern, Name, Reference, Text } from "../../contract/api/Text.ts"
import { Instant, Timestamp } from "../../contract/api/Timestamp.ts"
import { Link } from "../../vendor/commerce/PurchaseLink.ts"
import { Customer } from "../../vendor/customers/Customer.ts"
import { licenseLimits, Policy } from "../../vendor/policies/Policy.ts"
import { policyFeaturesMax } from "../../vendor/policies/PolicyFeature.ts"
import { Product } from "../../vendor/products/Product.ts"
import { releaseBorrowed } from "./Lease.ts"
import { LicenseFeatureAssign } from "./LicenseFeature.ts"
import { sendKey } from "./RenewalRequests.ts"

export const LicenseStatus = Schema.Literals(["active", "suspended", "expired", "revoked", "grace_period"]).annotate({
  identifier: "LicenseStatus",
  description: "The state of the license."
})
export type LicenseStatus = typeof LicenseStatus.Type

/** The limits that hold for a license. */
export const Limits = Schema.Struct({
  ...licenseLimits,
  max_container_instances: Schema.optionalKey(licenseLimits.max_container_instances),
  max_floating_users: Schema.optionalKey(licenseLimits.max_floating_users)
}).annotate({
  identifier: "LicenseLimits",
  description: "The limits that hold: the license's own where it has them, else its policy's."
})

/** The limits of one license in its response. */
const ownLimits = Struct.map(licenseLimits, Schema.optionalKey)

/** A limit of one license in a request. */
const givenLimit = <S extends Schema.Top>(limit: S, description: string) =>
  Schema.optionalKey(Schema.NullOr(limit).annotate({ description: `${description}; null: the policy's.` }))

const givenLimits = {
  max_activations: givenLimit(
    licenseLimits.max_activations,
    "Devices that may be active at the same time; 0: unlimited"
  ),
  max_container_instances: givenLimit(
    licenseLimits.max_container_instances,
    "Container instances that may be active at the same time; 0: unlimited"
  ),
  max_floating_users: givenLimit(licenseLimits.max_floating_users, "Seats that may be taken at the same time; 0: none"),
  max_transfers: givenLimit(licenseLimits.max_transfers, "Changes of the owner; 0: unlimited"),
  offline_grace_days: givenLimit(licenseLimits.offline_grace_days, "Days for which an offline envelope is valid"),
  self_deactivations_per_month: givenLimit(
    licenseLimits.self_deactivations_per_month,
    "Devices that the holder of the key may deactivate by their ids in any 30 days; 0: none"
  )
}

export const License = Schema.Struct({
  id: Schema.String,
  product_id: Schema.String,
  policy_id: Schema.String,
  status: LicenseStatus,
  license_key_prefix: Schema.String.annotate({
    description: "The first characters of the license key; of a short vendor key none."
  }),
  license_key_last4: Schema.String.annotate({
    description: "The last four characters of the license key; fewer of a vendor key of less than sixteen."
  }),
  active_device_count: Count.annotate({ description: "The devices that take a slot." }),
  times_activated: Count.annotate({ description: "Activations so far." }),
  times_transferred: Count.annotate({ description: "Changes of ownership so far." }),
  total_consumptions: Count.annotate({
    description: "The amount consumed over the license's life, which no reset lowers."
  }),
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
  expires_at: Schema.optionalKey(Instant("When the license expires; absent: never, or its term has not begun.")),
  maintenance_expires_at: Schema.optionalKey(Timestamp),
  ...ownLimits,
  limits: Limits,
  expanded: Schema.optionalKey(
    Schema.Struct({
      product: Schema.optionalKey(Product),
      policy: Schema.optionalKey(Policy),
      customer: Schema.optionalKey(Customer)
    }).annotate({ description: "With expand: the records that the license names." })
  )
}).annotate({ identifier: "License", description: "A license, without its key." })
export type License = typeof License.Type

/** The records that the query parameter `expand` can add to a license. */
export const expandable = ["product", "policy", "customer"] as const
export type Expandable = (typeof expandable)[number]

export const licenseSorts = { created_at: "instant", expires_at: "instant", maintenance_expires_at: "instant" } as const

/** The filters of the license list. */
export const licenseFilters = {
  product_id: Schema.optionalKey(Schema.String),
  policy_id: Schema.optionalKey(Schema.String),
  customer_id: Schema.optionalKey(Schema.String),
  status: Schema.optionalKey(LicenseStatus),
  order_id: Schema.optionalKey(Schema.String),
  subscription_id: Schema.optionalKey(Schema.String),
  feature_id: Schema.optionalKey(Schema.String.annotate({ description: "Only licenses that have this feature." })),
  expires_before: Schema.optionalKey(Timestamp),
  expires_after: Schema.optionalKey(Timestamp),
  maintenance_expires_before: Schema.optionalKey(Timestamp),
  maintenance_expires_after: Schema.optionalKey(Timestamp),
  license_key_last4: Schema.optionalKey(Schema.String),
  bulk_job_id: Schema.optionalKey(Schema.String.annotate({ description: "Only licenses that this bulk job matched." })),
  q: Schema.optionalKey(Text(512))
}

/** The response of a create or a key rotation: the only place where the full key appears. */
export const LicenseWithKey = Schema.Struct({
  license: License,
  license_key: Schema.String.annotate({ description: "The full key. It is shown only here: store it." })
}).annotate({ identifier: "LicenseWithKey", description: "A license with its key, which only this response shows." })

export const LicenseCreate = Schema.Struct({
  product_id: Reference,
  policy_id: Reference,
  license_key: Schema.optionalKey(
    Schema.String.check(
      Schema.isPattern(licenseKeyPattern, { message: "Expected 8 to 255 printable ASCII characters without spaces" })
    ).annotate({
      description:
        "The license's key, if it has one already: 8 to 255 printable ASCII characters without spaces, unique, compared exactly. Without it a key is generated."
    })
  ),
  customer_id: Schema.optionalKey(Reference),
  order_id: Schema.optionalKey(Reference),
  subscription_id: Schema.optionalKey(Reference),
  customer_email: Schema.optionalKey(Email),
  customer_name: Schema.optionalKey(Name),
  starts_at: Schema.optionalKey(Timestamp),
  expires_at: Schema.optionalKey(Instant("When the license expires; absent: as the policy's term says, or never.")),
  maintenance_expires_at: Schema.optionalKey(
    Instant("Until when released versions may be used; absent: as the policy's maintenance_days say, or all.")
  ),
  ...givenLimits,
  features: Schema.optionalKey(
    Schema.Array(LicenseFeatureAssign).check(Schema.isMaxLength(policyFeaturesMax)).annotate({
      description:
        "Features in addition to those that come with the policy. Of a feature that comes with the policy, the given fields replace the policy's."
    })
  ),
  metadata: Schema.optionalKey(Metadata),
  send_key: sendKey
})
  .annotate({
    description:
      "A limit that is absent or null is the policy's. Without expires_at the policy's duration_days sets it, if the policy has one."
  })
  .annotate({ identifier: "LicenseCreateRequest" })

/** Licenses in one request. */
const batchLicensesMax = 1_000

export const LicenseBatch = Schema.Struct({
  licenses: Schema.Array(LicenseCreate)
    .check(Schema.isMinLength(1), Schema.isMaxLength(batchLicensesMax))
    .annotate({ description: "All are issued, or none." })
}).annotate({ identifier: "LicenseBatchRequest" })

export const LicensesWithKeys = Schema.Struct({
  licenses: Schema.Array(LicenseWithKey).annotate({ description: "In the order of the request." })
}).annotate({
  identifier: "LicensesWithKeys",
  description: "Licenses with their keys, which only this response shows."
})

export const LicenseUpdate = Schema.Struct({
  customer_email: Schema.optionalKey(Schema.NullOr(Email)),
  customer_name: Schema.optionalKey(Schema.NullOr(Name)),
  starts_at: Schema.optionalKey(Schema.NullOr(Timestamp)),
  expires_at: Schema.optionalKey(
    Schema.NullOr(Timestamp).annotate({ description: "The new expiry; absent: unchanged." })
  ),
  maintenance_expires_at: Schema.optionalKey(Schema.NullOr(Timestamp)),
  order_id: Schema.optionalKey(Link),
  subscription_id: Schema.optionalKey(Link),
  ...givenLimits,
  metadata: Schema.optionalKey(Metadata)
}).annotate({
  identifier: "LicenseUpdateRequest",
  description: "What is absent stays as it is. A limit that is null is the policy's."
})

export const LicensePolicyChange = Schema.Struct({
  policy_id: Reference,
  expires_at: Schema.optionalKey(Instant("The new expiry; absent: unchanged, or as the term of the new policy says.")),
  keep_features: Schema.optionalKey(
    Schema.Boolean.annotate({
      description:
        "True keeps the features that came with the old policy, as the license's own, and adds those of the new one.",
      default: false
    })
  )
}).annotate({ identifier: "LicensePolicyChangeRequest" })

export const LicenseTransfer = Schema.Struct({
  customer_id: Schema.optionalKey(
    Text(64).annotate({ description: "The id of the new customer; an empty string clears the link." })
  ),
  customer_email: Schema.optionalKey(Email),
  customer_name: Schema.optionalKey(Name),
  reset_devices: Schema.optionalKey(
    Schema.Boolean.annotate({ description: "Whether devices lose their slots and leases end, except borrowed ones." })
  ),
  release_borrowed: releaseBorrowed,
  rotate_key: Schema.optionalKey(
    Schema.Boolean.annotate({
      description: "True also ends the license's key. The response then contains the new one."
    })
  )
})
  .annotate({
    description:
      "At least one of the owner's fields, or reset_devices: true. For another customer_id, a name and an e-mail that are not given become that customer's."
  })
  .check(
    Schema.makeFilter(
      ({ release_borrowed: _borrowed, reset_devices, rotate_key: _key, ...owner }) =>
        reset_devices === true ||
        Object.keys(owner).length > 0 ||
        "Expected at least one of customer_id, customer_email, customer_name and reset_devices: true"
    ),
    Schema.makeFilter(
      ({ release_borrowed, reset_devices }) =>
        release_borrowed !== true ||
        reset_devices === true || {
          path: ["release_borrowed"],
          issue: "Expected reset_devices: true, which release_borrowed is a part of"
        }
    )
  )
  .annotate({ identifier: "LicenseTransferRequest" })
