/** The columns of the table licenses: what reads, inserts and updates a whole row. A new column is added to each here. */
import { Effect } from "effect"
import type { SqlClient } from "effect/sql"
import { storedMetadata } from "../../contract/api/Metadata.ts"
import { columns } from "../../platform/postgres/driver/Parameters.ts"
import { type Nullable, withoutNulls } from "../../platform/postgres/queries/Sql.ts"
import type { LicenseRecord } from "../model/LicenseRecords.ts"

export const licenseColumns = `l.id, l.product_id, l.policy_id, l.customer_id, l.order_id, l.subscription_id,
  encode(l.key_hash, 'hex') AS key_hash, l.license_key_prefix, l.license_key_last4, l.status, l.customer_email, l.customer_name,
  l.starts_at, l.expires_at, l.maintenance_expires_at, l.active_device_count, l.times_activated, l.times_transferred,
  l.total_consumptions, l.entitlement_counter, l.activation_limit_recorded_at, l.metadata, l.not_due_before, l.heartbeat_from,
  l.max_activations, l.max_container_instances, l.max_floating_users, l.max_transfers, l.offline_grace_days, l.self_deactivations_per_month,
  l.term_days, l.term_began_at, l.kept_counts, l.self_deactivated_at, l.slots_held_until,
  l.revision, l.created_at, l.updated_at`

/** License columns that every commit writes; the others are written only when a command changes one. */
const hotColumns: ReadonlySet<string> = new Set([
  "status",
  "active_device_count",
  "times_activated",
  "times_transferred",
  "total_consumptions",
  "entitlement_counter",
  "updated_at"
])

/** Whether a change has a new value for a column that `updateProfiles` writes. */
export const changesProfile = (license: LicenseRecord, changed: Partial<LicenseRecord> = {}): boolean =>
  (Object.keys(changed) as Array<keyof LicenseRecord>).some(
    (column) => !hotColumns.has(column) && changed[column] !== license[column]
  )

export const licenseOf = (row: Nullable<LicenseRecord>): LicenseRecord =>
  withoutNulls<LicenseRecord>({
    id: row.id,
    product_id: row.product_id,
    policy_id: row.policy_id,
    customer_id: row.customer_id,
    order_id: row.order_id,
    subscription_id: row.subscription_id,
    key_hash: row.key_hash,
    license_key_prefix: row.license_key_prefix,
    license_key_last4: row.license_key_last4,
    status: row.status,
    customer_email: row.customer_email,
    customer_name: row.customer_name,
    starts_at: row.starts_at,
    expires_at: row.expires_at,
    maintenance_expires_at: row.maintenance_expires_at,
    active_device_count: row.active_device_count,
    times_activated: row.times_activated,
    times_transferred: row.times_transferred,
    total_consumptions: row.total_consumptions,
    entitlement_counter: row.entitlement_counter,
    activation_limit_recorded_at: row.activation_limit_recorded_at,
    metadata: storedMetadata(row.metadata),
    not_due_before: row.not_due_before,
    heartbeat_from: row.heartbeat_from,
    max_activations: row.max_activations,
    max_container_instances: row.max_container_instances,
    max_floating_users: row.max_floating_users,
    max_transfers: row.max_transfers,
    offline_grace_days: row.offline_grace_days,
    self_deactivations_per_month: row.self_deactivations_per_month,
    term_days: row.term_days,
    term_began_at: row.term_began_at,
    kept_counts: row.kept_counts,
    self_deactivated_at: row.self_deactivated_at,
    slots_held_until: row.slots_held_until,
    revision: row.revision,
    created_at: row.created_at,
    updated_at: row.updated_at
  })

/** The values of a column in all rows. */
const valuesOf = (rows: ReadonlyArray<LicenseRecord>) => {
  const of = <A>(column: keyof LicenseRecord) => rows.map((row) => (row[column] as A | undefined) ?? null)
  return {
    text: (column: keyof LicenseRecord) => columns.text(of(column)),
    instants: (column: keyof LicenseRecord) => columns.timestamptz(of(column)),
    integers: (column: keyof LicenseRecord) => columns.int4(of(column))
  }
}

/**
 * Inserts licenses, and returns the ids of those that were inserted: not of one whose key another license has. Transactions
 * insert keys in one order, so that two with the same keys do not deadlock.
 */
