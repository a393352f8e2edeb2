/**
 * Fills a database with as many rows as a large installation has, by set-based statements: a million licenses take a
 * minute or two. The rows are as the service itself would have written them: ids in the order of their creation, states
 * that match the clock, counters that equal the rows they count.
 */
import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import { bulkJobs } from "./scaleBulk.ts"
import { happenings } from "./scaleEvents.ts"
import { address, chance, created, id, instant, personal, type Statement } from "./scaleValues.ts"
import { restateLicenses } from "./untriggered.ts"

export interface Sizes {
  readonly products: number
  readonly licenses: number
  readonly customers: number
  readonly devices: number
  readonly events: number
  /** Orders, subscriptions, versions, custom fields, API keys and exports, each. */
  readonly others: number
  /** Devices and leases of the first license, each, and webhook endpoints. */
  readonly crowd: number
}

export interface Session {
  values(sql: string): Effect.Effect<ReadonlyArray<ReadonlyArray<unknown>>, SqlError.SqlError>
}

/** The product with most rows: three of four licenses, every order and subscription. */
export const hotProduct = "prod_00000000000000000000000001"
/** Two policies of the hot product: perpetual licenses, and timed licenses. */
export const perpetualPolicy = "pol_00000000000000000000000001"
export const timedPolicy = "pol_00000000000000000000000002"
export const meteredFeature = "feat_00000000000000000000000001"

/** The id of the n-th row of a kind, from 1: in the order of creation, like those of the service. */
export const idOf = (prefix: string, n: number): string => `${prefix}_${n.toString(16).toUpperCase().padStart(26, "0")}`

/** Most records have the plan basic, a few partner; the seats are rare, some records have none. */
const described = `jsonb_build_object('origin', 'import', 'plan', CASE WHEN n % 500 = 0 THEN 'partner' ELSE 'basic' END,
  'seats', n % 5000)`
const metadata = `'{"origin": "import"}'::jsonb`
/** Fills a database on which a service has just been started: it contains every table and the first API key. */
export const fill = Effect.fnUntraced(function* (
  { values }: Session,
  sizes: Sizes,
  say: (line: string) => Effect.Effect<void> = () => Effect.void
) {
  // Foreign keys are valid by construction; checking each of them would take longer than everything else.
  yield* values("SET session_replication_role = replica")
  yield* values("SET maintenance_work_mem = '256MB'")
  for (const [table, statement] of statements(sizes)) {
    const indexes = yield* dropIndexes(values, table)
    yield* values(statement)
    for (const index of indexes) yield* values(index.replace(" ON ONLY ", " ON "))
    const [row] = yield* values(`SELECT count(*)::int4 FROM ${table}`)
    yield* say(`${table}: ${row?.[0]} rows`)
  }
  yield* values(restateLicenses)
  yield* values(`UPDATE event_sequence SET last = last + ${sizes.events}, refusals_last = ${sizes.others},
    ledger_last = (SELECT count(*) FROM usage_ledger)`)
  yield* values("UPDATE usage_rollup_progress SET sequence = (SELECT count(*) FROM usage_ledger)")
  yield* values("SELECT copy_event_ids(0, ledger_last) FROM event_sequence")
  yield* values("SET session_replication_role = origin")
  yield* values("VACUUM (ANALYZE)")
})

/** Drops the indexes of a table that serve no constraint, and returns the statements that create them again. */
const dropIndexes = Effect.fnUntraced(function* (values: Session["values"], table: string) {
  const indexRows = yield* values(`
    SELECT indexdef, indexrelid::regclass::text FROM pg_index
    JOIN pg_indexes ON indexname = (SELECT relname FROM pg_class WHERE oid = indexrelid)
    WHERE indrelid = '${table}'::regclass
      AND NOT EXISTS (SELECT 1 FROM pg_constraint WHERE conindid = indexrelid)`)
  for (const [, name] of indexRows) yield* values(`DROP INDEX ${name}`)
  return indexRows.map(([definition]) => String(definition))
})

const statements = (sizes: Sizes): ReadonlyArray<Statement> => [
  ...catalog(sizes),
  ...commerce(sizes),
  ...licenses(sizes),
  ...happenings(sizes, meteredFeature),
  ...surroundings(sizes),
  ...bulkJobs(sizes.others, hotProduct),
  ...crowd(sizes)
]

const perProduct = 4
/** The number of products that have policies, features and licenses. */
const soldMax = 250
const soldOf = ({ products }: Sizes): number => Math.min(products, soldMax)

