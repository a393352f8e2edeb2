-- file: 0001_foundation.sql
-- The first rooms: the catalog (products, policies, features, versions), customers and commerce records that licenses link
-- to, licenses with their assignments, devices and leases, the usage ledger, the event log, credentials and signing keys.
-- Every instant is written by the service from its own clock; no column takes its time from the database.

-- Search by a part of a customer's name or e-mail.
CREATE EXTENSION IF NOT EXISTS pg_trgm;

CREATE TABLE products (
  id text PRIMARY KEY,
  name text NOT NULL,
  code text NOT NULL CONSTRAINT products_code_key UNIQUE,
  metadata jsonb NOT NULL,
  -- Rises when a feature or version of the product changes, so that license actors see it at the next use.
  catalog_revision bigint NOT NULL DEFAULT 1,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL
);
CREATE INDEX products_page ON products (created_at DESC, id DESC);

CREATE TABLE policies (
  id text PRIMARY KEY,
  product_id text NOT NULL REFERENCES products,
  name text NOT NULL,
  code text NOT NULL,
  license_type text NOT NULL CHECK (license_type IN ('perpetual', 'time_limited', 'subscription', 'trial', 'consumption')),
  max_activations integer NOT NULL CHECK (max_activations >= 0),
  max_floating_users integer CHECK (max_floating_users >= 0),
  max_container_instances integer CHECK (max_container_instances >= 0),
  floating_timeout_minutes integer NOT NULL CHECK (floating_timeout_minutes >= 1),
  grace_period_days integer NOT NULL CHECK (grace_period_days >= 0),
  validation_interval_minutes integer NOT NULL CHECK (validation_interval_minutes >= 1),
  require_heartbeat boolean NOT NULL,
  allow_offline_activation boolean NOT NULL,
  offline_grace_days integer NOT NULL CHECK (offline_grace_days >= 0),
  allow_vm boolean NOT NULL,
  allow_container boolean NOT NULL,
  max_transfers integer NOT NULL CHECK (max_transfers >= 0),
  metadata jsonb NOT NULL,
  -- Rises with every edit. License commits name the revision that they were decided on; see licenses.revision.
  revision bigint NOT NULL DEFAULT 1,
  -- The policy's share of its licenses' published entitlement_version: rises with edits that the entitlement payload shows.
  entitlement_counter bigint NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  CONSTRAINT policies_code_key UNIQUE (product_id, code)
);
CREATE INDEX policies_page ON policies (product_id, created_at DESC, id DESC);

CREATE TABLE features (
  id text PRIMARY KEY,
  product_id text NOT NULL REFERENCES products,
  name text NOT NULL,
  code text NOT NULL,
  metadata jsonb NOT NULL,
  created_at timestamptz NOT NULL,
  CONSTRAINT features_code_key UNIQUE (product_id, code)
);
CREATE INDEX features_page ON features (product_id, created_at DESC, id DESC);

CREATE TABLE product_versions (
  id text PRIMARY KEY,
  product_id text NOT NULL REFERENCES products,
  version text NOT NULL,
  released_at timestamptz NOT NULL,
  metadata jsonb NOT NULL,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  CONSTRAINT product_versions_version_key UNIQUE (product_id, version)
);
CREATE INDEX product_versions_page ON product_versions (product_id, created_at DESC, id DESC);

CREATE TABLE customers (
  id text PRIMARY KEY,
  name text NOT NULL,
  code text NOT NULL CONSTRAINT customers_code_key UNIQUE,
  email text,
  metadata jsonb NOT NULL,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL
);
CREATE INDEX customers_page ON customers (created_at DESC, id DESC);

CREATE TABLE subscriptions (
  id text PRIMARY KEY,
  product_id text NOT NULL REFERENCES products,
  customer_id text REFERENCES customers,
  external_system text NOT NULL,
  external_id text NOT NULL,
  status text NOT NULL CHECK (status IN ('trialing', 'active', 'past_due', 'paused', 'canceled')),
  current_period_start timestamptz NOT NULL,
  current_period_end timestamptz NOT NULL,
  cancel_at_period_end boolean NOT NULL,
  canceled_at timestamptz,
  metadata jsonb NOT NULL,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  CONSTRAINT subscriptions_external_key UNIQUE (product_id, external_system, external_id),
  CHECK (current_period_end > current_period_start),
  CHECK (canceled_at IS NULL OR status = 'canceled')
);
CREATE INDEX subscriptions_page ON subscriptions (product_id, created_at DESC, id DESC);
CREATE INDEX subscriptions_customer ON subscriptions (customer_id) WHERE customer_id IS NOT NULL;

CREATE TABLE orders (
  id text PRIMARY KEY,
  product_id text NOT NULL REFERENCES products,
  customer_id text REFERENCES customers,
  subscription_id text REFERENCES subscriptions,
  external_system text NOT NULL,
  external_id text NOT NULL,
  status text NOT NULL CHECK (status IN ('pending', 'paid', 'fulfilled', 'canceled', 'refunded')),
  period_start timestamptz,
  period_end timestamptz,
  metadata jsonb NOT NULL,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  CONSTRAINT orders_external_key UNIQUE (product_id, external_system, external_id),
  CHECK ((period_start IS NULL) = (period_end IS NULL))
);
CREATE INDEX orders_page ON orders (product_id, created_at DESC, id DESC);
CREATE INDEX orders_customer ON orders (customer_id) WHERE customer_id IS NOT NULL;
CREATE INDEX orders_subscription ON orders (subscription_id) WHERE subscription_id IS NOT NULL;