export const insertLicenses = (sql: SqlClient.SqlClient, licenses: ReadonlyArray<LicenseRecord>) => {
  const rows = licenses.toSorted((a, b) => (a.key_hash < b.key_hash ? -1 : 1))
  const { instants, integers, text } = valuesOf(rows)
  return Effect.map(
    sql<{ readonly id: string }>`
      INSERT INTO licenses (id, product_id, policy_id, customer_id, order_id, subscription_id, key_hash, license_key_prefix,
        license_key_last4, status, customer_email, customer_name, starts_at, expires_at, maintenance_expires_at,
        active_device_count, times_activated, entitlement_counter, max_activations, max_container_instances,
        max_floating_users, max_transfers, offline_grace_days, self_deactivations_per_month, term_days, metadata,
        heartbeat_from, created_at, updated_at)
      SELECT unnest(${text("id")}), unnest(${text("product_id")}), unnest(${text("policy_id")}),
        unnest(${text("customer_id")}), unnest(${text("order_id")}), unnest(${text("subscription_id")}),
        decode(unnest(${text("key_hash")}), 'hex'), unnest(${text("license_key_prefix")}),
        unnest(${text("license_key_last4")}), unnest(${text("status")}), unnest(${text("customer_email")}),
        unnest(${text("customer_name")}), unnest(${instants("starts_at")}), unnest(${instants("expires_at")}),
        unnest(${instants("maintenance_expires_at")}), unnest(${integers("active_device_count")}),
        unnest(${integers("times_activated")}), unnest(${integers("entitlement_counter")}),
        unnest(${integers("max_activations")}), unnest(${integers("max_container_instances")}),
        unnest(${integers("max_floating_users")}), unnest(${integers("max_transfers")}),
        unnest(${integers("offline_grace_days")}), unnest(${integers("self_deactivations_per_month")}),
        unnest(${integers("term_days")}),
        unnest(${columns.jsonb(rows.map((row) => row.metadata))}), unnest(${instants("heartbeat_from")}),
        unnest(${instants("created_at")}), unnest(${instants("updated_at")})
      ON CONFLICT (key_hash) DO NOTHING RETURNING id`,
    (inserted): ReadonlySet<string> => new Set(inserted.map(({ id }) => id))
  )
}

/** Writes the columns that few commands change. */
export const updateProfiles = (sql: SqlClient.SqlClient, rows: ReadonlyArray<LicenseRecord>) => {
  const { instants, integers, text } = valuesOf(rows)
  return sql`
    UPDATE licenses l SET policy_id = p.policy_id, customer_id = p.customer_id, order_id = p.order_id,
      subscription_id = p.subscription_id, key_hash = decode(p.key_hash, 'hex'), license_key_prefix = p.license_key_prefix,
      license_key_last4 = p.license_key_last4, customer_email = p.customer_email, customer_name = p.customer_name,
      starts_at = p.starts_at, expires_at = p.expires_at, maintenance_expires_at = p.maintenance_expires_at,
      activation_limit_recorded_at = p.activation_limit_recorded_at, metadata = p.metadata,
      not_due_before = p.not_due_before, heartbeat_from = p.heartbeat_from, max_activations = p.max_activations,
      max_container_instances = p.max_container_instances, max_floating_users = p.max_floating_users,
      max_transfers = p.max_transfers, offline_grace_days = p.offline_grace_days, term_days = p.term_days,
      term_began_at = p.term_began_at, kept_counts = p.kept_counts, self_deactivations_per_month = p.self_deactivations_per_month,
      self_deactivated_at = p.self_deactivated_at, slots_held_until = p.slots_held_until
    FROM unnest(
      ${text("id")}, ${text("policy_id")}, ${text("customer_id")}, ${text("order_id")}, ${text("subscription_id")},
      ${text("key_hash")}, ${text("license_key_prefix")}, ${text("license_key_last4")}, ${text("customer_email")},
      ${text("customer_name")}, ${instants("starts_at")}, ${instants("expires_at")}, ${instants("maintenance_expires_at")},
      ${instants("activation_limit_recorded_at")}, ${columns.jsonb(rows.map((row) => row.metadata))},
      ${instants("not_due_before")}, ${instants("heartbeat_from")}, ${integers("max_activations")},
      ${integers("max_container_instances")}, ${integers("max_floating_users")}, ${integers("max_transfers")},
      ${integers("offline_grace_days")}, ${integers("term_days")}, ${instants("term_began_at")},
      ${columns.jsonb(rows.map((row) => row.kept_counts ?? null))}, ${integers("self_deactivations_per_month")},
      ${columns.jsonb(rows.map((row) => row.self_deactivated_at ?? null))}, ${instants("slots_held_until")}
    ) AS p (id, policy_id, customer_id, order_id, subscription_id, key_hash, license_key_prefix, license_key_last4,
      customer_email, customer_name, starts_at, expires_at, maintenance_expires_at, activation_limit_recorded_at,
      metadata, not_due_before, heartbeat_from, max_activations, max_container_instances, max_floating_users,
      max_transfers, offline_grace_days, term_days, term_began_at, kept_counts, self_deactivations_per_month, self_deactivated_at,
      slots_held_until)
    WHERE l.id = p.id`
}