const catalog = (sizes: Sizes): ReadonlyArray<Statement> => [
  [
    "products",
    `INSERT INTO products (id, name, code, metadata, created_at, updated_at)
     SELECT ${id("prod", "n")}, 'Product ' || n, 'product-' || n, ${metadata}, t, t
     FROM generate_series(1, ${sizes.products}) n, LATERAL (SELECT ${created("n", sizes.products)} AS t) at`
  ],
  [
    "policies",
    `INSERT INTO policies (id, product_id, name, code, license_type, max_activations, max_floating_users,
       floating_timeout_minutes, grace_period_days, validation_interval_minutes, require_heartbeat, allow_offline_activation,
       offline_grace_days, allow_vm, allow_container, max_transfers, metadata, created_at, updated_at)
     SELECT ${id("pol", "n")}, ${id("prod", `(n - 1) / ${perProduct} + 1`)}, 'Policy ' || n, 'policy-' || n,
       (ARRAY['perpetual', 'time_limited', 'trial', 'subscription'])[(n - 1) % 4 + 1],
       0, 10, 30, 0, 1440, false, true, 7, true, true, 0, ${metadata}, t, t
     FROM generate_series(1, ${soldOf(sizes) * perProduct}) n,
       LATERAL (SELECT ${created("n", soldMax * perProduct)} AS t) at`
  ],
  [
    "features",
    `INSERT INTO features (id, product_id, name, code, metadata, created_at)
     SELECT ${id("feat", "n")}, ${id("prod", `(n - 1) / ${perProduct} + 1`)}, 'Feature ' || n, 'feature-' || n, ${metadata},
       ${created("n", soldMax * perProduct)}
     FROM generate_series(1, ${soldOf(sizes) * perProduct}) n`
  ],
  [
    "policy_features",
    `INSERT INTO policy_features (policy_id, feature_id, enabled, max_consumptions, metadata, created_at, updated_at)
     SELECT p.id, f.id, true, 1000, ${metadata}, f.created_at, f.created_at
     FROM policies p JOIN features f ON f.product_id = p.product_id`
  ],
  [
    "product_versions",
    `INSERT INTO product_versions (id, product_id, version, released_at, metadata, created_at, updated_at)
     SELECT ${id("ver", "n")}, ${id("prod", `n % ${sizes.products} + 1`)}, '1.' || n, t, ${metadata}, t, t
     FROM generate_series(1, ${sizes.others}) n, LATERAL (SELECT ${created("n", sizes.others)} AS t) at`
  ],
  [
    "custom_field_definitions",
    `INSERT INTO custom_field_definitions (id, product_id, resource_type, code, name, value_type, is_required, enum_options,
       metadata, created_at, updated_at)
     SELECT ${id("cfd", "n")}, ${id("prod", `n % ${sizes.products} + 1`)}, (ARRAY['license', 'customer'])[n % 2 + 1], 'field-' || n,
       'Field ' || n, 'string', false, '{}', ${metadata}, t, t
     FROM generate_series(1, ${sizes.others}) n, LATERAL (SELECT ${created("n", sizes.others)} AS t) at`
  ]
]

const commerce = ({ customers, others }: Sizes): ReadonlyArray<Statement> => [
  [
    "customers",
    `INSERT INTO customers (id, name, code, email, metadata, created_at, updated_at)
     SELECT ${id("cust", "n")}, first_name || ' ' || last_name, 'customer-' || n, ${address("n")}, ${described}, t, t
     FROM generate_series(1, ${customers}) n, ${personal("n")}, LATERAL (SELECT ${created("n", customers)} AS t) at`
  ],
  [
    "subscriptions",
    `INSERT INTO subscriptions (id, product_id, customer_id, external_system, external_id, status, current_period_start,
       current_period_end, cancel_at_period_end, canceled_at, metadata, created_at, updated_at)
     SELECT ${id("sub", "n")}, '${hotProduct}', ${id("cust", `n % ${customers} + 1`)},
       CASE WHEN n % 1000 = 0 THEN 'paddle' ELSE 'stripe' END, 'sub_' || n,
       CASE WHEN n % 500 = 0 THEN 'paused' WHEN n % 10 = 0 THEN 'canceled' ELSE 'active' END, t, t + interval '30 days', false,
       CASE WHEN n % 10 = 0 AND n % 500 <> 0 THEN t END, ${metadata}, t, t
     FROM generate_series(1, ${others}) n, LATERAL (SELECT ${created("n", others)} AS t) at`
  ],
  [
    "orders",
    `INSERT INTO orders (id, product_id, customer_id, subscription_id, external_system, external_id, status, period_start,
       period_end, metadata, created_at, updated_at)
     SELECT ${id("ord", "n")}, '${hotProduct}', ${id("cust", `n % ${customers} + 1`)}, ${id("sub", "n")},
       CASE WHEN n % 1000 = 0 THEN 'paddle' ELSE 'stripe' END, 'order_' || n,
       CASE WHEN n % 500 = 0 THEN 'refunded' WHEN n % 10 = 0 THEN 'pending' ELSE 'fulfilled' END, NULL, NULL, ${metadata}, t, t
     FROM generate_series(1, ${others}) n, LATERAL (SELECT ${created("n", others)} AS t) at`
  ]
]

