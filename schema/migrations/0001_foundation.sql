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
