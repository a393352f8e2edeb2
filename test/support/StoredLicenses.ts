/** What the database says of a license that actors have worked on, and rows that no actor has seen. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { hardware } from "./Nodes.ts"

interface Made {
  readonly license: string
  readonly keyHash: string
}

export const deviceIdOf = ({ keyHash }: Made, name: string) => `dev_${keyHash.slice(0, 8)}_${name}`

export const requestOf = (license: Made, name: string) => ({
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

/** Devices by their state: how many, and how many of them hold a slot. */
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

/** Devices that no actor has seen, a fifth of them in each state. */
export const fillDevices = Effect.fnUntraced(function* ({ license }: Made, count: number) {
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
