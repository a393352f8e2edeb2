/** The features of a license as the management API returns and changes them. */
import { Schema } from "effect"
import { Count, PositiveCount } from "../../contract/api/Int64.ts"
import { Metadata } from "../../contract/api/Metadata.ts"
import { Reference } from "../../contract/api/Text.ts"
import { Instant, Timestamp } from "../../contract/api/Timestamp.ts"
import { allowanceFields } from "../../vendor/policies/ResetPeriod.ts"
import { exactlyOne } from "./RenewalRequests.ts"

export const LicenseFeatureAssign = Schema.Struct({
  feature_id: Reference,
  enabled: Schema.optionalKey(Schema.Boolean),
  max_consumptions: Schema.optionalKey(
    Schema.NullOr(Count).annotate({ description: "The quota; absent: unchanged, or unlimited for a new feature." })
  ),
  expires_at: Schema.optionalKey(
    Schema.NullOr(Timestamp).annotate({ description: "When the feature ends; absent: unchanged, or with the license." })
  ),
  expires_with_license: Schema.optionalKey(
    Schema.Boolean.annotate({
      description: "Whether the feature ends with the license's access, renewals included, instead of at an own date."
    })
  ),
  reset_period: Schema.optionalKey(
    Schema.NullOr(allowanceFields.reset_period).annotate({
      description: "After which time the quota begins anew; null: never; absent: unchanged."
    })
  ),
  reset_anchor: Schema.optionalKey(
    Schema.NullOr(allowanceFields.reset_anchor).annotate({
      description: "Where the periods begin; null: license; absent: unchanged."
    })
  ),
  rollover_max: Schema.optionalKey(
    Schema.NullOr(allowanceFields.rollover_max).annotate({
      description: "The most of an unused quota that the next period gets in addition; absent: unchanged."
    })
  ),
  overage_max: Schema.optionalKey(
    Schema.NullOr(allowanceFields.overage_max).annotate({
      description:
        "What may be consumed in a period beyond quota and bought credits, -1: any amount; absent: unchanged."
    })
  ),
  metadata: Schema.optionalKey(Metadata)
})
  .check(
    Schema.makeFilter(
      ({ expires_at, expires_with_license }) =>
        expires_with_license !== true ||
        expires_at == null ||
        "Expected at most one of expires_at and expires_with_license: true"
    )
  )
  .annotate({ identifier: "LicenseFeatureAssignRequest" })

export const LicenseFeature = Schema.Struct({
  license_id: Schema.String,
  feature_id: Schema.String,
  feature_code: Schema.String,
  feature_name: Schema.String,
  enabled: Schema.Boolean,
  total_consumptions: Count.annotate({
    description: "The amount consumed so far, in the current period if there are periods."
  }),
  from_policy: Schema.Boolean.annotate({
    description: "Whether it came with the policy; false once it, or its max_consumptions, was set by hand."
  }),
  metadata: Metadata,
  max_consumptions: Schema.optionalKey(
    Count.annotate({ description: "The quota, of each period if there are periods; absent: unlimited." })
  ),
  remaining: Schema.optionalKey(
    Count.annotate({ description: "What is left of the quota, including what was rolled over." })
  ),
  reset_period: Schema.optionalKey(allowanceFields.reset_period),
  reset_anchor: Schema.optionalKey(allowanceFields.reset_anchor),
  rollover_max: Schema.optionalKey(allowanceFields.rollover_max),
  overage_max: Schema.optionalKey(allowanceFields.overage_max),
  extra_credits: Schema.optionalKey(
    Count.annotate({
      description: "Bought credits that are left. They are used after the quota, and no period ends them."
    })
  ),
  overage: Schema.optionalKey(
    Count.annotate({ description: "The amount consumed beyond quota and bought credits in the current period." })
  ),
  rolled_over: Schema.optionalKey(
    Count.annotate({ description: "What the current period got from the one before, in addition to the quota." })
  ),
  period_start: Schema.optionalKey(Instant("When the current period began.")),
  resets_at: Schema.optionalKey(
    Instant("When the current period ends and the quota begins anew; absent: no further period begins.")
  ),
  expires_at: Schema.optionalKey(Instant("When the feature ends; absent: with the license.")),
  expires_with_license: Schema.optionalKey(
    Schema.Boolean.annotate({
      description: "True if expires_at is the end of the license's access, and follows its renewals."
    })
  )
}).annotate({ identifier: "LicenseFeature", description: "A feature that a license has, with its quota." })
export type LicenseFeature = typeof LicenseFeature.Type

export const LicenseUsageReset = Schema.Struct({
  feature_id: Schema.optionalKey(Reference),
  feature_code: Schema.optionalKey(Reference),
  add_credits: Schema.optionalKey(
    PositiveCount.annotate({
      description: "Raises the maximum; with reset_period: extra_credits, which no period ends."
    })
  ),
  max_consumptions: Schema.optionalKey(Count.annotate({ description: "The new quota." })),
  total_consumptions: Schema.optionalKey(Count.annotate({ description: "The new value of the counter." })),
  reset_consumed: Schema.optionalKey(Schema.Boolean.annotate({ description: "True sets the consumption to 0." }))
})
  .annotate({
    description:
      "Exactly one of feature_id and feature_code, and at least one change. max_consumptions comes first, then add_credits, then total_consumptions or reset_consumed."
  })
  .check(
    exactlyOne("feature_id", "feature_code"),
    Schema.makeFilter(
      ({ feature_id: _, feature_code: __, reset_consumed, ...amounts }) =>
        reset_consumed === true ||
        Object.keys(amounts).length > 0 ||
        "Expected at least one of add_credits, max_consumptions, total_consumptions and reset_consumed: true"
    ),
    Schema.makeFilter(
      ({ total_consumptions, reset_consumed }) =>
        total_consumptions === undefined ||
        reset_consumed !== true || {
          path: ["reset_consumed"],
          issue: "Expected one of total_consumptions and reset_consumed, not both"
        }
    )
  )
  .annotate({ identifier: "LicenseUsageResetRequest" })