CREATE TABLE licenses (
  id text PRIMARY KEY,
  product_id text NOT NULL REFERENCES products,
  policy_id text NOT NULL REFERENCES policies,
  customer_id text REFERENCES customers,
  order_id text REFERENCES orders,
  subscription_id text REFERENCES subscriptions,
  -- SHA-256 of the license key; the key itself is stored nowhere.
  key_hash bytea NOT NULL CONSTRAINT licenses_key_hash_key UNIQUE,
  license_key_prefix text NOT NULL,
  license_key_last4 text NOT NULL,
  -- The state as last written. What time has changed since is applied whenever the license is read.
  status text NOT NULL CHECK (status IN ('active', 'suspended', 'expired', 'revoked', 'grace_period')),
  customer_email text,
  customer_name text,
  starts_at timestamptz,
  expires_at timestamptz,
  maintenance_expires_at timestamptz,
  active_device_count integer NOT NULL DEFAULT 0 CHECK (active_device_count >= 0),
  times_activated integer NOT NULL DEFAULT 0,
  times_transferred integer NOT NULL DEFAULT 0,
  total_consumptions bigint NOT NULL DEFAULT 0,
  entitlement_counter bigint NOT NULL DEFAULT 1,
  metadata jsonb NOT NULL,
  -- The fence: every change of the license, its assignments, devices or leases raises it and names the one it was decided on.
  revision bigint NOT NULL DEFAULT 1,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL
) WITH (fillfactor = 80);
CREATE INDEX licenses_page ON licenses (created_at DESC, id DESC);
CREATE INDEX licenses_product_page ON licenses (product_id, created_at DESC, id DESC);
CREATE INDEX licenses_policy_page ON licenses (policy_id, created_at DESC, id DESC);
CREATE INDEX licenses_customer_page ON licenses (customer_id, created_at DESC, id DESC) WHERE customer_id IS NOT NULL;
CREATE INDEX licenses_order_page ON licenses (order_id, created_at DESC, id DESC) WHERE order_id IS NOT NULL;
CREATE INDEX licenses_subscription_page ON licenses (subscription_id, created_at DESC, id DESC) WHERE subscription_id IS NOT NULL;
CREATE INDEX licenses_status_page ON licenses (status, created_at DESC, id DESC);
CREATE INDEX licenses_expiry ON licenses (expires_at, id) WHERE expires_at IS NOT NULL;
CREATE INDEX licenses_search ON licenses
  USING gin (lower(coalesce(customer_name, '') || ' ' || coalesce(customer_email, '')) gin_trgm_ops);
CREATE INDEX licenses_last4_page ON licenses (license_key_last4, created_at DESC, id DESC);

CREATE TABLE license_features (
  license_id text NOT NULL REFERENCES licenses,
  feature_id text NOT NULL REFERENCES features,
  enabled boolean NOT NULL,
  max_consumptions bigint CHECK (max_consumptions >= 0),
  total_consumptions bigint NOT NULL DEFAULT 0 CHECK (total_consumptions >= 0),
  expires_at timestamptz,
  metadata jsonb NOT NULL,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  PRIMARY KEY (license_id, feature_id)
) WITH (fillfactor = 80);
CREATE INDEX license_features_feature ON license_features (feature_id);

CREATE TABLE devices (
  id text PRIMARY KEY,
  license_id text NOT NULL REFERENCES licenses,
  binding_kind text NOT NULL CHECK (binding_kind IN ('hardware', 'container')),
  binding_key text NOT NULL,
  fingerprint text,
  hostname text,
  os text,
  ip_address text,
  container_id text,
  cluster_id text,
  namespace text,
  pod_name text,
  is_vm boolean NOT NULL,
  is_container boolean NOT NULL,
  status text NOT NULL CHECK (status IN ('active', 'deactivated', 'blacklisted', 'reset', 'expired')),
  -- Whether the device holds an activation slot; the holder of a floating lease is active without one.
  holds_slot boolean NOT NULL,
  activated_at timestamptz,
  first_seen_at timestamptz NOT NULL,
  last_seen_at timestamptz NOT NULL,
  last_validated_at timestamptz,
  metadata jsonb NOT NULL,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL
) WITH (fillfactor = 80);
-- A fingerprint has at most 512 characters, so the entry stays below the 2,704 bytes that a B-tree takes.
CREATE UNIQUE INDEX devices_binding_key ON devices (license_id, binding_kind, binding_key);
CREATE INDEX devices_page ON devices (license_id, created_at DESC, id DESC);
CREATE INDEX devices_status_page ON devices (license_id, status, created_at DESC, id DESC);

CREATE TABLE leases (
  id text PRIMARY KEY,
  license_id text NOT NULL REFERENCES licenses,
  device_id text NOT NULL REFERENCES devices,
  -- SHA-256 of the lease token; the token itself is stored nowhere.
  token_hash bytea NOT NULL CONSTRAINT leases_token_hash_key UNIQUE,
  status text NOT NULL CHECK (status IN ('live', 'checked_in', 'superseded', 'expired', 'ended', 'blacklisted')),
  checked_out_at timestamptz NOT NULL,
  heartbeat_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  ended_at timestamptz
) WITH (fillfactor = 80);
CREATE INDEX leases_live ON leases (license_id, expires_at) WHERE status = 'live';
CREATE UNIQUE INDEX leases_device_live ON leases (device_id) WHERE status = 'live';
CREATE INDEX leases_page ON leases (license_id, checked_out_at DESC, id DESC);

CREATE TABLE usage_ledger (
  -- Gapless and commit-ordered, from the same counter row as the events.
  sequence bigint PRIMARY KEY,
  license_id text NOT NULL,
  feature_id text NOT NULL,
  action text NOT NULL CHECK (action IN ('consume', 'reset', 'top_up', 'set_limit')),
  -- The caller's id of a consumption, unique per license for ever; absent on the other actions.
  event_id text,
  amount bigint NOT NULL,
  balance_after bigint NOT NULL,
  max_after bigint,
  device_id text,
  actor_type text NOT NULL,
  actor_id text NOT NULL,
  request_id text NOT NULL,
  occurred_at timestamptz NOT NULL
);
CREATE UNIQUE INDEX usage_ledger_event_id ON usage_ledger (license_id, event_id) WHERE event_id IS NOT NULL;

-- One row, locked last in every transaction that appends events: it makes both sequences gapless and commit-ordered.
CREATE TABLE event_sequence (
  "only" boolean PRIMARY KEY DEFAULT true CHECK ("only"),
  last bigint NOT NULL,
  ledger_last bigint NOT NULL
) WITH (fillfactor = 10);
INSERT INTO event_sequence (last, ledger_last) VALUES (0, 0);

