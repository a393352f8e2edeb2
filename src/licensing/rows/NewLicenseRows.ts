import { Effect } from "effect"
import type { SqlClient } from "effect/sql"
import { columns } from "../../platform/postgres/driver/Parameters.ts"
import type { LicenseRecord } from "../model/LicenseRecords.ts"

/**
 * Inserts new licenses, except those whose keys other licenses have, and returns their ids. All transactions insert
 * keys in the same order, so that they do not deadlock.
 */
export const insertLicenses = (sql: SqlClient.SqlClient, licenses: ReadonlyArray<LicenseRecord>) => {
  const rows = licenses.toSorted((a, b) => (a.key_hash < b.key_hash ? -1 : 1))
  const text = (column: keyof LicenseRecord) =>
    sql`unnest(${columns.text(rows.map((row) => (row[column] as string | undefined) ?? null))})`
  const instants = (column: keyof LicenseRecord) =>
    sql`unnest(${columns.timestamptz(rows.map((row) => (row[column] as number | undefined) ?? null))})`
  const integers = (column: keyof LicenseRecord) =>
    sql`unnest(${columns.int4(rows.map((row) => (row[column] as number | undefined) ?? null))})`
  return Effect.map(
    sql<{ readonly id: string }>`
      INSERT INTO licenses (id, product_id, policy_id, customer_id, order_id, subscription_id, key_hash, license_key_prefix,
        license_key_last4, status, customer_email, customer_name, starts_at, expires_at, maintenance_expires_at,
        active_device_count, times_activated, entitlement_counter, max_activations, max_container_instances,
        max_floating_users, max_transfers, offline_grace_days, term_days, metadata, heartbeat_from, created_at, updated_at)
      SELECT ${text("id")}, ${text("product_id")}, ${text("policy_id")}, ${text("customer_id")}, ${text("order_id")},
        ${text("subscription_id")}, decode(${text("key_hash")}, 'hex'), ${text("license_key_prefix")},
        ${text("license_key_last4")}, ${text("status")}, ${text("customer_email")}, ${text("customer_name")},
        ${instants("starts_at")}, ${instants("expires_at")}, ${instants("maintenance_expires_at")},
        ${integers("active_device_count")}, ${integers("times_activated")}, ${integers("entitlement_counter")},
        ${integers("max_activations")}, ${integers("max_container_instances")}, ${integers("max_floating_users")},
        ${integers("max_transfers")}, ${integers("offline_grace_days")}, ${integers("term_days")},
        unnest(${columns.jsonb(rows.map((row) => row.metadata))}), ${instants("heartbeat_from")}, ${instants("created_at")},
        ${instants("updated_at")}
      ON CONFLICT (key_hash) DO NOTHING RETURNING id`,
    (inserted): ReadonlySet<string> => new Set(inserted.map(({ id }) => id))
  )
}
