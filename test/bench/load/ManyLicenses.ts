/** Very many licenses of one policy, inserted without the API, and a server that has settled afterwards. */
import { Effect } from "effect"
import type { Session } from "../rows/scaleRows.ts"
import { restateLicenses } from "../rows/untriggered.ts"
import type { Management } from "./Licenses.ts"

export interface ManyPolicy {
  readonly id: string
  readonly product_id: string
}

/** A policy of a product of its own. */
export const makePolicy = async ({ call }: Management, code: string, more: object = {}): Promise<ManyPolicy> => {
  const product = await call<{ readonly id: string }>("/products", { name: code, code })
  return call(`/products/${product.id}/policies`, { name: code, code, license_type: "time_limited", ...more })
}

export const insertMany = Effect.fnUntraced(function* (
  { values }: Session,
  policy: ManyPolicy,
  { count, expires, status }: { readonly count: number; readonly status: string; readonly expires: string }
) {
  yield* values("SET session_replication_role = replica")
  yield* values(`
    INSERT INTO licenses (id, product_id, policy_id, key_hash, license_key_prefix, license_key_last4, status, expires_at, metadata,
      created_at, updated_at)
    SELECT 'lic_' || right('${policy.id}', 8) || n, '${policy.product_id}', '${policy.id}', sha256(('${policy.id} ' || n)::bytea),
      'LK-AAAAA', 'AAAA', '${status}', at ${expires}, '{}', at, at
    FROM generate_series(1, ${count}) AS n, (SELECT date_trunc('milliseconds', now()) AS at) AS made`)
  yield* values(restateLicenses)
  yield* values("SET session_replication_role = origin")
  yield* values("VACUUM (ANALYZE) licenses, license_states")
  // A server that has run for a while reuses old WAL segments; a new one would create each while commits wait.
  yield* values("CHECKPOINT")
})