CREATE TABLE events (
  sequence bigint PRIMARY KEY,
  event_type text NOT NULL,
  actor_type text NOT NULL CHECK (actor_type IN ('api_key', 'license', 'oidc_subject', 'system')),
  actor_id text NOT NULL,
  resource_type text NOT NULL,
  resource_id text,
  ip_address text,
  metadata jsonb NOT NULL,
  created_at timestamptz NOT NULL
);
CREATE INDEX events_type ON events (event_type, sequence DESC);
CREATE INDEX events_resource ON events (resource_id, sequence DESC);
CREATE INDEX events_resource_type ON events (resource_type, sequence DESC);
CREATE INDEX events_actor_type ON events (actor_type, sequence DESC);

CREATE TABLE api_keys (
  id text PRIMARY KEY,
  name text NOT NULL,
  key_prefix text NOT NULL,
  -- SHA-256 of the token; the token itself is stored nowhere.
  token_hash bytea NOT NULL CONSTRAINT api_keys_token_hash_key UNIQUE,
  scopes text[] NOT NULL,
  allowed_cidrs text[] NOT NULL,
  is_active boolean NOT NULL,
  expires_at timestamptz,
  last_used_at timestamptz,
  revoked_at timestamptz,
  created_at timestamptz NOT NULL
);
CREATE INDEX api_keys_page ON api_keys (created_at DESC, id DESC) WHERE revoked_at IS NULL;

CREATE TABLE signing_keys (
  kid text PRIMARY KEY,
  algorithm text NOT NULL,
  public_key bytea NOT NULL,
  private_key_sealed bytea NOT NULL,
  status text NOT NULL CHECK (status IN ('active', 'retired')),
  created_at timestamptz NOT NULL,
  retired_at timestamptz
);
CREATE UNIQUE INDEX signing_keys_active ON signing_keys (status) WHERE status = 'active';
-- file: 0002_custom_fields.sql
-- Custom fields of licenses and customers, the one mark of the first admin token, and indexes for list filters.

-- The first key ever made, whose token an operator may have chosen: only its text may lack the shape of our own tokens.
ALTER TABLE api_keys ADD COLUMN is_bootstrap boolean NOT NULL DEFAULT false;
CREATE UNIQUE INDEX api_keys_bootstrap ON api_keys (is_bootstrap) WHERE is_bootstrap;

CREATE TABLE custom_field_definitions (
  id text PRIMARY KEY,
  product_id text NOT NULL REFERENCES products,
  resource_type text NOT NULL CHECK (resource_type IN ('license', 'customer')),
  code text NOT NULL,
  name text NOT NULL,
  value_type text NOT NULL CHECK (value_type IN ('string', 'integer', 'boolean', 'datetime', 'enum')),
  is_required boolean NOT NULL,
  enum_options text[] NOT NULL,
  metadata jsonb NOT NULL,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  CONSTRAINT custom_field_definitions_code_key UNIQUE (product_id, resource_type, code),
  CHECK ((value_type = 'enum') = (cardinality(enum_options) > 0))
);
CREATE INDEX custom_field_definitions_page ON custom_field_definitions (product_id, created_at DESC, id DESC);

-- One row for each value that is set, in the column of its type.
CREATE TABLE custom_field_values (
  definition_id text NOT NULL REFERENCES custom_field_definitions,
  license_id text REFERENCES licenses,
  customer_id text REFERENCES customers ON DELETE CASCADE,
  string_value text,
  integer_value bigint,
  boolean_value boolean,
  datetime_value timestamptz,
  enum_value text,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  CHECK (num_nonnulls(license_id, customer_id) = 1),
  CHECK (num_nonnulls(string_value, integer_value, boolean_value, datetime_value, enum_value) = 1)
);
CREATE UNIQUE INDEX custom_field_values_license ON custom_field_values (license_id, definition_id)
  WHERE license_id IS NOT NULL;
CREATE UNIQUE INDEX custom_field_values_customer ON custom_field_values (customer_id, definition_id)
  WHERE customer_id IS NOT NULL;
CREATE INDEX custom_field_values_license_page ON custom_field_values (license_id, created_at DESC, definition_id DESC)
  WHERE license_id IS NOT NULL;
CREATE INDEX custom_field_values_customer_page ON custom_field_values (customer_id, created_at DESC, definition_id DESC)
  WHERE customer_id IS NOT NULL;
-- Whether a definition, or one of its options, is in use.
CREATE INDEX custom_field_values_definition ON custom_field_values (definition_id, enum_value);

-- List filters of the first tables, each with the list's order.
CREATE INDEX customers_email_page ON customers (email, created_at DESC, id DESC) WHERE email IS NOT NULL;

DROP INDEX subscriptions_customer;
CREATE INDEX subscriptions_customer_page ON subscriptions (customer_id, created_at DESC, id DESC)
  WHERE customer_id IS NOT NULL;
CREATE INDEX subscriptions_status_page ON subscriptions (product_id, status, created_at DESC, id DESC);
CREATE INDEX subscriptions_system_page ON subscriptions (product_id, external_system, created_at DESC, id DESC);
CREATE INDEX subscriptions_external_page ON subscriptions (product_id, external_id, created_at DESC, id DESC);

DROP INDEX orders_customer;
DROP INDEX orders_subscription;
CREATE INDEX orders_customer_page ON orders (customer_id, created_at DESC, id DESC) WHERE customer_id IS NOT NULL;
CREATE INDEX orders_subscription_page ON orders (subscription_id, created_at DESC, id DESC)
  WHERE subscription_id IS NOT NULL;
CREATE INDEX orders_status_page ON orders (product_id, status, created_at DESC, id DESC);
CREATE INDEX orders_system_page ON orders (product_id, external_system, created_at DESC, id DESC);
CREATE INDEX orders_external_page ON orders (product_id, external_id, created_at DESC, id DESC);
-- file: 0003_sweeps.sql
-- How sweeps find what time has changed: each by a range of an index that holds nothing else, so that a pass with nothing to do
-- costs nothing, however many licenses, devices and leases there are.

