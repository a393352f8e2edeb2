/** Licenses, devices and leases written to the database without the services, and what the database holds of them afterwards. */

import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { formatTimestamp } from "../../../src/contract/api/Timestamp.ts"
import type { CheckoutCommand } from "../../../src/licensing/rules/Floating.ts"
import { columns, instant, json } from "../../../src/platform/postgres/driver/Parameters.ts"
import { sha256Hex } from "../../../src/platform/signing/Digest.ts"
import { hardware, type Rows, type RowsInput, rowsOf } from "../rules/Licenses.ts"

/** Options of a license; by default perpetual, with one active device. */
export interface LicenseOptions {
  readonly max_activations?: number
  readonly require_heartbeat?: boolean
  readonly max_consumptions?: number
  readonly license_type?: string
  /** Epoch milliseconds. */
  readonly expires_at?: number
  readonly grace_period_days?: number
  readonly max_floating_users?: number
  readonly max_container_instances?: number
  readonly validation_interval_minutes?: number
}

let made = 0

/** Inserts a product, a policy, a feature `export` and a license with it, without the services. */
export const makeLicense = Effect.fnUntraced(function* (options: LicenseOptions = {}) {
  const sql = yield* SqlClient.SqlClient
  const name = `t${++made}`
  const ids = { product: `prod_${name}`, policy: `pol_${name}`, feature: `feat_${name}`, license: `lic_${name}` }
  const keyHash = sha256Hex(name)
  // The start of test clocks: no device was seen before its license was made.
  const now = "1970-01-01T00:00:00Z"
  yield* sql`INSERT INTO products (id, name, code, metadata, created_at, updated_at) VALUES (${ids.product}, 'P', ${name}, '{}', ${now}, ${now})`
  yield* sql`
    INSERT INTO policies (id, product_id, name, code, license_type, max_activations, max_floating_users,
      max_container_instances, floating_timeout_minutes, grace_period_days, validation_interval_minutes, require_heartbeat, allow_offline_activation, offline_grace_days, allow_vm, allow_container,
      max_transfers, metadata, created_at, updated_at)
    VALUES (${ids.policy}, ${ids.product}, 'P', 'p', ${options.license_type ?? "perpetual"}, ${options.max_activations ?? 1},
      ${options.max_floating_users ?? null}, ${options.max_container_instances ?? null}, 30, ${options.grace_period_days ?? 0}, ${options.validation_interval_minutes ?? 1440}, ${options.require_heartbeat ?? false}, true, 7, true, true, 0, '{}', ${now}, ${now})`
  yield* sql`INSERT INTO features (id, product_id, name, code, metadata, created_at) VALUES (${ids.feature}, ${ids.product}, 'Export', 'export', '{}', ${now})`
  yield* sql`
    INSERT INTO licenses (id, product_id, policy_id, key_hash, license_key_prefix, license_key_last4, status, expires_at, metadata,
      created_at, updated_at)
    VALUES (${ids.license}, ${ids.product}, ${ids.policy}, decode(${keyHash}, 'hex'), 'LK-AAAAA', 'AAAA', 'active',
      ${instant(options.expires_at ?? null)}, '{}', ${now}, ${now})`
  yield* sql`
    INSERT INTO license_features (license_id, feature_id, enabled, max_consumptions, metadata, created_at, updated_at)
    VALUES (${ids.license}, ${ids.feature}, true, ${options.max_consumptions ?? null}, '{}', ${now}, ${now})`
  return { ...ids, keyHash }
})

/** What commands need of a stored license. */
export interface StoredLicense {
  readonly license: string
  readonly keyHash: string
}

const instants = /_(?:at|until)$|^period_(?:anchor|start)$/

/** A record as JSON for jsonb_populate_recordset. */
const rowOf = (record: object) =>
  Object.fromEntries(
    Object.entries(record).map(([column, value]) => [
      column,
      typeof value === "number" && instants.test(column) ? formatTimestamp(value) : value
    ])
  )

const bytea = (hex: string) => `\\x${hex}`

const insertAll = Effect.fnUntraced(function* (table: string, records: ReadonlyArray<object>) {
  if (records.length === 0) return
  const sql = yield* SqlClient.SqlClient
  const name = sql.literal(table)
  const columns = sql.csv(Array.from(new Set(records.flatMap(Object.keys)), (column) => sql`${sql(column)}`))
  yield* sql`
    INSERT INTO ${name} (${columns})
    SELECT ${columns} FROM jsonb_populate_recordset(NULL::${name}, ${json(records.map(rowOf))})`
})

