/** The rows before a simulation begins, and the triggers that record its changes. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import type { Binding } from "../../../src/licensing/model/Binding.ts"
import { instant, json } from "../../../src/platform/postgres/driver/Parameters.ts"
import { sha256Hex } from "../../../src/platform/signing/Digest.ts"
import { container, hardware } from "../../support/rules/Licenses.ts"
import { termDays } from "../model/Limits.ts"
import { customers } from "../model/Management.ts"
import { dayMillis, type Policy } from "../model/Model.ts"
import { foreignPolicy } from "../model/Moves.ts"
import { type Dates, placed, type Quota, type Subscription, unassigned } from "../model/Periods.ts"
import { type Plan, quotaOf } from "./Plan.ts"
import type { RandomSource } from "./RandomSource.ts"

/** The instant at which every simulation begins. */
export const startTime = Date.UTC(2030, 0, 15, 12)

export const product = "prod_own"

/** The initial features by id. */
const featureCodes = { feat_a: "api", feat_b: "export", feat_c: "reports" } as const

export const licenseId = (index: number): string => `lic_${index}`

/** An id that no license has. */
export const unknownLicense = "lic_nowhere"

/** The machines that use a license; the same for all clients. */
export const machinesOf = (license: string, count: number): ReadonlyArray<Binding> =>
  Array.from({ length: count }, (_, index) => {
    if (index % 3 === 2) return container(`pod ${index} of ${license}`, { cluster_id: "c" })
    return hardware(`machine ${index} of ${license}`, { is_vm: index % 4 === 3 })
  })

export const keyOf = (license: string, index: number): string => sha256Hex(`key ${index} of ${license}`)

/**
 * Records each new revision in a table that a failover does not set back, and a row for each change: PostgreSQL's transaction id, the license, whether its revision
 * changed, and whether decisions depend on the change.
 */
const changeTriggers = `
  CREATE TABLE IF NOT EXISTS simulation_changes (
    xid text NOT NULL, license_id text NOT NULL, what text NOT NULL, raised bigint NOT NULL, decisive boolean NOT NULL
  );
  CREATE OR REPLACE FUNCTION simulation_watch() RETURNS trigger LANGUAGE plpgsql AS $$
  DECLARE
    before jsonb := CASE TG_OP WHEN 'INSERT' THEN '{}' ELSE to_jsonb(OLD) END;
    after jsonb := CASE TG_OP WHEN 'DELETE' THEN '{}' ELSE to_jsonb(NEW) END;
    ignored text[] := ARRAY['revision', 'updated_at', 'last_seen_at', 'last_validated_at', 'due_at', 'offline_expires_at', 'heartbeat_at',
      'sweep_at', 'expiring_for', 'expiring_days', 'maintenance_told_for', 'maintenance_told_days'];
    license text := CASE TG_TABLE_NAME WHEN 'licenses' THEN after->>'id'
      ELSE coalesce(after->>'license_id', before->>'license_id') END;
  BEGIN
    INSERT INTO simulation_changes VALUES (pg_current_xact_id()::text, license,
      regexp_replace(TG_TABLE_NAME, '_from_\\d+$', ''),
      (after->>'revision' <> before->>'revision' IS TRUE)::int, after - ignored <> before - ignored);
    RETURN NULL;
  END $$;
  CREATE TABLE IF NOT EXISTS simulation_revisions (resource text NOT NULL, revision bigint NOT NULL);
  CREATE OR REPLACE FUNCTION simulation_revision() RETURNS trigger LANGUAGE plpgsql AS $$
  DECLARE
    row jsonb := to_jsonb(NEW);
  BEGIN
    INSERT INTO simulation_revisions VALUES (NEW.id, coalesce(row->>'revision', row->>'catalog_revision')::bigint);
    RETURN NULL;
  END $$;
  CREATE OR REPLACE TRIGGER simulation_revision AFTER UPDATE ON licenses
    FOR EACH ROW WHEN (OLD.revision <> NEW.revision) EXECUTE FUNCTION simulation_revision();
  CREATE OR REPLACE TRIGGER simulation_revision AFTER UPDATE ON policies
    FOR EACH ROW WHEN (OLD.revision <> NEW.revision) EXECUTE FUNCTION simulation_revision();
  CREATE OR REPLACE TRIGGER simulation_revision AFTER UPDATE ON products
    FOR EACH ROW WHEN (OLD.catalog_revision <> NEW.catalog_revision) EXECUTE FUNCTION simulation_revision();
  CREATE OR REPLACE TRIGGER simulation AFTER UPDATE ON licenses FOR EACH ROW EXECUTE FUNCTION simulation_watch();
  CREATE OR REPLACE TRIGGER simulation AFTER INSERT OR UPDATE ON devices FOR EACH ROW EXECUTE FUNCTION simulation_watch();
  CREATE OR REPLACE TRIGGER simulation AFTER INSERT OR UPDATE ON leases FOR EACH ROW EXECUTE FUNCTION simulation_watch();
  CREATE OR REPLACE TRIGGER simulation AFTER INSERT OR UPDATE OR DELETE ON license_features
    FOR EACH ROW EXECUTE FUNCTION simulation_watch();
  CREATE OR REPLACE TRIGGER simulation AFTER INSERT ON waiting_entries
    FOR EACH ROW WHEN (NEW.action IS NOT NULL) EXECUTE FUNCTION simulation_watch();
  CREATE OR REPLACE TRIGGER simulation AFTER INSERT ON usage_ledger
    FOR EACH ROW WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION simulation_watch()`