ALTER TABLE licenses
  -- The expiry date that license.expiring was last recorded for, and the days before it: an edited date begins anew.
  ADD COLUMN expiring_for timestamptz,
  ADD COLUMN expiring_days smallint,
  -- No device of the license that holds a slot was heard of before this instant; NULL = since the license was made. A lower
  -- bound, moved by the heartbeat sweep alone, so that it looks at a license once in a validation interval.
  ADD COLUMN heartbeat_from timestamptz;

-- Sweeps look for what was hardly there when statistics were made, so estimates are no guide to them. Each index is on
-- expressions that no other index has, and the sweep's conditions are on these alone: no plan can choose another one. (With
-- plain columns 100,000 licenses that expired at once took 71 seconds instead of 19.)

-- What the clock moves, by policy, for grace is the policy's.
CREATE INDEX licenses_clock ON licenses ((policy_id || ' ' || status), (expires_at AT TIME ZONE 'UTC'))
  WHERE expires_at IS NOT NULL;

-- Active licenses by the notice that was given last for the date that holds; 8 = none.
CREATE INDEX licenses_expiring ON licenses (
  (CASE WHEN status <> 'active' THEN NULL WHEN expiring_for = expires_at THEN expiring_days ELSE 8 END),
  (expires_at AT TIME ZONE 'UTC')
) WHERE expires_at IS NOT NULL;

CREATE INDEX licenses_heartbeat ON licenses ((policy_id || ''), (coalesce(heartbeat_from, created_at)));

CREATE INDEX leases_lapse ON leases (expires_at, id) WHERE status = 'live';
-- file: 0004_idempotency.sql
-- The first answers of requests that carried an Idempotency-Key, replayed when the request is repeated. A row is written in
-- the transaction of the change that it answers for.
CREATE TABLE idempotent_answers (
  -- SHA-256 over credential, method, path and key; for renewals over the license and the key alone.
  scope bytea PRIMARY KEY,
  -- SHA-256 over the request's body: the same key with another body is refused.
  body_hash bytea NOT NULL,
  status smallint NOT NULL,
  content_type text,
  -- Sealed under the master key, for an answer may show a secret; a renewal's shows none and stands as it was sent.
  body bytea NOT NULL,
  sealed boolean NOT NULL,
  -- NULL: kept for ever (renewals).
  expires_at timestamptz,
  created_at timestamptz NOT NULL
);
CREATE INDEX idempotent_answers_expiry ON idempotent_answers (expires_at) WHERE expires_at IS NOT NULL;
-- file: 0005_webhooks.sql
-- Webhook endpoints, and a row for every delivery that is owed to one. Rows are written in the transaction of their event.

-- Rises with every change of which endpoint takes which events. It stands in the row that appending transactions lock, so
-- each of them can tell whether the endpoints that it has seen are still those that count.
ALTER TABLE event_sequence ADD COLUMN webhooks_revision bigint NOT NULL DEFAULT 1;

CREATE TABLE webhook_endpoints (
  id text PRIMARY KEY,
  name text NOT NULL,
  url text NOT NULL,
  -- Names of events, or noun.* for all of a noun; empty = all.
  event_types text[] NOT NULL,
  is_active boolean NOT NULL,
  -- Why the service has switched it off by itself: the receiver said 410, or deliveries were given up in a row.
  disabled_reason text CHECK (disabled_reason IN ('gone', 'exhausted')),
  secret_prefix text NOT NULL,
  -- Sealed under the master key, and so is the one before, which signs too until its time is over.
  secret_sealed bytea NOT NULL,
  previous_secret_sealed bytea,
  previous_secret_until timestamptz,
  -- Rises with every edit, so that nodes know when what they hold in memory is old.
  revision bigint NOT NULL DEFAULT 1,
  exhausted_in_a_row integer NOT NULL DEFAULT 0,
  last_success_at timestamptz,
  last_failure_at timestamptz,
  last_failure text,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL
) WITH (fillfactor = 50);
CREATE INDEX webhook_endpoints_page ON webhook_endpoints (created_at DESC, id DESC);
CREATE INDEX webhook_endpoints_active ON webhook_endpoints (id) WHERE is_active;

CREATE TABLE webhook_deliveries (
  -- No foreign keys: they would lock an endpoint's row for each delivery. What a deleted endpoint leaves is swept away.
  endpoint_id text NOT NULL,
  sequence bigint NOT NULL,
  status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'delivered', 'exhausted')),
  -- Attempts that have ended.
  attempts smallint NOT NULL DEFAULT 0,
  due_at timestamptz NOT NULL,
  -- A node is at it until then; no index holds this, so that taking a delivery rewrites no index.
  leased_until timestamptz,
  created_at timestamptz NOT NULL,
  finished_at timestamptz,
  PRIMARY KEY (endpoint_id, sequence)
) WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.05);
-- What is due next, endpoint by endpoint: a long queue of one is never read through for another.
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (endpoint_id, due_at, sequence) WHERE status = 'pending';

-- How deliveries went, ten minutes at a time, so that no report counts rows.
CREATE TABLE webhook_delivery_counts (
  endpoint_id text NOT NULL,
  period timestamptz NOT NULL,
  delivered bigint NOT NULL,
  -- Attempts that failed, the last ones of exhausted deliveries included.
  failed bigint NOT NULL,
  exhausted bigint NOT NULL,
  PRIMARY KEY (endpoint_id, period)
) WITH (fillfactor = 50);
-- file: 0006_kept_counts.sql
-- How many licenses, devices, products and customers there are, kept while they change, so that no dashboard counts rows.
-- A change appends what it adds or takes away and touches no row that another transaction could wait for; whoever reads sums
-- up, and now and then one row takes the place of many.

CREATE TABLE kept_counts (
  -- The table's name; behind a dot the status, where rows have one.
  name text NOT NULL,
  delta bigint NOT NULL
);

CREATE FUNCTION keep_count() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO kept_counts VALUES (TG_TABLE_NAME, CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END);
  RETURN NULL;
END $$;

CREATE FUNCTION keep_status_count() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP <> 'INSERT' THEN INSERT INTO kept_counts VALUES (TG_TABLE_NAME || '.' || OLD.status, -1); END IF;
  IF TG_OP <> 'DELETE' THEN INSERT INTO kept_counts VALUES (TG_TABLE_NAME || '.' || NEW.status, 1); END IF;
  RETURN NULL;