/** Inserts licenses with their policies, features, devices and leases under unique ids. Returns the ids of the licenses. */
export const storeRows = Effect.fnUntraced(function* (name: string, worlds: ReadonlyArray<Rows>) {
  const own = (index: number, id: string) => `${id}_${name}_${index}`
  const { created_at, updated_at } = worlds[0]!.license
  yield* insertAll("products", [
    { id: `prod_${name}`, name, code: name, metadata: {}, catalog_revision: 1, created_at, updated_at }
  ])
  const each = (rowsOf: (world: Rows, index: number) => ReadonlyArray<object>) => worlds.flatMap(rowsOf)
  const policies = each(({ policy }, index) => [
    {
      ...policy,
      id: own(index, "pol"),
      product_id: `prod_${name}`,
      name,
      code: `${index}`,
      metadata: {},
      created_at,
      updated_at
    }
  ])
  yield* insertAll("policies", policies)
  const licenses = each(({ license }, index) => [
    {
      ...license,
      id: own(index, "lic"),
      product_id: `prod_${name}`,
      policy_id: own(index, "pol"),
      key_hash: bytea(sha256Hex(own(index, "key")))
    }
  ])
  yield* insertAll("licenses", licenses)
  const features = new Map(worlds.flatMap(({ features }) => features.map((feature) => [feature.code, feature])))
  const featureId = (id: string) => `${id}_${name}`
  yield* insertAll(
    "features",
    Array.from(features.values(), (feature) => ({
      ...feature,
      id: featureId(feature.id),
      product_id: `prod_${name}`,
      metadata: {},
      created_at
    }))
  )
  const assignments = each((world, index) =>
    world.assignments.map(({ feature_code: _, feature_name: __, ...assignment }) => ({
      ...assignment,
      feature_id: featureId(assignment.feature_id),
      license_id: own(index, "lic")
    }))
  )
  yield* insertAll("license_features", assignments)
  const devices = each((world, index) =>
    world.devices.map(({ binding_hash: _, ...device }) => ({
      ...device,
      id: own(index, device.id),
      license_id: own(index, "lic")
    }))
  )
  yield* insertAll("devices", devices)
  const leases = each((world, index) =>
    world.leases.map((lease) => ({
      ...lease,
      id: own(index, lease.id),
      license_id: own(index, "lic"),
      device_id: own(index, lease.device_id),
      token_hash: bytea(sha256Hex(own(index, lease.token_hash)))
    }))
  )
  yield* insertAll("leases", leases)
  return worlds.map((_, index) => own(index, "lic"))
})

let stores = 0

/** Inserts copies of a license given as plain records. */
export const storeMany = Effect.fnUntraced(function* (count: number, rows: RowsInput) {
  const name = `s${++stores}`
  const ids = yield* storeRows(
    name,
    Array.from({ length: count }, () => rowsOf(rows))
  )
  return ids.map((license, index) => ({ license, keyHash: sha256Hex(`key_${name}_${index}`) }))
})

export const storeOne = (rows: RowsInput) => Effect.map(storeMany(1, rows), ([license]) => license!)

export const deviceIdOf = ({ keyHash }: StoredLicense, name: string) => `dev_${keyHash.slice(0, 8)}_${name}`

export const requestOf = (license: StoredLicense, name: string) => ({
  keyHash: license.keyHash,
  binding: hardware(name),
  newDeviceId: deviceIdOf(license, name)
})

export const stored = Effect.fnUntraced(function* (licenseId: string) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{
    revision: number
    status: string
    expires_at: number | null
    customer_id: string | null
    customer_name: string | null
    active: number
    transferred: number
    total: number
    version: number
  }>`
    SELECT revision, status, expires_at, customer_id, customer_name, active_device_count AS active,
      times_transferred AS transferred, total_consumptions AS total, entitlement_counter AS version
    FROM licenses WHERE id = ${licenseId}`
  return row!
})

/** The number of devices by state, and how many of them hold a slot. */
export const deviceStates = Effect.fnUntraced(function* (licenseId: string) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ status: string; count: number; slots: number }>`
    SELECT status, count(*) AS count, count(*) FILTER (WHERE holds_slot) AS slots FROM devices
    WHERE license_id = ${licenseId} GROUP BY status ORDER BY status`
  return Object.fromEntries(rows.map(({ status, count, slots }) => [status, [count, slots]]))
})

export const eventsAbout = Effect.fnUntraced(function* (resourceId: string, type: string) {
  const sql = yield* SqlClient.SqlClient
  return yield* sql<{ metadata: { readonly [member: string]: unknown } }>`
    SELECT metadata - 'request_id' AS metadata FROM events
    WHERE resource_id = ${resourceId} AND event_type = ${type} ORDER BY sequence`
})

