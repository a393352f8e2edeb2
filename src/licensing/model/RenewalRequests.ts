/** The requests that renew a license, its key, or the maintenance of a perpetual one. */
import { Schema } from "effect"
import { Int32 } from "../../contract/api/Int64.ts"
import { Reference } from "../../contract/api/Text.ts"
import { Instant } from "../../contract/api/Timestamp.ts"

/** Checks that exactly one of two fields is given. */
export const exactlyOne = <A extends string, B extends string>(one: A, other: B) =>
  Schema.makeFilter(
    (body: { readonly [K in A | B]?: unknown }) =>
      (body[one] === undefined) !== (body[other] === undefined) || {
        path: [body[one] === undefined ? one : other],
        issue: `Expected exactly one of ${one} and ${other}`
      }
  )

export const LicenseRenew = Schema.Struct({
  expires_at: Schema.optionalKey(Instant("The new expiry; absent: extend_by_days gives it.")),
  extend_by_days: Schema.optionalKey(Int32(1).annotate({ description: "The days added to the expiry." })),
  order_id: Schema.optionalKey(Reference),
  subscription_id: Schema.optionalKey(Reference)
})
  .annotate({
    description:
      "Exactly one of expires_at and extend_by_days. The order and subscription are recorded with the renewal only."
  })
  .check(exactlyOne("expires_at", "extend_by_days"))
  .annotate({ identifier: "LicenseRenewRequest" })

export const LicenseMaintenance = Schema.Struct({
  maintenance_expires_at: Schema.optionalKey(Instant("The new end of maintenance; absent: extend_by_days gives it.")),
  extend_by_days: Schema.optionalKey(Int32(1).annotate({ description: "The days added to the end of maintenance." })),
  order_id: Schema.optionalKey(Reference),
  subscription_id: Schema.optionalKey(Reference)
})
  .annotate({
    description:
      "Exactly one of maintenance_expires_at and extend_by_days. The order and subscription are recorded with the renewal only."
  })
  .check(exactlyOne("maintenance_expires_at", "extend_by_days"))
  .annotate({ identifier: "LicenseMaintenanceRequest" })

/** In requests that make a key. */
export const sendKey = Schema.optionalKey(
  Schema.Boolean.annotate({
    description: "True also mails the key to the license's customer_email, or else to its customer's email.",
    default: false
  })
)

export const LicenseKeyRotation = Schema.Struct({ send_key: sendKey }).annotate({
  identifier: "LicenseKeyRotationRequest",
  description: "The body may be left out."
})