END $$;

CREATE TRIGGER products_counted AFTER INSERT OR DELETE ON products FOR EACH ROW EXECUTE FUNCTION keep_count();
CREATE TRIGGER customers_counted AFTER INSERT OR DELETE ON customers FOR EACH ROW EXECUTE FUNCTION keep_count();
CREATE TRIGGER licenses_counted AFTER INSERT OR DELETE ON licenses FOR EACH ROW EXECUTE FUNCTION keep_status_count();
CREATE TRIGGER devices_counted AFTER INSERT OR DELETE ON devices FOR EACH ROW EXECUTE FUNCTION keep_status_count();
-- A group commit writes the status of every license in it; only where it changes is there anything to do.
CREATE TRIGGER licenses_recounted AFTER UPDATE OF status ON licenses
  FOR EACH ROW WHEN (OLD.status IS DISTINCT FROM NEW.status) EXECUTE FUNCTION keep_status_count();
CREATE TRIGGER devices_recounted AFTER UPDATE OF status ON devices
  FOR EACH ROW WHEN (OLD.status IS DISTINCT FROM NEW.status) EXECUTE FUNCTION keep_status_count();

INSERT INTO kept_counts SELECT 'products', count(*) FROM products;
INSERT INTO kept_counts SELECT 'customers', count(*) FROM customers;
INSERT INTO kept_counts SELECT 'licenses.' || status, count(*) FROM licenses GROUP BY status;
INSERT INTO kept_counts SELECT 'devices.' || status, count(*) FROM devices GROUP BY status;
-- file: 0007_reports.sql
-- What reports read the usage ledger by: a license's rows in their order, and periods of time over all licenses. Rows are
-- appended as time goes on, so a few entries for each range of pages tell which of them a period lies in.
CREATE INDEX usage_ledger_license ON usage_ledger (license_id, sequence);
CREATE INDEX usage_ledger_time ON usage_ledger USING brin (occurred_at) WITH (pages_per_range = 32, autosummarize = on);

-- Exports of reports: what was asked for, how far it is, and the bytes, which never change once they are complete.
CREATE TABLE report_exports (
  id text PRIMARY KEY,
  report_kind text NOT NULL,
  format text NOT NULL CHECK (format IN ('json', 'csv', 'pdf')),
  status text NOT NULL CHECK (status IN ('pending', 'processing', 'completed', 'failed')),
  filters jsonb NOT NULL,
  -- SHA-256 of the canonical JSON of the figures, and of the file; empty until it is complete.
  digest text NOT NULL DEFAULT '',
  artifact_digest text NOT NULL DEFAULT '',
  content_type text NOT NULL,
  size_bytes bigint,
  -- Why it failed, in a sentence for who asked.
  failure text,
  created_by text NOT NULL,
  -- The moment that the figures are of, and for the ledger its last row at that moment.
  generated_at timestamptz NOT NULL,
  ledger_last bigint NOT NULL,
  -- The row of the ledger up to which chunks are written: where whoever goes on begins.
  collected bigint NOT NULL DEFAULT 0,
  rows_done bigint NOT NULL DEFAULT 0,
  chunks_done integer NOT NULL DEFAULT 0,
  attempts smallint NOT NULL DEFAULT 0,
  -- A node is at it until then.
  leased_until timestamptz,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL
);
CREATE INDEX report_exports_waiting ON report_exports (created_at, id) WHERE status IN ('pending', 'processing');
CREATE INDEX report_exports_age ON report_exports (created_at);

CREATE TABLE report_export_chunks (
  export_id text NOT NULL REFERENCES report_exports ON DELETE CASCADE,
  -- The figures as canonical JSON, or the file where that is something else.
  part text NOT NULL CHECK (part IN ('snapshot', 'artifact')),
  ordinal integer NOT NULL,
  bytes bytea NOT NULL,
  PRIMARY KEY (export_id, part, ordinal)
);
-- file: 0008_list_filters.sql
-- Filters of lists that were served by reading the whole list: each with the list's order.
CREATE INDEX api_keys_active_page ON api_keys (is_active, created_at DESC, id DESC) WHERE revoked_at IS NULL;
CREATE INDEX webhook_endpoints_active_page ON webhook_endpoints (is_active, created_at DESC, id DESC);
-- file: 0009_activities.sql
-- The activities feed and the counts of validations. What changed is told by the events already; here are the runtime calls that
-- were refused, and what numbers both in one order without touching how events are written.

-- Refusals that were written so far. It stands in the row that appending transactions lock, so that every refusal has its place
-- between two events.
ALTER TABLE event_sequence ADD COLUMN refusals_last bigint NOT NULL DEFAULT 0;

-- Runtime calls that were refused after their license was known. No key, no token, no binding: devices stand by their ids.
CREATE TABLE refusals (
  -- The place in the feed: the last event before it, plus the refusals up to it.
  activity_sequence bigint PRIMARY KEY,
  occurred_at timestamptz NOT NULL,
  action text NOT NULL,
  -- No foreign keys: they would lock a license's row for each refusal.
  license_id text NOT NULL,
  device_id text,
  feature_code text,
  code text NOT NULL,
  status_code smallint NOT NULL,
  request_id text NOT NULL,
  ip_address text
);
CREATE INDEX refusals_license ON refusals (license_id, activity_sequence DESC);
CREATE INDEX refusals_action ON refusals (action, activity_sequence DESC);
CREATE INDEX refusals_request ON refusals (request_id, activity_sequence DESC);
CREATE INDEX refusals_age ON refusals (occurred_at);

-- Where refusals came in between events: an event's place in the feed is its own sequence number plus the refusals_total of the
-- last row before it. Rows are for ever, as events are; refusals themselves may be removed.
CREATE TABLE activity_offsets (
  -- The last event before these refusals.
  after_sequence bigint PRIMARY KEY,
  refusals_total bigint NOT NULL,
  -- The place of the last of these refusals: after_sequence + refusals_total.
  activity_sequence bigint NOT NULL CONSTRAINT activity_offsets_activity_key UNIQUE
);

