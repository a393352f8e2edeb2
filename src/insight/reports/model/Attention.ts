/** The shape and the parameters of the report of what needs attention. */
import { Schema } from "effect"
import { type Code, statuses } from "../../../contract/api/ErrorCode.ts"
import { Count, PositiveCount } from "../../../contract/api/Int64.ts"
import { Instant } from "../../../contract/api/Timestamp.ts"
import { filterFields } from "./Filter.ts"

export const attentionFields = { product_id: filterFields["usage-summary"].product_id }
export type AttentionFilter = Schema.Struct.Type<typeof attentionFields>

export const RefusedLicense = Schema.Struct({
  license_id: Schema.String,
  refusals: PositiveCount.annotate({ description: "The refused runtime calls since refusals_from." }),
  code: Schema.Literals(Object.keys(statuses) as ReadonlyArray<Code>).annotate({
    description: "The most frequent error code of them."
  }),
  last_refused_at: Instant("When the last of them was refused.")
}).annotate({ identifier: "RefusedLicense", description: "A license that was refused three times or more." })
export type RefusedLicense = typeof RefusedLicense.Type

const NearQuota = Schema.Struct({
  license_id: Schema.String,
  feature_id: Schema.String,
  feature_code: Schema.String,
  feature_name: Schema.String,
  quota: PositiveCount.annotate({ description: "The quota, of the current period if there are periods." }),
  remaining: Count.annotate({ description: "What is left of it, with bought credits." }),
  resets_at: Schema.optionalKey(Instant("When the quota begins anew; absent: no further period begins."))
}).annotate({ identifier: "NearQuota", description: "A quota of which 20 % or less is left." })
export type NearQuota = typeof NearQuota.Type

export const Attention = Schema.Struct({
  product_id: Schema.optionalKey(Schema.String),
  refusals_from: Instant(
    "Since when refused calls are counted: seven days ago, or later if there were more than 20,000."
  ),
  refused_licenses: Schema.Array(RefusedLicense).annotate({
    description: "The 20 licenses that were refused most often, the most refused first."
  }),
  quotas_from: Schema.optionalKey(
    Instant("Quotas that reached 80 % before are missing; absent: none is, because there were at most 5,000.")
  ),
  near_quotas: Schema.Array(NearQuota).annotate({
    description:
      "The 20 quotas of active licenses of which the smallest part is left, the smallest first. Their usage has reached 80 %."
  })
}).annotate({ identifier: "Attention", description: "Licenses that need somebody's attention now." })
export type Attention = typeof Attention.Type