const expired = "kind > 0 AND ends_at <= now()"

/**
 * Licenses, or the maintenance of perpetual ones, end between a year ago and two years ahead; a few are suspended or revoked. Three of four are the hot
 * product's.
 */
const licenses = (sizes: Sizes): ReadonlyArray<Statement> => [
  [
    "licenses",
    `INSERT INTO licenses (id, product_id, policy_id, customer_id, order_id, subscription_id, key_hash, license_key_prefix,
       license_key_last4, status, customer_email, customer_name, expires_at, maintenance_expires_at, active_device_count,
       times_activated, total_consumptions, metadata, created_at, updated_at)
     SELECT ${id("lic", "n")}, ${id("prod", "product")}, ${id("pol", `(product - 1) * ${perProduct} + kind + 1`)},
       CASE WHEN n % 4 <> 0 THEN ${id("cust", "customer")} END,
       CASE WHEN n <= ${sizes.others} THEN ${id("ord", "n")} END, CASE WHEN n <= ${sizes.others} THEN ${id("sub", "n")} END,
       sha256(('license key ' || n)::bytea), 'LK-' || substr(upper(md5(n::text)), 1, 5), substr(upper(md5(n::text)), 6, 4),
       CASE WHEN n % 100 = 7 THEN 'suspended' WHEN n % 100 = 8 THEN 'revoked' WHEN ${expired} THEN 'expired' ELSE 'active' END,
       ${address("customer")}, first_name || ' ' || last_name,
       CASE WHEN kind > 0 THEN ends_at END, CASE WHEN kind = 0 THEN ends_at END,
       CASE WHEN n % 100 = 8 THEN 0 ELSE least(2, ceil((${sizes.devices}::numeric - n + 1) / ${sizes.licenses})) END, 2, 0,
       ${described}, t, t
     FROM generate_series(1, ${sizes.licenses}) n,
       LATERAL (SELECT n % ${sizes.customers} + 1 AS customer) owner, ${personal("customer")},
       LATERAL (SELECT CASE WHEN n % 4 = 3 THEN n % ${soldOf(sizes)} + 1 ELSE 1 END AS product, ${chance("n", 1)} % 4 AS kind) of,
       LATERAL (SELECT ${created("n", sizes.licenses)} AS t,
         ${instant(`now() - interval '1 year' + ${chance("n", 2)} / 2147483648.0 * interval '3 years'`)} AS ends_at) at`
  ],
  [
    "license_features",
    `INSERT INTO license_features (license_id, feature_id, enabled, max_consumptions, total_consumptions, metadata, created_at,
       updated_at)
     SELECT id, replace(product_id, 'prod_', 'feat_'), true, 1000000, 0, ${metadata}, created_at, created_at FROM licenses
     WHERE product_id = '${hotProduct}'`
  ],
  [
    "devices",
    `INSERT INTO devices (id, license_id, binding_kind, binding_key, fingerprint, hostname, os, is_vm, is_container, status,
       holds_slot, activated_at, first_seen_at, last_seen_at, last_validated_at, metadata, created_at, updated_at)
     SELECT ${id("dev", "n")}, ${id("lic", "license")}, 'hardware', 'fp-' || license || '-' || d, 'fp-' || license || '-' || d,
       'host-' || n, 'linux', false, false, CASE WHEN license % 100 = 8 THEN 'deactivated' ELSE 'active' END,
       license % 100 <> 8, t, t, t, t, '{}', t, t
     FROM generate_series(1, ${sizes.devices}) n,
       LATERAL (SELECT (n - 1) % ${sizes.licenses} + 1 AS license, (n - 1) / ${sizes.licenses} AS d, ${created("n", sizes.devices)} AS t) of`
  ]
]

