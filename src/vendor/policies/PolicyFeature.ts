/** A feature that comes with a policy: a license that is created with the policy or moved to it gets the feature. */
import { Schema } from "effect"
import { Count, Int32 } from "../../contract/api/Int64.ts"
import { Metadata } from "../../contract/api/Metadata.ts"
import { Timestamp } from "../../contract/api/Timestamp.ts"
import { allowanceFields } from "./ResetPeriod.ts"

/** Limits how many rows the creation of a license writes. */
export const policyFeaturesMax = 200

const ExpiresAfterDays = Int32(1, 36_500).annotate({
  description: "Days from the assignment to a license until the feature expires; absent = it does not expire."
})

const ExpiresWithLicense = Schema.Boolean.annotate({
  description: "Whether the feature ends when the license's access ends, and continues with each renewal; absent = no."
})

const allowance = {
  reset_period: Schema.optionalKey(allowanceFields.reset_period),
  reset_anchor: Schema.optionalKey(allowanceFields.reset_anchor),
  rollover_max: Schema.optionalKey(allowanceFields.rollover_max),
  overage_max: Schema.optionalKey(allowanceFields.overage_max)
}

export const PolicyFeature = Schema.Struct({
  policy_id: Schema.String,
  feature_id: Schema.String,
  feature_code: Schema.String,
  feature_name: Schema.String,
  enabled: Schema.Boolean,
  max_consumptions: Schema.optionalKey(
    Count.annotate({ description: "The quota, of each period if there are periods; absent: unlimited." })
  ),
  expires_after_days: Schema.optionalKey(ExpiresAfterDays),
  expires_with_license: Schema.optionalKey(ExpiresWithLicense),
  ...allowance,
  metadata: Metadata,
  created_at: Timestamp,
  updated_at: Timestamp
}).annotate({
  identifier: "PolicyFeature",
  description: "A feature that new licenses of the policy get, with its quota."
})
export type PolicyFeature = typeof PolicyFeature.Type

export type PolicyFeatureRecord = Omit<PolicyFeature, "policy_id" | "created_at" | "updated_at">

export const PolicyFeatureSet = Schema.Struct({
  enabled: Schema.optionalKey(Schema.Boolean.annotate({ default: true })),
  max_consumptions: Schema.optionalKey(Count.annotate({ description: "Absent = unlimited." })),
  expires_after_days: Schema.optionalKey(ExpiresAfterDays),
  expires_with_license: Schema.optionalKey(ExpiresWithLicense),
  ...allowance,
  metadata: Schema.optionalKey(Metadata)
})
  .check(
    Schema.makeFilter(
      ({ expires_after_days, expires_with_license }) =>
        expires_with_license !== true ||
        expires_after_days === undefined ||
        "Expected at most one of expires_after_days and expires_with_license: true"
    )
  )
  .annotate({ identifier: "PolicyFeatureSetRequest" })
