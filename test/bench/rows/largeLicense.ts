/**
 * A license of any size: created over the management API, then filled by statements with rows as the service writes
 * them.
 */
import { Effect } from "effect"
import type { Management } from "../load/Licenses.ts"
import type { Session } from "./scaleRows.ts"

export interface Size {
  readonly devices: number
  /** Live floating leases, each of its own device in addition. */
  readonly leases: number
  readonly features: number
}

export interface Target extends Size {
  readonly id: string
  readonly authorization: string
}

export const fingerprintOf = (device: number): string => `fp-${device}`
export const leaseTokenOf = ({ id }: Target, lease: number): string => `lease_${id}_${lease}`

/** A limit above every number of leases. */
const seats = 100_000

export const crowded = Effect.fnUntraced(function* (
  { call }: Management,
  session: Session,
  product_id: string,
  code: string,
  rules: object,
  size: Size
) {
  const policy = yield* Effect.promise(() =>
    call<{ id: string }>(`/products/${product_id}/policies`, {
      name: code,
      code,
      license_type: "perpetual",
      max_activations: 0,
      max_floating_users: seats,
      ...rules
    })
  )
  const { license, license_key } = yield* Effect.promise(() =>
    call<{ license: { id: string }; license_key: string }>("/licenses", { product_id, policy_id: policy.id })
  )
  const { id } = license
  for (const statement of rowsOf(id, product_id, size)) yield* session.values(statement)
  return { ...size, id, authorization: `License ${license_key}` } satisfies Target as Target
})

const rowsOf = (id: string, productId: string, { devices, features, leases }: Size): ReadonlyArray<string> => [
  `INSERT INTO license_features (license_id, feature_id, enabled, max_consumptions, total_consumptions, metadata, created_at,
     updated_at)
   SELECT '${id}', id, true, 1000000000, 0, '{}', now(), now() FROM features
   WHERE product_id = '${productId}' ORDER BY length(code), code LIMIT ${features}`,
  deviceRows(id, "fp", devices, true),
  deviceRows(id, "seat", leases, false),
  `INSERT INTO leases (id, license_id, device_id, token_hash, status, checked_out_at, heartbeat_at, expires_at)
   SELECT '${id}-' || n, '${id}', '${id}-seat-' || n, sha256(convert_to('lease_${id}_' || n, 'UTF8')), 'live', t, t,
     t + interval '1 day'
   FROM generate_series(0, ${leases - 1}) AS n, LATERAL (SELECT date_trunc('milliseconds', now()) AS t) AS at`,
  `UPDATE licenses SET active_device_count = ${devices}, times_activated = ${devices}, revision = revision + 1
   WHERE id = '${id}'`,
  // Analyzed and vacuumed as after some time: otherwise autovacuum would process the new rows during the measurement.
  "VACUUM (ANALYZE) devices, leases, license_features"
]

const deviceRows = (id: string, name: string, count: number, activated: boolean) => `
  INSERT INTO devices (id, license_id, binding_kind, binding_key, fingerprint, hostname, os, is_vm, is_container, status, holds_slot,
    activated_at, first_seen_at, last_seen_at, last_validated_at, metadata, created_at, updated_at)
  SELECT '${id}-${name}-' || n, '${id}', 'hardware', '${name}-' || n, '${name}-' || n, 'host-' || n, 'linux', false, false,
    'active', ${activated}, CASE WHEN ${activated} THEN t END, t, t, t, '{}', t, t
  FROM generate_series(0, ${count - 1}) AS n,
    LATERAL (SELECT date_trunc('milliseconds', now() - n * interval '1 ms') AS t) AS at`
