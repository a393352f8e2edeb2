/** Nodes of the service as far as license actors go: each with actors, caches and a journal of its own, on one database. */
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { type Actor, CurrentActor } from "../../src/auth/CurrentActor.ts"
import { EventLog } from "../../src/events/EventLog.ts"
import { Journal } from "../../src/licenses/engine/Journal.ts"
import { LicenseActors } from "../../src/licenses/engine/LicenseActors.ts"
import { LicenseLookups } from "../../src/licenses/engine/LicenseLookups.ts"
import { LicenseStore } from "../../src/licenses/engine/LicenseStore.ts"
import type { Binding } from "../../src/licenses/model/Binding.ts"
import { instant } from "../../src/postgres/Parameters.ts"
import { sha256Hex } from "../../src/signing/Digest.ts"

const layerNode = LicenseActors.layer.pipe(
  Layer.provideMerge(Journal.layer),
  Layer.provide([LicenseStore.layer, LicenseLookups.layer, EventLog.layer])
)

/** The actors of a node of its own, on the database at hand. Consumptions are asked for by the license, as the runtime does it. */
export const makeNode = Effect.map(Layer.build(Layer.fresh(layerNode)), (node) => {
  const actors = Context.get(node, LicenseActors)
  const ask: typeof actors.ask = (license, rule, ...rest) =>
    Effect.updateService(
      actors.ask(license, rule, ...rest),
      CurrentActor,
      (actor): Actor => (rule.name === "consume" ? { actor_type: "license", actor_id: license } : actor)
    )
  return { ...actors, ask }
})

/** What a test's license may be given beyond the defaults: a perpetual license of one active device. */
export interface Made {
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

/** Writes a product, a policy, a feature `export` and a license with that feature, past all services. */
export const makeLicense = Effect.fnUntraced(function* (options: Made = {}) {
  const sql = yield* SqlClient.SqlClient
  const name = `t${++made}`
  const ids = { product: `prod_${name}`, policy: `pol_${name}`, feature: `feat_${name}`, license: `lic_${name}` }
  const keyHash = sha256Hex(name)
  // Where test clocks begin: no device of a license was heard of before it was made.
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

/** A hardware binding named by its fingerprint. */
export const hardware = (fingerprint: string): Binding => ({
  kind: "hardware",
  key: fingerprint,
  fingerprint,
  is_vm: false,
  is_container: false,
  hash: () => sha256Hex(fingerprint),
  redacted: () => ({ fingerprint: `sha256:${sha256Hex(fingerprint).slice(0, 12)}` })
})