/** One in its period, one that ended long ago, one of another product. */
const subscriptions: ReadonlyArray<Subscription> = Object.entries({ sub_0: -20, sub_1: -400, sub_foreign: -1 }).map(
  ([id, days]) => ({ id, start: startTime + days * dayMillis, end: startTime + (days + 30) * dayMillis })
)

/** Installs the triggers once per database. */
export const installChangeTriggers = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of changeTriggers.split(/;\n(?= {2}CREATE|$)/)) yield* sql.unsafe(statement)
})

const tables = `simulation_changes, simulation_revisions, idempotent_answers, webhook_deliveries, webhook_endpoints, event_log, usage_ledger, usage_event_ids, waiting_entries,
  policy_features, leases, devices, license_features, license_states, licenses, orders, subscriptions, customers, product_versions, features, policies, products`

/** Empties the database and inserts the initial rows of a plan. */
export const insertInitialData = Effect.fnUntraced(function* (plan: Plan, random: RandomSource) {
  const sql = yield* SqlClient.SqlClient
  const at = instant(startTime - 90 * dayMillis)
  const dated = { created_at: at, updated_at: at, metadata: json({}) }
  yield* sql.unsafe(`TRUNCATE ${tables} CASCADE`)
  yield* sql`UPDATE event_sequence SET last = 0, ledger_last = 0`
  // Subscribes to every event: each must have a delivery to it.
  yield* sql`
    INSERT INTO webhook_endpoints (id, name, url, event_types, is_active, secret_prefix, secret_sealed, created_at, updated_at)
    VALUES ('wh_all', 'W', 'https://example.com', '{}', true, 'whsec_', '', ${at}, ${at})`
  for (const id of [product, "prod_foreign"])
    yield* sql`INSERT INTO products ${sql.insert({ id, name: id, code: id, ...dated })}`
  for (const { version: _, floor: __, features: ___, ...policy } of [...plan.policies, foreignPolicyOf(plan)]) {
    const product_id = policy.id === foreignPolicy ? "prod_foreign" : product
    const row = { ...policy, product_id, name: policy.id, code: policy.id, ...dated }
    yield* sql`INSERT INTO policies ${sql.insert(row)}`
  }
  const { updated_at: _, ...made } = dated
  for (const [id, code] of Object.entries({ ...featureCodes, feat_foreign: "foreign" })) {
    const product_id = id === "feat_foreign" ? "prod_foreign" : product
    yield* sql`INSERT INTO features ${sql.insert({ id, product_id, name: code, code, ...made })}`
  }
  for (const { end, id, start } of subscriptions) {
    const product_id = id === "sub_foreign" ? "prod_foreign" : product
    const external = { external_system: "shop", external_id: id, status: "active", cancel_at_period_end: false }
    const period = { current_period_start: instant(start), current_period_end: instant(end) }
    yield* sql`INSERT INTO subscriptions ${sql.insert({ id, product_id, ...external, ...period, ...dated })}`
  }
  for (const { features, id: policy_id } of plan.policies)
    for (const [feature_id, { days, enabled, follows, ...one }] of features) {
      const quota = { enabled, ...quotaColumns(one) }
      const expiry = { expires_after_days: days, expires_with_license: follows || null }
      const granted = { policy_id, feature_id, ...quota, ...expiry, ...dated }
      yield* sql`INSERT INTO policy_features ${sql.insert(granted)}`
    }
  for (const [id, customer] of Object.entries(customers))
    yield* sql`INSERT INTO customers ${sql.insert({ id, ...customer, code: id, ...dated })}`
  for (const [id, product_id] of [
    ["ord_own", product],
    ["ord_foreign", "prod_foreign"]
  ]) {
    const row = { id, product_id, external_system: "shop", external_id: id, status: "paid", ...dated }
    yield* sql`INSERT INTO orders ${sql.insert(row)}`
  }
  if (plan.hasVersions) {
    for (const [version, days] of Object.entries({ "1.0": -60, "2.0": 1, "3.0": 40 })) {
      const row = {
        id: `ver_${version}`,
        product_id: product,
        version,
        released_at: instant(startTime + days * dayMillis)
      }
      yield* sql`INSERT INTO product_versions ${sql.insert({ ...row, ...dated })}`
    }
  }
  for (const index of plan.licenses.keys()) yield* makeLicense(plan, index, random)
  yield* sql`DELETE FROM simulation_changes`
})

