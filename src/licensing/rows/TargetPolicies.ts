/** Reads the policies that licenses are created with or move to, with the features that come with them. */
import { Effect } from "effect"
import type { SqlClient } from "effect/sql"
import { columns } from "../../platform/postgres/driver/Parameters.ts"
import { type Nullable, withoutNulls } from "../../platform/postgres/queries/Sql.ts"
import type { PolicyFeatureRecord } from "../../vendor/policies/PolicyFeature.ts"
import type { TargetPolicy } from "../model/LicenseRecords.ts"
import { type PolicyRow, policyColumns, policyOf } from "./LicenseRows.ts"

/**
 * Policies are read before their features: if these change in between, the policy's revision is outdated, and the fence
 * refuses the decision. `lock` prevents changes of both until the transaction ends.
 */
export const readTargetPolicies = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  policyIds: ReadonlyArray<string>,
  lock = false
) {
  const rows = yield* sql<PolicyRow & { readonly product_id: string }>`
    SELECT p.id AS policy_id, p.product_id, ${sql.literal(policyColumns)} FROM policies p
    WHERE p.id = ANY(${columns.text(policyIds)}) ORDER BY p.id ${sql.literal(lock ? "FOR KEY SHARE" : "")}`
  if (rows.length === 0) return new Map<string, TargetPolicy>()
  const features = yield* sql<PolicyFeatureRow>`
    SELECT pf.policy_id, pf.feature_id, f.code AS feature_code, f.name AS feature_name, pf.enabled, pf.max_consumptions,
      pf.expires_after_days, pf.expires_with_license, pf.reset_period, pf.reset_anchor, pf.rollover_max, pf.overage_max, pf.metadata
    FROM policy_features pf JOIN features f ON f.id = pf.feature_id
    WHERE pf.policy_id = ANY(${columns.text(rows.map((row) => row.policy_id))}) ORDER BY f.code`
  const featuresOf = Map.groupBy(features, (feature) => feature.policy_id)
  return new Map<string, TargetPolicy>(
    rows.map((row) => [
      row.policy_id,
      {
        policy: policyOf(row),
        product_id: row.product_id,
        features: (featuresOf.get(row.policy_id) ?? []).map(({ policy_id: _, ...feature }) =>
          withoutNulls<PolicyFeatureRecord>(feature as never)
        )
      }
    ])
  )
})

type PolicyFeatureRow = Nullable<PolicyFeatureRecord> & { readonly policy_id: string }

export const readTargetPolicy = (sql: SqlClient.SqlClient, policyId: string) =>
  Effect.map(readTargetPolicies(sql, [policyId]), (policies) => policies.get(policyId))