export const makeCustomer = Effect.fnUntraced(function* (id: string) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    INSERT INTO customers (id, name, code, metadata, created_at, updated_at) VALUES (${id}, 'C', ${id}, '{}', now(), now())`
})

/** Inserts devices that no actor has loaded, a fifth in each state. */
export const fillDevices = Effect.fnUntraced(function* ({ license }: StoredLicense, count: number) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    INSERT INTO devices (id, license_id, binding_kind, binding_key, fingerprint, is_vm, is_container, status, holds_slot,
      first_seen_at, last_seen_at, metadata, created_at, updated_at)
    SELECT ${license} || '_' || n, ${license}, 'hardware', 'f' || n, 'f' || n, false, false, state, state = 'active', at, at,
      '{}', at, at
    FROM generate_series(1, ${count}::int) AS n,
      LATERAL (SELECT (ARRAY['active', 'deactivated', 'expired', 'reset', 'blacklisted'])[1 + n % 5] AS state,
        timestamptz '2026-01-01Z' + n * interval '1 second' AS at) AS made`
  yield* sql`
    UPDATE licenses SET active_device_count = ${count / 5}, revision = revision + 1 WHERE id = ${license}`
})

let checkouts = 0

/** A checkout with a new lease for the machine of this name. */
export const checkoutOf = (license: StoredLicense, name: string): CheckoutCommand => {
  const token = `lease_${++checkouts}`
  return { ...requestOf(license, name), newLeaseId: `lse_${checkouts}`, leaseToken: token, tokenHash: sha256Hex(token) }
}

/** The heartbeat or checkin command for the lease of a checkout's answer. */
export const leaseCommandOf = ({ keyHash }: StoredLicense, { lease_token }: { readonly lease_token: string }) => ({
  keyHash,
  tokenHash: sha256Hex(lease_token)
})

/** The number of leases by their state and their device's state. */
export const leaseStates = Effect.fnUntraced(function* (licenseId: string) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ states: string; count: number }>`
    SELECT e.status || ' ' || d.status AS states, count(*) AS count FROM leases e JOIN devices d ON d.id = e.device_id
    WHERE e.license_id = ${licenseId} GROUP BY 1 ORDER BY 1`
  return Object.fromEntries(rows.map(({ states, count }) => [states, count]))
})

/** How often each event was recorded about a license, its devices and leases. */
export const eventCounts = Effect.fnUntraced(function* (licenseId: string) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ event_type: string; count: number }>`
    SELECT event_type, count(*) AS count FROM events
    WHERE resource_id = ${licenseId} OR metadata ->> 'license_id' = ${licenseId} GROUP BY 1 ORDER BY 1`
  return Object.fromEntries(rows.map(({ event_type, count }) => [event_type, count]))
})

/** Checks that no event of these types is repeated for a resource, and that the sequence has no gap. */
export const assertEachOnce = Effect.fnUntraced(function* (types: ReadonlyArray<string>) {
  const sql = yield* SqlClient.SqlClient
  const twice = yield* sql<{ event_type: string; resource_id: string }>`
    SELECT event_type, resource_id FROM events WHERE event_type = ANY(${columns.text(types)})
    GROUP BY 1, 2 HAVING count(*) > 1`
  assert.deepStrictEqual(twice, [])
  const [row] = yield* sql<{ last: number; rows: number }>`
    SELECT last, (SELECT count(*) FROM events) AS rows FROM event_sequence`
  assert.strictEqual(row!.last, row!.rows)
})

/** Inserts live leases with one device each, which end at an instant. */
export const fillLeases = Effect.fnUntraced(function* ({ license }: StoredLicense, count: number, expiresAt: number) {
  const sql = yield* SqlClient.SqlClient
  const end = instant(expiresAt)
  yield* sql`
    INSERT INTO devices (id, license_id, binding_kind, binding_key, fingerprint, is_vm, is_container, status, holds_slot,
      first_seen_at, last_seen_at, metadata, created_at, updated_at)
    SELECT ${license} || '_' || n, ${license}, 'hardware', 'f' || n, 'f' || n, false, false, 'active', false, at, at, '{}', at, at
    FROM generate_series(1, ${count}::int) AS n, LATERAL (SELECT ${end}::timestamptz - interval '1 hour' AS at) AS made`
  yield* sql`
    INSERT INTO leases (id, license_id, device_id, token_hash, status, checked_out_at, heartbeat_at, expires_at)
    SELECT 'lse_' || id, license_id, id, sha256(convert_to('lease_' || id, 'UTF8')), 'live', created_at, created_at, ${end}
    FROM devices WHERE license_id = ${license} AND NOT holds_slot`
  yield* sql`UPDATE licenses SET revision = revision + 1 WHERE id = ${license}`
})
