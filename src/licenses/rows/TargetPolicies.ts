/** Reads a policy that a license is created with or moves to, with the features that come with it. */
import { Effect } from "effect"
import type { SqlClient } from "effect/sql"
import type { PolicyFeatureRecord } from "../../catalog/policies/PolicyFeature.ts"
import { withoutNulls } from "../../postgres/Sql.ts"
import { type Nullable, type PolicyRow, policyColumns, policyOf } from "./LicenseRows.ts"

/**
 * The policy is read before its features: if they change in between, its revision is outdated, and the fence refuses what is
 * decided on it. `lock` keeps both as they are until the transaction ends.
 */
export const readTargetPolicy = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, policyId: string, lock = false) {
  const [row] = yield* sql<PolicyRow & { readonly product_id: string }>`
    SELECT p.id AS policy_id, p.product_id, ${sql.literal(policyColumns)} FROM policies p
    WHERE p.id = ${policyId} ${sql.literal(lock ? "FOR KEY SHARE" : "")}`
  if (row === undefined) return undefined
  const features = yield* sql<Nullable<PolicyFeatureRecord>>`
    SELECT pf.feature_id, f.code AS feature_code, f.name AS feature_name, pf.enabled, pf.max_consumptions,
      pf.expires_after_days, pf.metadata
    FROM policy_features pf JOIN features f ON f.id = pf.feature_id WHERE pf.policy_id = ${policyId} ORDER BY f.code`
  return {
    policy: policyOf(row),
    product_id: row.product_id,
    features: features.map((feature) => withoutNulls<PolicyFeatureRecord>(feature as never))
  }
})