-- Which times lie in which stretch of the events, so that a period is found without an index that every event would pay for.
CREATE TABLE event_spans (
  last_sequence bigint PRIMARY KEY,
  first_sequence bigint NOT NULL,
  first_at timestamptz NOT NULL,
  last_at timestamptz NOT NULL
);

-- The events of a license whose resource is one of its devices or leases.
CREATE INDEX events_of_license ON events ((metadata ->> 'license_id'), sequence DESC)
  WHERE resource_type IN ('device', 'lease');

-- How often each license was validated, by the hour.
CREATE TABLE license_validations (
  license_id text NOT NULL,
  -- The beginning of the hour.
  hour timestamptz NOT NULL,
  validations bigint NOT NULL,
  refused bigint NOT NULL,
  PRIMARY KEY (license_id, hour)
) WITH (fillfactor = 80);
CREATE INDEX license_validations_age ON license_validations (hour);

-- The last batch that each writer has handed over, so that a batch whose commit was not heard of is not written twice.
CREATE TABLE handovers (
  writer text PRIMARY KEY,
  batch bigint NOT NULL,
  written_at timestamptz NOT NULL
);
-- file: 0010_export_chunks.sql
-- Chunks of exports are written once and soon read or deleted. Compressing them took the server longer than everything else
-- that an export costs it (16 of 25 microseconds a row of the ledger).
ALTER TABLE report_export_chunks ALTER COLUMN bytes SET STORAGE EXTERNAL;
-- file: 0011_license_lists.sql
-- What the license list finds by its q and by its states, however many licenses there are.

-- What q is looked for in. The server's own lower() stands on both sides, so that both agree whatever its locale knows of letters.
CREATE FUNCTION search_text(customer_name text, customer_email text) RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT lower(coalesce(customer_name, '') || ' ' || coalesce(customer_email, ''))
$$;

-- The four characters at every place of a text, and at its end the rest: any part of it begins some of them. A part of up to
-- four characters is one look-up, a longer one a few, and letters of every alphabet count alike. The text is cut up from its
-- first, second, third and fourth character on: by far the fastest way that one expression can say it, 20 µs.
CREATE FUNCTION search_grams(content text) RETURNS tsvector
  LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT array_to_tsvector(array_remove(string_to_array(
    regexp_replace(content, '(.{4})', E'\\1\x01', 'g') || E'\x01' ||
    regexp_replace(substr(content, 2), '(.{4})', E'\\1\x01', 'g') || E'\x01' ||
    regexp_replace(substr(content, 3), '(.{4})', E'\\1\x01', 'g') || E'\x01' ||
    regexp_replace(substr(content, 4), '(.{4})', E'\\1\x01', 'g'), E'\x01'), ''))
$$;