const surroundings = ({ events, licenses, others }: Sizes): ReadonlyArray<Statement> => [
  [
    "api_keys",
    `INSERT INTO api_keys (id, name, key_prefix, token_hash, scopes, allowed_cidrs, is_active, created_at)
     SELECT ${id("key", "n")}, 'Key ' || n, 'lsm_' || substr(md5(n::text), 1, 8), sha256(('token ' || n)::bytea),
       '{license:read}', '{}', n % 500 <> 0, ${created("n", others)}
     FROM generate_series(1, ${others}) n`
  ],
  [
    "report_exports",
    `INSERT INTO report_exports (id, report_kind, format, status, filters, content_type, created_by, product_ids, generated_at, ledger_last, created_at, updated_at)
     SELECT ${id("exp", "n")}, CASE WHEN n % 500 = 0 THEN 'license-audit' ELSE 'usage-summary' END, 'json', CASE WHEN n % 700 = 0 THEN 'failed' ELSE 'completed' END, '{}', 'application/json', 'key_1',
       CASE WHEN n % 3 = 0 THEN ARRAY['${hotProduct}'] END, t, 0, t, t
     FROM generate_series(1, ${others}) n, LATERAL (SELECT ${instant(`now() - (${others} - n) * interval '1 minute'`)} AS t) at`
  ],
  [
    "refusals",
    `INSERT INTO refusals (activity_sequence, occurred_at, action, license_id, device_id, feature_code, code, status_code, request_id)
     SELECT (n - 1) / 20 * 20 * ${Math.floor(events / others)} + n, ${created("n", others)},
       CASE WHEN n % 1000 = 0 THEN 'lease.heartbeat' ELSE 'license.validate' END, ${id("lic", `${chance("n", 4)} % ${licenses} + 1`)},
       ${id("dev", "n")}, CASE WHEN n % 500 = 0 THEN 'rare' END, 'LICENSE_EXPIRED', 403, 'req_refused_' || n
     FROM generate_series(1, ${others}) n`
  ],
  [
    "activity_offsets",
    `INSERT INTO activity_offsets (after_sequence, refusals_total, activity_sequence)
     SELECT n * 20 * ${Math.floor(events / others)}, (n + 1) * 20, n * 20 * ${Math.floor(events / others)} + (n + 1) * 20
     FROM generate_series(0, ${others / 20} - 1) n`
  ],
  [
    "event_spans",
    `INSERT INTO event_spans (first_sequence, last_sequence, first_at, last_at)
     SELECT min(sequence), max(sequence), min(created_at), max(created_at) FROM events
     GROUP BY (sequence - 1) / 4096 HAVING count(*) = 4096`
  ]
]

/** The history that one license accumulates over the years, most of it ended. */
const crowd = ({ crowd, licenses }: Sizes): ReadonlyArray<Statement> => [
  [
    "devices",
    `INSERT INTO devices (id, license_id, binding_kind, binding_key, fingerprint, is_vm, is_container, status, holds_slot,
       activated_at, first_seen_at, last_seen_at, metadata, created_at, updated_at)
     SELECT ${id("dev", "9000000000 + n")}, ${id("lic", "1")}, 'hardware', 'crowd-' || n, 'crowd-' || n, false, false,
       CASE n % 1000 WHEN 0 THEN 'active' WHEN 1 THEN 'blacklisted' WHEN 2 THEN 'expired'
         ELSE CASE n % 2 WHEN 0 THEN 'deactivated' ELSE 'reset' END END, false, NULL, t, t, '{}', t, t
     FROM generate_series(1, ${crowd}) n, LATERAL (SELECT ${created("n", crowd)} AS t) at`
  ],
  [
    "leases",
    `INSERT INTO leases (id, license_id, device_id, token_hash, status, checked_out_at, heartbeat_at, expires_at, ended_at)
     SELECT ${id("lse", "n")}, ${id("lic", "1")}, ${id("dev", "9000000000 + n")}, sha256(('lease ' || n)::bytea),
       CASE WHEN n % 1000 = 0 THEN 'live' ELSE 'checked_in' END, t, t, t + interval '3 years',
       CASE WHEN n % 1000 = 0 THEN NULL ELSE t END
     FROM generate_series(1, ${crowd}) n, LATERAL (SELECT ${created("n", crowd)} AS t) at`
  ],
  [
    "custom_field_values",
    `INSERT INTO custom_field_values (definition_id, license_id, string_value, created_at, updated_at)
     SELECT ${id("cfd", "1")}, ${id("lic", "n")}, 'value ' || n, t, t
     FROM generate_series(1, ${Math.min(crowd, licenses)}) n, LATERAL (SELECT ${created("n", crowd)} AS t) at`
  ],
  [
    "webhook_endpoints",
    `INSERT INTO webhook_endpoints (id, name, url, event_types, is_active, secret_prefix, secret_sealed, created_at, updated_at)
     SELECT ${id("wh", "n")}, 'Endpoint ' || n, 'https://hooks.example.com/' || n, '{}', n % 500 = 0, 'whsec_', '\\x00', t, t
     FROM generate_series(1, ${crowd}) n, LATERAL (SELECT ${created("n", crowd)} AS t) at`
  ]
]
