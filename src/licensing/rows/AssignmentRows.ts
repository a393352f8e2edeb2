/** Writes whole assignments, for the Journal and for the creation of licenses. */
import type { SqlClient } from "effect/sql"
import { columns } from "../../platform/postgres/driver/Parameters.ts"
import type { Assignment } from "../model/LicenseRecords.ts"
import type { LicenseOwned } from "./LicenseRows.ts"

export const writeAssignments = (sql: SqlClient.SqlClient, rows: ReadonlyArray<Assignment & LicenseOwned>) => sql`
  INSERT INTO license_features (license_id, feature_id, enabled, max_consumptions, total_consumptions, expires_at,
    expires_after_days, expires_with_license, expiry_recorded, from_policy, metadata, created_at, updated_at)
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
    unnest(${columns.timestamptz(rows.map((row) => row.updated_at))})
  ON CONFLICT (license_id, feature_id) DO UPDATE SET enabled = excluded.enabled, max_consumptions = excluded.max_consumptions,
    total_consumptions = excluded.total_consumptions, expires_at = excluded.expires_at,
    expires_after_days = excluded.expires_after_days, expires_with_license = excluded.expires_with_license,
    expiry_recorded = excluded.expiry_recorded, from_policy = excluded.from_policy, metadata = excluded.metadata,
    updated_at = excluded.updated_at`