-- The grams that a text has wherever it holds this part; of a part that is shorter than a gram, those that it begins.
CREATE FUNCTION search_query(part text) RETURNS tsquery
  LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT coalesce(string_agg(
    '''' || replace(replace(substr(part, least(n, greatest(length(part) - 3, 1)), 4), '\', '\\'), '''', '''''')
      || CASE WHEN length(part) < 4 THEN ''':*' ELSE '''' END, ' & '
  ), '')::tsquery
  FROM generate_series(1, length(part), 4) AS n
$$;

-- Without a list of additions that every search would have to read: those of one license take 0.1 ms to put in their places.
DROP INDEX licenses_search;
CREATE INDEX licenses_search ON licenses USING gin (search_grams(search_text(customer_name, customer_email)))
  WITH (fastupdate = off);

-- Licenses that are written down as past their expiry, by their expiry: those that are not past it any more are at its end.
CREATE INDEX licenses_past ON licenses (
  (CASE WHEN status IN ('grace_period', 'expired') THEN expires_at AT TIME ZONE 'UTC' END)
) WHERE status IN ('grace_period', 'expired');

ANALYZE licenses;
-- file: 0012_group_commits.sql
-- What lets a whole group commit travel in one write, with nobody between its statements to look at their answers.

-- Lets the statement, and with it the transaction, fail where something that the writer relied on does not hold.
CREATE FUNCTION demand(holds boolean, state text, message text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  IF holds THEN RETURN true; END IF;
  RAISE EXCEPTION USING ERRCODE = state, MESSAGE = message;
END $$;

-- The number of the last group that each journal has committed, written with the group. Should the connection be lost while a
-- group is being committed, this tells whether it was.
CREATE TABLE journals (
  id text PRIMARY KEY,
  last_group bigint NOT NULL,
  written_at timestamptz NOT NULL
) WITH (fillfactor = 10);
-- file: 0013_usage_rollup.sql
-- Sums of the usage ledger by hours and days of UTC, so that a summary of a month need not read every row of the month. A worker
-- writes them behind the ledger; what appends to the ledger knows nothing of them.
CREATE TABLE usage_rollup (
  unit text NOT NULL CHECK (unit IN ('hour', 'day')),
  bucket_start timestamptz NOT NULL,
  product_id text NOT NULL,
  -- Empty: all features together, for a license that used two of them is one license.
  feature_id text NOT NULL,
  -- Sums of int64 have no bounds.
  consumed numeric NOT NULL,
  consumptions bigint NOT NULL,
  reset numeric NOT NULL,
  topped_up numeric NOT NULL,
  licenses bigint NOT NULL,
  PRIMARY KEY (product_id, unit, bucket_start, feature_id)
);
CREATE INDEX usage_rollup_time ON usage_rollup (unit, bucket_start);

-- How far the ledger has been looked through.
CREATE TABLE usage_rollup_progress (
  "only" boolean PRIMARY KEY DEFAULT true CHECK ("only"),
  sequence bigint NOT NULL
) WITH (fillfactor = 10);
INSERT INTO usage_rollup_progress (sequence) VALUES (0);

-- The days that rows of the ledger lie in, of those rows that have been looked through. A day whose numbers differ is read from
-- the ledger.
CREATE TABLE usage_rollup_days (
  day timestamptz PRIMARY KEY,
  ledger_rows bigint NOT NULL,
  -- How many of them the sums are of.
  rolled_rows bigint NOT NULL DEFAULT 0,
  -- When the newest of them was seen.
  seen_at timestamptz NOT NULL
) WITH (fillfactor = 50);
CREATE INDEX usage_rollup_days_open ON usage_rollup_days (day) WHERE rolled_rows <> ledger_rows;
-- file: 0014_cheaper_writes.sql
-- A heartbeat moves the end of a lease, which no index holds any more: the row's next version goes beside it in its page, and no
-- index is written.

-- The lease does not end before this instant; NULL = since it was checked out. A lower bound that heartbeats leave alone. The
-- sweep moves it when it comes to a lease that lives on, so that it looks at a lease once in a timeout.
ALTER TABLE leases ADD COLUMN sweep_at timestamptz;
UPDATE leases SET sweep_at = expires_at WHERE status = 'live';

CREATE INDEX leases_sweep ON leases ((coalesce(sweep_at, checked_out_at)), id) WHERE status = 'live';
DROP INDEX leases_lapse;

-- When the next lease of a license may end.
DROP INDEX leases_live;
CREATE INDEX leases_live ON leases (license_id, (coalesce(sweep_at, checked_out_at))) WHERE status = 'live';

-- Leases are listed while they live, and only then.
CREATE INDEX leases_live_page ON leases (license_id, checked_out_at DESC, id DESC) WHERE status = 'live';
DROP INDEX leases_page;

-- Room for the versions of a lease that is checked out, heard of and given back within a moment.
ALTER TABLE leases SET (fillfactor = 50);

-- Keys that end with a sequence number occur once. Looking for equal ones before each split of a page is in vain.
ALTER INDEX events_actor_type SET (deduplicate_items = off);
ALTER INDEX events_of_license SET (deduplicate_items = off);
ALTER INDEX events_resource SET (deduplicate_items = off);
ALTER INDEX events_resource_type SET (deduplicate_items = off);
ALTER INDEX events_type SET (deduplicate_items = off);
ALTER INDEX usage_ledger_license SET (deduplicate_items = off);
-- file: 0015_ledger_events.sql
-- A consumption is written once: its row of the ledger is its event, too. What was an event of its own before stays one, and so
-- do resets and credits.

-- The event's number, what the feature was called then (codes change, features go), and where the request came from. NULL in rows
-- whose event stands in event_log. What the view below says of each of these events is held by the constraint. No query of the
-- version before knows another column by these names.
ALTER TABLE usage_ledger
  ADD COLUMN event_sequence bigint,
  ADD COLUMN event_feature_code text,
  ADD COLUMN event_ip_address text,
  ADD CONSTRAINT usage_ledger_event_check CHECK (event_sequence IS NULL OR (action = 'consume' AND actor_type = 'license'
    AND event_feature_code IS NOT NULL AND event_id IS NOT NULL AND device_id IS NOT NULL));

CREATE UNIQUE INDEX usage_ledger_event ON usage_ledger (event_sequence) WITH (deduplicate_items = off)
  WHERE event_sequence IS NOT NULL;
CREATE UNIQUE INDEX usage_ledger_license_event ON usage_ledger (license_id, event_sequence) WITH (deduplicate_items = off)
  WHERE event_sequence IS NOT NULL;

-- The events that are written as such. `events` is all of them: readers of this version and of the one before find there what they
-- have always found.
ALTER TABLE events RENAME TO event_log;

-- The condition is outside of UNION ALL, where it does not keep the two from being read in the order of their indexes.
CREATE VIEW events AS
SELECT sequence, event_type, actor_type, actor_id, resource_type, resource_id, ip_address, metadata, created_at
FROM (
  SELECT sequence, event_type, actor_type, actor_id, resource_type, resource_id, ip_address, metadata, created_at
  FROM event_log
  UNION ALL
  SELECT event_sequence AS sequence, 'usage.consumed' AS event_type, 'license' AS actor_type, actor_id,
    'license' AS resource_type, license_id AS resource_id, event_ip_address AS ip_address,
    jsonb_strip_nulls(jsonb_build_object('feature_id', feature_id, 'feature_code', event_feature_code, 'amount', amount,
      'event_id', event_id, 'balance_after', balance_after, 'max_after', max_after, 'device_id', device_id,
      'request_id', request_id)) AS metadata,
    occurred_at AS created_at
  FROM usage_ledger
) AS event
WHERE sequence IS NOT NULL;

-- Nodes of the version before write all events here. Nobody else does.
CREATE FUNCTION append_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO event_log (sequence, event_type, actor_type, actor_id, resource_type, resource_id, ip_address, metadata, created_at)
  VALUES (NEW.sequence, NEW.event_type, NEW.actor_type, NEW.actor_id, NEW.resource_type, NEW.resource_id, NEW.ip_address,
    NEW.metadata, NEW.created_at);
  RETURN NEW;
END $$;
CREATE TRIGGER events_appended INSTEAD OF INSERT ON events FOR EACH ROW EXECUTE FUNCTION append_event();
-- file: 0016_license_states.sql
-- A change of a license's state writes no index of licenses any more, so the row's next version goes beside the one before in its
-- page, and none of the other indexes, the one of names among them, gets an entry either. What finds licenses by their state is a
-- table of its own: narrow rows, and few indexes.

CREATE TABLE license_states (
  status text NOT NULL,
  created_at timestamptz NOT NULL,
  license_id text NOT NULL,
  policy_id text NOT NULL,
  expires_at timestamptz,
  -- Of an active license that ends: the days of the notice that was given last for the date that holds; 8 = none.
  notice smallint,
  -- The licenses of a state, in the order in which licenses are listed.
  PRIMARY KEY (status, created_at, license_id)
);

-- The notice of a license that was given last, as above.
CREATE FUNCTION license_notice(status text, expires_at timestamptz, expiring_for timestamptz, expiring_days smallint)
  RETURNS smallint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN status <> 'active' OR expires_at IS NULL THEN NULL
    WHEN expiring_for = expires_at THEN expiring_days ELSE 8 END
$$;

-- Whatever writes a license keeps its row there, and the counts, within the same statement. A sweep that moves very many does both
-- by itself, for all of a batch at once, and says so by a setting of its transaction.
CREATE FUNCTION keep_license_state() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP <> 'INSERT' AND (TG_OP = 'DELETE' OR OLD.status <> NEW.status) THEN
    INSERT INTO kept_counts VALUES ('licenses.' || OLD.status, -1);
  END IF;
  IF TG_OP <> 'DELETE' AND (TG_OP = 'INSERT' OR OLD.status <> NEW.status) THEN
    INSERT INTO kept_counts VALUES ('licenses.' || NEW.status, 1);
  END IF;
  IF TG_OP = 'UPDATE' THEN
    UPDATE license_states SET status = NEW.status, created_at = NEW.created_at, license_id = NEW.id, policy_id = NEW.policy_id,
      expires_at = NEW.expires_at,
      notice = license_notice(NEW.status, NEW.expires_at, NEW.expiring_for, NEW.expiring_days)
    WHERE status = OLD.status AND created_at = OLD.created_at AND license_id = OLD.id;
  ELSIF TG_OP = 'DELETE' THEN
    DELETE FROM license_states WHERE status = OLD.status AND created_at = OLD.created_at AND license_id = OLD.id;
  ELSE
    INSERT INTO license_states VALUES (NEW.status, NEW.created_at, NEW.id, NEW.policy_id, NEW.expires_at,
      license_notice(NEW.status, NEW.expires_at, NEW.expiring_for, NEW.expiring_days));
  END IF;
  RETURN NULL;
END $$;

DROP TRIGGER licenses_counted ON licenses;
DROP TRIGGER licenses_recounted ON licenses;
CREATE TRIGGER licenses_state AFTER INSERT OR DELETE ON licenses FOR EACH ROW EXECUTE FUNCTION keep_license_state();
-- A group commit writes the status of every license in it; only where something changes is there anything to do.
CREATE TRIGGER licenses_restated
  AFTER UPDATE OF status, expires_at, expiring_for, expiring_days, policy_id, created_at, id ON licenses
  FOR EACH ROW WHEN (
    (OLD.status IS DISTINCT FROM NEW.status OR OLD.expires_at IS DISTINCT FROM NEW.expires_at
      OR OLD.expiring_for IS DISTINCT FROM NEW.expiring_for OR OLD.expiring_days IS DISTINCT FROM NEW.expiring_days
      OR OLD.policy_id IS DISTINCT FROM NEW.policy_id OR OLD.created_at IS DISTINCT FROM NEW.created_at
      OR OLD.id IS DISTINCT FROM NEW.id)
    AND current_setting('licensing.states_kept', true) IS DISTINCT FROM 'on'
  ) EXECUTE FUNCTION keep_license_state();

-- Nobody writes a license from the new triggers on until all of this is done.
INSERT INTO license_states (status, created_at, license_id, policy_id, expires_at, notice)
SELECT status, created_at, id, policy_id, expires_at, license_notice(status, expires_at, expiring_for, expiring_days)
FROM licenses;

-- As before, each on expressions that no other index has: no plan can choose another one.

-- What the clock moves, by policy, for grace is the policy's.
CREATE INDEX license_states_clock ON license_states ((policy_id || ' ' || status), (expires_at AT TIME ZONE 'UTC'))
  WHERE expires_at IS NOT NULL;
-- Active licenses by the notice that was given last.
CREATE INDEX license_states_notice ON license_states (notice, (expires_at AT TIME ZONE 'UTC')) WHERE notice IS NOT NULL;
-- Licenses that are written down as past their expiry, by their expiry: those that are not past it any more are at its end.
CREATE INDEX license_states_past ON license_states (
  (CASE WHEN status IN ('grace_period', 'expired') THEN expires_at AT TIME ZONE 'UTC' END)
) WHERE status IN ('grace_period', 'expired');

-- A license and its row there are joined by id and by the instant of creation, so that a list of a state has its order by either table.
-- The second of these leaves out nothing that the first has left, which estimates have to be told.
ALTER TABLE licenses ALTER COLUMN created_at SET (n_distinct = 1);
ALTER TABLE license_states ALTER COLUMN created_at SET (n_distinct = 1);

DROP INDEX licenses_clock;
DROP INDEX licenses_expiring;
DROP INDEX licenses_past;
DROP INDEX licenses_status_page;

ANALYZE licenses, license_states;
-- file: 0017_seat_holders.sql
-- Who takes a floating seat and gives it back moves between active and deactivated with each cycle. No index tells the two apart any
-- more: the next version of such a device goes beside the one before in its page, and no index gets an entry.

-- What a list of one status begins with: the status, but for active and deactivated, which are `either`. A column, for an index on an
-- expression of the status would be written whenever that changes; and a short expression, for each statement parses it.
ALTER TABLE devices ADD COLUMN listed_as text NOT NULL
  GENERATED ALWAYS AS (coalesce(nullif(nullif(status, 'active'), 'deactivated'), 'either')) STORED;
CREATE INDEX devices_listed_page ON devices (license_id, listed_as, holds_slot, created_at DESC, id DESC);
DROP INDEX devices_status_page;

-- A group commit counts the devices that it writes by itself, all at once, and says so by a setting of its transaction.
DROP TRIGGER devices_counted ON devices;
DROP TRIGGER devices_recounted ON devices;
CREATE TRIGGER devices_counted AFTER INSERT ON devices
  FOR EACH ROW WHEN (current_setting('licensing.devices_counted', true) IS DISTINCT FROM 'on')
  EXECUTE FUNCTION keep_status_count();
CREATE TRIGGER devices_uncounted AFTER DELETE ON devices FOR EACH ROW EXECUTE FUNCTION keep_status_count();
CREATE TRIGGER devices_recounted AFTER UPDATE OF status ON devices
  FOR EACH ROW WHEN (
    OLD.status IS DISTINCT FROM NEW.status
    AND current_setting('licensing.devices_counted', true) IS DISTINCT FROM 'on'
  ) EXECUTE FUNCTION keep_status_count();

-- A lease belongs to a device, and that to a license, whose row the same transaction has written. Asking for the license once more
-- cost as much as an index.
ALTER TABLE leases DROP CONSTRAINT leases_license_id_fkey;

ANALYZE devices;
