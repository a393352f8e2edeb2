/** What the database says of floating leases, and leases that no actor has seen. */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import type { CheckoutCommand } from "../../src/licenses/rules/Floating.ts"
import { columns, instant } from "../../src/postgres/Parameters.ts"
import { sha256Hex } from "../../src/signing/Digest.ts"
import { requestOf } from "./StoredLicenses.ts"

interface Made {
  readonly license: string
  readonly keyHash: string
}

let checkouts = 0

/** A checkout that makes a lease of its own, for the machine of this name. */
export const checkoutOf = (license: Made, name: string): CheckoutCommand => {
  const token = `lease_${++checkouts}`
  return { ...requestOf(license, name), newLeaseId: `lse_${checkouts}`, leaseToken: token, tokenHash: sha256Hex(token) }
}

/** What a heartbeat or checkin says, after the answer to a checkout. */
export const leaseOf = ({ keyHash }: Made, { lease_token }: { readonly lease_token: string }) => ({
  keyHash,
  tokenHash: sha256Hex(lease_token)
})

/** Leases and their devices: how many pairs of states there are. */
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

/** No event stands twice about one resource, and the sequence has no gap. */
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

/** Live leases, each of a device of its own, that end at an instant. */
export const fillLeases = Effect.fnUntraced(function* ({ license }: Made, count: number, expiresAt: number) {
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
