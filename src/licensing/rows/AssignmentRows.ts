/** Reads assignments, and writes whole ones, for the Journal and for the creation of licenses. */
import type { SqlClient } from "effect/sql"
import { storedMetadata } from "../../contract/api/Metadata.ts"
import { columns } from "../../platform/postgres/driver/Parameters.ts"
import { type Nullable, withoutNulls } from "../../platform/postgres/queries/Sql.ts"
import type { Assignment } from "../model/LicenseRecords.ts"

/** The columns of an assignment `a` and its feature `f`. */
export const assignmentColumns = `a.license_id, a.feature_id, f.code AS feature_code, f.name AS feature_name, a.enabled,
  a.max_consumptions, a.total_consumptions, a.expires_at, a.expires_after_days, a.expires_with_license, a.expiry_recorded, a.from_policy, a.reset_period,
  a.reset_anchor, a.rollover_max, a.overage_max, a.credits_used, a.overage, a.rolled_over, a.extra_credits, a.period_anchor,
  a.periods_end_at, a.period_start, a.resets_at, a.metadata, a.created_at, a.updated_at`

interface OfLicense {
  readonly license_id: string
}

export type AssignmentRow = Nullable<Assignment> & OfLicense

export const assignmentOf = (row: Nullable<Assignment>): Assignment =>
  withoutNulls<Assignment>({
    feature_id: row.feature_id,
    feature_code: row.feature_code,
    feature_name: row.feature_name,
    enabled: row.enabled,
    max_consumptions: row.max_consumptions,
    total_consumptions: row.total_consumptions,
    expires_at: row.expires_at,
    expires_after_days: row.expires_after_days,
    expires_with_license: row.expires_with_license,
    expiry_recorded: row.expiry_recorded,
    from_policy: row.from_policy,
    reset_period: row.reset_period,
    reset_anchor: row.reset_anchor,
    rollover_max: row.rollover_max,
    overage_max: row.overage_max,
    credits_used: row.credits_used,
    overage: row.overage,
    rolled_over: row.rolled_over,
    extra_credits: row.extra_credits,
    period_anchor: row.period_anchor,
    periods_end_at: row.periods_end_at,
    period_start: row.period_start,
    resets_at: row.resets_at,
    metadata: storedMetadata(row.metadata),
    created_at: row.created_at,
    updated_at: row.updated_at
  })

const int8Columns = ["rollover_max", "overage_max", "credits_used", "overage", "rolled_over", "extra_credits"] as const
const instantColumns = ["period_anchor", "periods_end_at", "period_start", "resets_at"] as const
const quotaColumns = ["reset_period", "reset_anchor", ...int8Columns, ...instantColumns]
const quotaNames = quotaColumns.join(", ")
const quotaUpdates = quotaColumns.map((column) => `${column} = excluded.${column}`).join(", ")

/** The values of quotas and periods, in the order of `quotaColumns`. */
const quotaValues = (sql: SqlClient.SqlClient, rows: ReadonlyArray<Assignment>) =>
  sql.csv([
    sql`unnest(${columns.text(rows.map((row) => row.reset_period ?? null))})`,
    sql`unnest(${columns.text(rows.map((row) => row.reset_anchor ?? null))})`,
    ...int8Columns.map((column) => sql`unnest(${columns.int8(rows.map((row) => row[column] ?? null))})`),
    ...instantColumns.map((column) => sql`unnest(${columns.timestamptz(rows.map((row) => row[column] ?? null))})`)
  ])

export const writeAssignments = (sql: SqlClient.SqlClient, rows: ReadonlyArray<Assignment & OfLicense>) => sql`
  INSERT INTO license_features (license_id, feature_id, enabled, max_consumptions, total_consumptions, expires_at,
    expires_after_days, expires_with_license, expiry_recorded, from_policy, metadata, created_at, updated_at,
    ${sql.literal(quotaNames)})
  SELECT unnest(${columns.text(rows.map((row) => row.license_id))}),
    unnest(${columns.text(rows.map((row) => row.feature_id))}), unnest(${columns.bool(rows.map((row) => row.enabled))}),
    unnest(${columns.int8(rows.map((row) => row.max_consumptions ?? null))}),
    unnest(${columns.int8(rows.map((row) => row.total_consumptions))}),
    unnest(${columns.timestamptz(rows.map((row) => row.expires_at ?? null))}),
    unnest(${columns.int4(rows.map((row) => row.expires_after_days ?? null))}),
    unnest(${columns.bool(rows.map((row) => row.expires_with_license ?? null))}),
    unnest(${columns.bool(rows.map((row) => row.expiry_recorded))}),
    unnest(${columns.bool(rows.map((row) => row.from_policy))}),
    unnest(${columns.jsonb(rows.map((row) => row.metadata))}),
    unnest(${columns.timestamptz(rows.map((row) => row.created_at))}),
    unnest(${columns.timestamptz(rows.map((row) => row.updated_at))}), ${quotaValues(sql, rows)}
  ON CONFLICT (license_id, feature_id) DO UPDATE SET enabled = excluded.enabled, max_consumptions = excluded.max_consumptions,
    total_consumptions = excluded.total_consumptions, expires_at = excluded.expires_at,
    expires_after_days = excluded.expires_after_days, expires_with_license = excluded.expires_with_license,
    expiry_recorded = excluded.expiry_recorded, from_policy = excluded.from_policy, metadata = excluded.metadata,
    updated_at = excluded.updated_at, ${sql.literal(quotaUpdates)}`