const quotaColumns = ({ anchor, beyond, max, period, rollover }: Quota) => ({
  max_consumptions: max,
  reset_period: period,
  reset_anchor: anchor,
  rollover_max: rollover,
  overage_max: beyond
})

const foreignPolicyOf = ({ policies }: Plan): Policy => ({ ...policies[0]!, id: foreignPolicy })

const makeLicense = Effect.fnUntraced(function* (plan: Plan, index: number, random: RandomSource) {
  const sql = yield* SqlClient.SqlClient
  const { others, policy: policyIndex } = plan.licenses[index]!
  const policy = plan.policies[policyIndex]!
  const id = licenseId(index)
  const isPerpetual = policy.license_type === "perpetual"
  const ends = random.pick([0.02, 8, 30, 365])
  // 15 days before is the 31st.
  const created = startTime - random.pick([15, 30]) * dayMillis
  const at = instant(created)
  const starts = random.chance(0.1) ? startTime + 60_000 : null
  const days = termDays(policy)
  const isPending = days !== null && policy.duration_starts === "first_activation" && random.chance(0.5)
  const row = {
    id,
    product_id: product,
    policy_id: policy.id,
    key_hash: Buffer.from(keyOf(id, 0), "hex"),
    license_key_prefix: "LK-00000",
    license_key_last4: "0000",
    status: "active",
    starts_at: instant(starts),
    expires_at: instant(isPerpetual || isPending ? null : startTime + ends * dayMillis),
    maintenance_expires_at: instant(
      isPerpetual && !isPending && random.chance(0.8) ? startTime + ends * dayMillis : null
    ),
    term_days: isPending ? days : null,
    subscription_id: random.pick(plan.isAboutQuotas ? ["sub_0", "sub_0", "sub_1"] : [null, "sub_0", "sub_1"]),
    max_activations: random.pick([null, null, null, 0, 2]),
    max_floating_users: random.pick([null, null, null, 2]),
    metadata: json({}),
    created_at: at,
    updated_at: at
  }
  yield* sql`INSERT INTO licenses ${sql.insert(row)}`
  const terms = { created, starts, began: null, term: row.term_days, expires: null, maintenance: null }
  yield* assignFeatures(plan, id, terms, row.subscription_id, random)
  // More devices than a node keeps in memory.
  yield* sql`
    INSERT INTO devices (id, license_id, binding_kind, binding_key, fingerprint, is_vm, is_container, status, holds_slot,
      first_seen_at, last_seen_at, metadata, created_at, updated_at)
    SELECT ${id} || '_' || n, ${id}, 'hardware', 'machine ' || n || ' of ' || ${id}, 'machine ' || n || ' of ' || ${id},
      n % 4 = 3, false, (ARRAY['deactivated', 'expired', 'reset', 'blacklisted'])[1 + n % 4], false, at, at, '{}', at, at
    FROM generate_series(0, ${others}::int - 1) AS n,
      LATERAL (SELECT timestamptz '2029-01-01Z' + n * interval '1 second' AS at) AS made
    WHERE n % 3 <> 2`
})

const assignFeatures = Effect.fnUntraced(function* (
  { isAboutQuotas }: Plan,
  id: string,
  terms: Dates,
  subscriptionId: string | null,
  random: RandomSource
) {
  const sql = yield* SqlClient.SqlClient
  const at = instant(terms.created)
  for (const feature_id of ["feat_a", "feat_b"]) {
    const quota = quotaOf(random, isAboutQuotas)
    const subscription = subscriptions.find((one) => one.id === subscriptionId)
    const { from, resets, start, until } = placed({ ...unassigned, ...quota }, terms, subscription, startTime)
    const assigned = {
      license_id: id,
      feature_id,
      enabled: true,
      ...quotaColumns(quota),
      period_anchor: instant(from),
      periods_end_at: instant(until),
      period_start: instant(start),
      resets_at: instant(resets),
      from_policy: random.chance(0.5),
      metadata: json({})
    }
    yield* sql`INSERT INTO license_features ${sql.insert({ ...assigned, created_at: at, updated_at: at })}`
  }
})
