-- The whole schema, grouped by resource. Every instant is written by the service from its own clock: no column takes its time
-- from the database.

-- Products

CREATE TABLE products (
  id text CONSTRAINT products_pkey PRIMARY KEY,
  name text NOT NULL,
  code text NOT NULL CONSTRAINT products_code_key UNIQUE,
  metadata jsonb NOT NULL,
  -- Rises when a feature or version of the product changes, so that license actors see the change at the next use.
  catalog_revision bigint NOT NULL DEFAULT 1,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL
);
COMMENT ON TABLE products IS 'A row is a product that licenses are sold for.';
CREATE INDEX products_page ON products (created_at DESC, id DESC);

-- Policies

CREATE TABLE policies (
  id text CONSTRAINT policies_pkey PRIMARY KEY,
  product_id text NOT NULL CONSTRAINT policies_product_id_fkey REFERENCES products,
  name text NOT NULL,
  code text NOT NULL,
  license_type text NOT NULL
    CONSTRAINT policies_license_type_check CHECK (license_type IN ('perpetual', 'time_limited', 'subscription', 'trial', 'consumption')),
  max_activations integer NOT NULL CONSTRAINT policies_max_activations_check CHECK (max_activations >= 0),
  max_floating_users integer CONSTRAINT policies_max_floating_users_check CHECK (max_floating_users >= 0),
  max_container_instances integer CONSTRAINT policies_max_container_instances_check CHECK (max_container_instances >= 0),
  floating_timeout_minutes integer NOT NULL
    CONSTRAINT policies_floating_timeout_minutes_check CHECK (floating_timeout_minutes >= 1),
  grace_period_days integer NOT NULL CONSTRAINT policies_grace_period_days_check CHECK (grace_period_days >= 0),
  validation_interval_minutes integer NOT NULL
    CONSTRAINT policies_validation_interval_minutes_check CHECK (validation_interval_minutes >= 1),
  require_heartbeat boolean NOT NULL,
  allow_offline_activation boolean NOT NULL,
  offline_grace_days integer NOT NULL CONSTRAINT policies_offline_grace_days_check CHECK (offline_grace_days >= 0),
  allow_vm boolean NOT NULL,
  allow_container boolean NOT NULL,
  max_transfers integer NOT NULL CONSTRAINT policies_max_transfers_check CHECK (max_transfers >= 0),
  metadata jsonb NOT NULL,
  -- Rises with every edit. License commits name the revision that they were decided on; see licenses.revision.
  revision bigint NOT NULL DEFAULT 1,
  -- The policy's share of its licenses' published entitlement_version: rises with edits that the entitlement payload shows.
  entitlement_counter bigint NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  CONSTRAINT policies_code_key UNIQUE (product_id, code)
);
COMMENT ON TABLE policies IS 'A row is a set of rules that a product''s licenses follow: type, limits, grace and offline use.';
CREATE INDEX policies_page ON policies (product_id, created_at DESC, id DESC);

-- Features

CREATE TABLE features (
  id text CONSTRAINT features_pkey PRIMARY KEY,
  product_id text NOT NULL CONSTRAINT features_product_id_fkey REFERENCES products,
  name text NOT NULL,
  code text NOT NULL,
  metadata jsonb NOT NULL,
  created_at timestamptz NOT NULL,
  CONSTRAINT features_code_key UNIQUE (product_id, code)
);
COMMENT ON TABLE features IS 'A row is a feature of a product that can be assigned to licenses.';
CREATE INDEX features_page ON features (product_id, created_at DESC, id DESC);

-- Versions

CREATE TABLE product_versions (
  id text CONSTRAINT product_versions_pkey PRIMARY KEY,
  product_id text NOT NULL CONSTRAINT product_versions_product_id_fkey REFERENCES products,
  version text NOT NULL,
  released_at timestamptz NOT NULL,
  metadata jsonb NOT NULL,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  CONSTRAINT product_versions_version_key UNIQUE (product_id, version)
);
COMMENT ON TABLE product_versions IS 'A row is a released version of a product.';
CREATE INDEX product_versions_page ON product_versions (product_id, created_at DESC, id DESC);

-- Customers

CREATE TABLE customers (
  id text CONSTRAINT customers_pkey PRIMARY KEY,
  name text NOT NULL,
  code text NOT NULL CONSTRAINT customers_code_key UNIQUE,
  email text,
  metadata jsonb NOT NULL,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL
);
COMMENT ON TABLE customers IS 'A row is a customer that licenses, orders and subscriptions can name.';
CREATE INDEX customers_page ON customers (created_at DESC, id DESC);
CREATE INDEX customers_email_page ON customers (email, created_at DESC, id DESC) WHERE email IS NOT NULL;

-- Subscriptions and orders. Each list filter has an index in the order of the list.

CREATE TABLE subscriptions (
  id text CONSTRAINT subscriptions_pkey PRIMARY KEY,
  product_id text NOT NULL CONSTRAINT subscriptions_product_id_fkey REFERENCES products,
  customer_id text CONSTRAINT subscriptions_customer_id_fkey REFERENCES customers,
  external_system text NOT NULL,
  external_id text NOT NULL,
  status text NOT NULL
    CONSTRAINT subscriptions_status_check CHECK (status IN ('trialing', 'active', 'past_due', 'paused', 'canceled')),
  current_period_start timestamptz NOT NULL,
  current_period_end timestamptz NOT NULL,
  cancel_at_period_end boolean NOT NULL,
  canceled_at timestamptz,
  metadata jsonb NOT NULL,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  CONSTRAINT subscriptions_external_key UNIQUE (product_id, external_system, external_id),
  CONSTRAINT subscriptions_check CHECK (current_period_end > current_period_start),
  CONSTRAINT subscriptions_check1 CHECK (canceled_at IS NULL OR status = 'canceled')
);
COMMENT ON TABLE subscriptions IS 'A row is a subscription of an external commerce system.';
CREATE INDEX subscriptions_page ON subscriptions (product_id, created_at DESC, id DESC);
CREATE INDEX subscriptions_customer_page ON subscriptions (customer_id, created_at DESC, id DESC) WHERE customer_id IS NOT NULL;
CREATE INDEX subscriptions_status_page ON subscriptions (product_id, status, created_at DESC, id DESC);
CREATE INDEX subscriptions_system_page ON subscriptions (product_id, external_system, created_at DESC, id DESC);
CREATE INDEX subscriptions_external_page ON subscriptions (product_id, external_id, created_at DESC, id DESC);

CREATE TABLE orders (
  id text CONSTRAINT orders_pkey PRIMARY KEY,
  product_id text NOT NULL CONSTRAINT orders_product_id_fkey REFERENCES products,
  customer_id text CONSTRAINT orders_customer_id_fkey REFERENCES customers,
  subscription_id text CONSTRAINT orders_subscription_id_fkey REFERENCES subscriptions,
  external_system text NOT NULL,
  external_id text NOT NULL,
  status text NOT NULL
    CONSTRAINT orders_status_check CHECK (status IN ('pending', 'paid', 'fulfilled', 'canceled', 'refunded')),
  period_start timestamptz,
  period_end timestamptz,
  metadata jsonb NOT NULL,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  CONSTRAINT orders_external_key UNIQUE (product_id, external_system, external_id),
  CONSTRAINT orders_check CHECK ((period_start IS NULL) = (period_end IS NULL))
);
COMMENT ON TABLE orders IS 'A row is an order of an external commerce system.';
CREATE INDEX orders_page ON orders (product_id, created_at DESC, id DESC);
CREATE INDEX orders_customer_page ON orders (customer_id, created_at DESC, id DESC) WHERE customer_id IS NOT NULL;
CREATE INDEX orders_subscription_page ON orders (subscription_id, created_at DESC, id DESC) WHERE subscription_id IS NOT NULL;
CREATE INDEX orders_status_page ON orders (product_id, status, created_at DESC, id DESC);
CREATE INDEX orders_system_page ON orders (product_id, external_system, created_at DESC, id DESC);
CREATE INDEX orders_external_page ON orders (product_id, external_id, created_at DESC, id DESC);

-- Licenses

-- The text that the parameter q of the license list searches. The query and the index both use the server's lower(), so they
-- agree in every locale.
CREATE FUNCTION search_text(customer_name text, customer_email text) RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT lower(coalesce(customer_name, '') || ' ' || coalesce(customer_email, ''))
$$;

-- The four characters at every position of a text, and at its end the rest. Each part of the text begins with some of them.
-- A part of up to four characters is one look-up, a longer part is a few; all alphabets count alike. The text is split from its
-- first, second, third and fourth character: the fastest form that one expression can have, 20 µs.
CREATE FUNCTION search_grams(content text) RETURNS tsvector
  LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT array_to_tsvector(array_remove(string_to_array(
    regexp_replace(content, '(.{4})', E'\\1\x01', 'g') || E'\x01' ||
    regexp_replace(substr(content, 2), '(.{4})', E'\\1\x01', 'g') || E'\x01' ||
    regexp_replace(substr(content, 3), '(.{4})', E'\\1\x01', 'g') || E'\x01' ||
    regexp_replace(substr(content, 4), '(.{4})', E'\\1\x01', 'g'), E'\x01'), ''))
$$;

-- The grams that a text has if it contains this part. For a part that is shorter than a gram: a prefix of a gram.
CREATE FUNCTION search_query(part text) RETURNS tsquery
  LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT coalesce(string_agg(
    '''' || replace(replace(substr(part, least(n, greatest(length(part) - 3, 1)), 4), '\', '\\'), '''', '''''')
      || CASE WHEN length(part) < 4 THEN ''':*' ELSE '''' END, ' & '
  ), '')::tsquery
  FROM generate_series(1, length(part), 4) AS n
$$;

CREATE TABLE licenses (
  id text CONSTRAINT licenses_pkey PRIMARY KEY,
  product_id text NOT NULL CONSTRAINT licenses_product_id_fkey REFERENCES products,
  policy_id text NOT NULL CONSTRAINT licenses_policy_id_fkey REFERENCES policies,
  customer_id text CONSTRAINT licenses_customer_id_fkey REFERENCES customers,
  order_id text CONSTRAINT licenses_order_id_fkey REFERENCES orders,
  subscription_id text CONSTRAINT licenses_subscription_id_fkey REFERENCES subscriptions,
  -- SHA-256 of the license key. The key itself is not stored.
  key_hash bytea NOT NULL CONSTRAINT licenses_key_hash_key UNIQUE,
  license_key_prefix text NOT NULL,
  license_key_last4 text NOT NULL,
  -- The last written state. Reads apply the clock to it.
  status text NOT NULL
    CONSTRAINT licenses_status_check CHECK (status IN ('active', 'suspended', 'expired', 'revoked', 'grace_period')),
  customer_email text,
  customer_name text,
  starts_at timestamptz,
  expires_at timestamptz,
  maintenance_expires_at timestamptz,
  active_device_count integer NOT NULL DEFAULT 0 CONSTRAINT licenses_active_device_count_check CHECK (active_device_count >= 0),
  times_activated integer NOT NULL DEFAULT 0,
  times_transferred integer NOT NULL DEFAULT 0,
  total_consumptions bigint NOT NULL DEFAULT 0,
  entitlement_counter bigint NOT NULL DEFAULT 1,
  metadata jsonb NOT NULL,
  -- The fence: every change of the license, its assignments, devices or leases raises it and names the revision it was decided on.
  revision bigint NOT NULL DEFAULT 1,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  -- The expiry date of the last license.expiring event, and its days before that date. An edited date starts the notices again.
  expiring_for timestamptz,
  expiring_days smallint,
  -- No device with a slot of this license was seen before this instant; NULL = since the license was created. A lower bound
  -- that only the heartbeat sweep moves, so that the sweep reads a license once in a validation interval.
  heartbeat_from timestamptz
) WITH (fillfactor = 80);
COMMENT ON TABLE licenses IS 'A row is a license, with its counters and its last written state.';
-- The licenses of a list are joined with license_states by id and created_at, so that either table gives the order of the list.
-- The second column leaves out no row that the first has left. The planner takes it for one value and estimates accordingly.
ALTER TABLE licenses ALTER COLUMN created_at SET (n_distinct = 1);
-- No index holds a column that use or time changes: the next version of a row stays in its page (a HOT update).
CREATE INDEX licenses_page ON licenses (created_at DESC, id DESC);
CREATE INDEX licenses_product_page ON licenses (product_id, created_at DESC, id DESC);
CREATE INDEX licenses_policy_page ON licenses (policy_id, created_at DESC, id DESC);
CREATE INDEX licenses_customer_page ON licenses (customer_id, created_at DESC, id DESC) WHERE customer_id IS NOT NULL;
CREATE INDEX licenses_order_page ON licenses (order_id, created_at DESC, id DESC) WHERE order_id IS NOT NULL;
CREATE INDEX licenses_subscription_page ON licenses (subscription_id, created_at DESC, id DESC) WHERE subscription_id IS NOT NULL;
CREATE INDEX licenses_last4_page ON licenses (license_key_last4, created_at DESC, id DESC);
CREATE INDEX licenses_expiry ON licenses (expires_at, id) WHERE expires_at IS NOT NULL;
-- Without a pending list, which every search would have to read. The entries of one license take 0.1 ms to insert.
CREATE INDEX licenses_search ON licenses USING gin (search_grams(search_text(customer_name, customer_email)))
  WITH (fastupdate = off);
-- For the heartbeat sweep. It uses expressions of its own, so that no plan can choose another index.
CREATE INDEX licenses_heartbeat ON licenses ((policy_id || ''), (coalesce(heartbeat_from, created_at)));

CREATE TABLE license_features (
  license_id text NOT NULL CONSTRAINT license_features_license_id_fkey REFERENCES licenses,
  feature_id text NOT NULL CONSTRAINT license_features_feature_id_fkey REFERENCES features,
  enabled boolean NOT NULL,
  max_consumptions bigint CONSTRAINT license_features_max_consumptions_check CHECK (max_consumptions >= 0),
  total_consumptions bigint NOT NULL DEFAULT 0
    CONSTRAINT license_features_total_consumptions_check CHECK (total_consumptions >= 0),
  expires_at timestamptz,
  metadata jsonb NOT NULL,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  CONSTRAINT license_features_pkey PRIMARY KEY (license_id, feature_id)
) WITH (fillfactor = 80);
COMMENT ON TABLE license_features IS 'A row assigns a feature to a license, with its limit and what was consumed of it.';
CREATE INDEX license_features_feature ON license_features (feature_id);

-- License states: the columns that licenses are found by and that time changes, in narrow rows with few indexes. A change of
-- state writes these indexes and none of the table licenses.

-- The last notice ahead of expiry that was given for the current expiry date of an active license, in days; 8 = none.
CREATE FUNCTION license_notice(status text, expires_at timestamptz, expiring_for timestamptz, expiring_days smallint)
  RETURNS smallint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN status <> 'active' OR expires_at IS NULL THEN NULL
    WHEN expiring_for = expires_at THEN expiring_days ELSE 8 END
$$;

CREATE TABLE license_states (
  status text NOT NULL,
  created_at timestamptz NOT NULL,
  license_id text NOT NULL,
  policy_id text NOT NULL,
  expires_at timestamptz,
  -- What license_notice gives.
  notice smallint,
  -- The licenses of a state, in the order of the license list.
  CONSTRAINT license_states_pkey PRIMARY KEY (status, created_at, license_id)
);
COMMENT ON TABLE license_states IS 'A row is the state of a license, copied from licenses in the same statement, to find licenses by state.';
ALTER TABLE license_states ALTER COLUMN created_at SET (n_distinct = 1);
-- Sweeps look for rows that hardly existed when statistics were collected, so estimates do not help them. Each index uses
-- expressions that no other index has, and a sweep's conditions use only these: no plan can choose another index. (With plain
-- columns, 100,000 licenses that expired at once took 71 seconds instead of 19.)
-- Licenses that the clock moves, by policy, because the grace period belongs to the policy.
CREATE INDEX license_states_clock ON license_states ((policy_id || ' ' || status), (expires_at AT TIME ZONE 'UTC'))
  WHERE expires_at IS NOT NULL;
-- Active licenses by the last notice.
CREATE INDEX license_states_notice ON license_states (notice, (expires_at AT TIME ZONE 'UTC')) WHERE notice IS NOT NULL;
-- Licenses whose written state is past their expiry. Those that are no longer past it are at the end.
CREATE INDEX license_states_past ON license_states (
  (CASE WHEN status IN ('grace_period', 'expired') THEN expires_at AT TIME ZONE 'UTC' END)
) WHERE status IN ('grace_period', 'expired');

-- Every statement that writes a license writes its row here. A sweep that moves many licenses writes the rows itself, for a whole
-- batch, and disables the trigger by the setting licensing.states_kept of its transaction.
CREATE FUNCTION keep_license_state() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
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

CREATE TRIGGER licenses_state AFTER INSERT OR DELETE ON licenses FOR EACH ROW EXECUTE FUNCTION keep_license_state();
-- A group commit may write the status of every license in it. The function runs only for rows that differ.
CREATE TRIGGER licenses_restated
  AFTER UPDATE OF status, expires_at, expiring_for, expiring_days, policy_id, created_at, id ON licenses
  FOR EACH ROW WHEN (
    (OLD.status IS DISTINCT FROM NEW.status OR OLD.expires_at IS DISTINCT FROM NEW.expires_at
      OR OLD.expiring_for IS DISTINCT FROM NEW.expiring_for OR OLD.expiring_days IS DISTINCT FROM NEW.expiring_days
      OR OLD.policy_id IS DISTINCT FROM NEW.policy_id OR OLD.created_at IS DISTINCT FROM NEW.created_at
      OR OLD.id IS DISTINCT FROM NEW.id)
    AND current_setting('licensing.states_kept', true) IS DISTINCT FROM 'on'
  ) EXECUTE FUNCTION keep_license_state();

-- Custom fields

CREATE TABLE custom_field_definitions (
  id text CONSTRAINT custom_field_definitions_pkey PRIMARY KEY,
  product_id text NOT NULL CONSTRAINT custom_field_definitions_product_id_fkey REFERENCES products,
  resource_type text NOT NULL
    CONSTRAINT custom_field_definitions_resource_type_check CHECK (resource_type IN ('license', 'customer')),
  code text NOT NULL,
  name text NOT NULL,
  value_type text NOT NULL
    CONSTRAINT custom_field_definitions_value_type_check CHECK (value_type IN ('string', 'integer', 'boolean', 'datetime', 'enum')),
  is_required boolean NOT NULL,
  enum_options text[] NOT NULL,
  metadata jsonb NOT NULL,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  CONSTRAINT custom_field_definitions_code_key UNIQUE (product_id, resource_type, code),
  CONSTRAINT custom_field_definitions_check CHECK ((value_type = 'enum') = (cardinality(enum_options) > 0))
);
COMMENT ON TABLE custom_field_definitions IS 'A row defines a custom field of a product''s licenses or customers.';
CREATE INDEX custom_field_definitions_page ON custom_field_definitions (product_id, created_at DESC, id DESC);

CREATE TABLE custom_field_values (
  definition_id text NOT NULL CONSTRAINT custom_field_values_definition_id_fkey REFERENCES custom_field_definitions,
  license_id text CONSTRAINT custom_field_values_license_id_fkey REFERENCES licenses,
  customer_id text CONSTRAINT custom_field_values_customer_id_fkey REFERENCES customers ON DELETE CASCADE,
  string_value text,
  integer_value bigint,
  boolean_value boolean,
  datetime_value timestamptz,
  enum_value text,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  CONSTRAINT custom_field_values_check CHECK (num_nonnulls(license_id, customer_id) = 1),
  CONSTRAINT custom_field_values_check1
    CHECK (num_nonnulls(string_value, integer_value, boolean_value, datetime_value, enum_value) = 1)
);
COMMENT ON TABLE custom_field_values IS 'A row is the value of a custom field of one license or customer, in the column of its type.';
CREATE UNIQUE INDEX custom_field_values_license ON custom_field_values (license_id, definition_id) WHERE license_id IS NOT NULL;
CREATE UNIQUE INDEX custom_field_values_customer ON custom_field_values (customer_id, definition_id)
  WHERE customer_id IS NOT NULL;
CREATE INDEX custom_field_values_license_page ON custom_field_values (license_id, created_at DESC, definition_id DESC)
  WHERE license_id IS NOT NULL;
CREATE INDEX custom_field_values_customer_page ON custom_field_values (customer_id, created_at DESC, definition_id DESC)
  WHERE customer_id IS NOT NULL;
-- Whether a definition, or one of its options, is in use.
CREATE INDEX custom_field_values_definition ON custom_field_values (definition_id, enum_value);

-- Devices

CREATE TABLE devices (
  id text CONSTRAINT devices_pkey PRIMARY KEY,
  license_id text NOT NULL CONSTRAINT devices_license_id_fkey REFERENCES licenses,
  binding_kind text NOT NULL CONSTRAINT devices_binding_kind_check CHECK (binding_kind IN ('hardware', 'container')),
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
  status text NOT NULL
    CONSTRAINT devices_status_check CHECK (status IN ('active', 'deactivated', 'blacklisted', 'reset', 'expired')),
  -- Whether the device holds an activation slot. A device that only holds a floating lease is active without one.
  holds_slot boolean NOT NULL,
  activated_at timestamptz,
  first_seen_at timestamptz NOT NULL,
  last_seen_at timestamptz NOT NULL,
  last_validated_at timestamptz,
  metadata jsonb NOT NULL,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  -- The status that lists are indexed by, the same for active and deactivated devices. A device that takes and returns a floating
  -- seat moves between these two, and no index is written for it. A column, because an index on an expression of the status would
  -- be written with every change of the status; and a short expression, because each statement parses it.
  listed_as text NOT NULL
    GENERATED ALWAYS AS (coalesce(nullif(nullif(status, 'active'), 'deactivated'), 'either')) STORED
) WITH (fillfactor = 80);
COMMENT ON TABLE devices IS 'A row is a device or container that has used a license.';
-- A fingerprint has at most 512 characters, so the entry stays below the 2,704 bytes that a B-tree takes.
CREATE UNIQUE INDEX devices_binding_key ON devices (license_id, binding_kind, binding_key);
CREATE INDEX devices_page ON devices (license_id, created_at DESC, id DESC);
CREATE INDEX devices_listed_page ON devices (license_id, listed_as, holds_slot, created_at DESC, id DESC);

-- Leases

CREATE TABLE leases (
  id text CONSTRAINT leases_pkey PRIMARY KEY,
  -- No foreign key: a lease belongs to a device, and that to a license, whose row the same transaction has written. Checking the
  -- license again cost as much as an index.
  license_id text NOT NULL,
  device_id text NOT NULL CONSTRAINT leases_device_id_fkey REFERENCES devices,
  -- SHA-256 of the lease token. The token itself is not stored.
  token_hash bytea NOT NULL CONSTRAINT leases_token_hash_key UNIQUE,
  status text NOT NULL CONSTRAINT leases_status_check
    CHECK (status IN ('live', 'checked_in', 'superseded', 'expired', 'ended', 'blacklisted')),
  checked_out_at timestamptz NOT NULL,
  heartbeat_at timestamptz NOT NULL,
  -- Every heartbeat moves it. No index holds it, so the next version of the row stays in its page.
  expires_at timestamptz NOT NULL,
  ended_at timestamptz,
  -- The lease does not end before this instant; NULL = checked_out_at. A lower bound that heartbeats leave alone. The sweep moves
  -- it when it finds the lease alive, so that it reads a lease once in a timeout.
  sweep_at timestamptz
  -- Room for the versions of a lease that is checked out, renewed and returned within a moment.
) WITH (fillfactor = 50);
COMMENT ON TABLE leases IS 'A row is a floating seat that a device has, or had, checked out.';
CREATE UNIQUE INDEX leases_device_live ON leases (device_id) WHERE status = 'live';
-- When the next lease of a license may end.
CREATE INDEX leases_live ON leases (license_id, (coalesce(sweep_at, checked_out_at))) WHERE status = 'live';
-- Only live leases are listed.
CREATE INDEX leases_live_page ON leases (license_id, checked_out_at DESC, id DESC) WHERE status = 'live';
CREATE INDEX leases_sweep ON leases ((coalesce(sweep_at, checked_out_at)), id) WHERE status = 'live';

-- Events and usage ledger

CREATE TABLE event_sequence (
  "only" boolean CONSTRAINT event_sequence_pkey PRIMARY KEY DEFAULT true CONSTRAINT event_sequence_only_check CHECK ("only"),
  last bigint NOT NULL,
  ledger_last bigint NOT NULL,
  -- Rises with every change of which webhook endpoint takes which events. Appending transactions lock this row, so each of them
  -- can tell whether the endpoints that it has read are still valid.
  webhooks_revision bigint NOT NULL DEFAULT 1,
  -- Refusals written so far. It is in this row so that every refusal has its place between two events.
  refusals_last bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 10);
COMMENT ON TABLE event_sequence IS 'The only row is the counters of events, ledger rows and refusals; every transaction that appends locks it last, which makes the sequences gapless and commit-ordered.';
INSERT INTO event_sequence (last, ledger_last) VALUES (0, 0);

CREATE TABLE event_log (
  sequence bigint CONSTRAINT events_pkey PRIMARY KEY,
  event_type text NOT NULL,
  actor_type text NOT NULL
    CONSTRAINT events_actor_type_check CHECK (actor_type IN ('api_key', 'license', 'oidc_subject', 'system')),
  actor_id text NOT NULL,
  resource_type text NOT NULL,
  resource_id text,
  ip_address text,
  metadata jsonb NOT NULL,
  created_at timestamptz NOT NULL
);
COMMENT ON TABLE event_log IS 'A row is an event that is not a row of usage_ledger.';
-- Keys that end with a sequence number occur once: searching for equal keys before each page split is useless.
CREATE INDEX events_type ON event_log (event_type, sequence DESC) WITH (deduplicate_items = off);
CREATE INDEX events_resource ON event_log (resource_id, sequence DESC) WITH (deduplicate_items = off);
CREATE INDEX events_resource_type ON event_log (resource_type, sequence DESC) WITH (deduplicate_items = off);
CREATE INDEX events_actor_type ON event_log (actor_type, sequence DESC) WITH (deduplicate_items = off);
-- The events of a license whose resource is one of its devices or leases.
CREATE INDEX events_of_license ON event_log ((metadata ->> 'license_id'), sequence DESC) WITH (deduplicate_items = off)
  WHERE resource_type IN ('device', 'lease');

CREATE TABLE usage_ledger (
  sequence bigint CONSTRAINT usage_ledger_pkey PRIMARY KEY,
  license_id text NOT NULL,
  feature_id text NOT NULL,
  action text NOT NULL CONSTRAINT usage_ledger_action_check CHECK (action IN ('consume', 'reset', 'top_up', 'set_limit')),
  -- The caller's id of a consumption, unique per license without limit of time; absent on the other actions.
  event_id text,
  amount bigint NOT NULL,
  balance_after bigint NOT NULL,
  max_after bigint,
  device_id text,
  actor_type text NOT NULL,
  actor_id text NOT NULL,
  request_id text NOT NULL,
  occurred_at timestamptz NOT NULL,
  -- The number of the row as an event, the feature's code at that time (codes change, features are deleted), and the client's
  -- address. NULL in rows whose event is in event_log.
  event_sequence bigint,
  event_feature_code text,
  event_ip_address text,
  -- What the view events assumes about these rows.
  CONSTRAINT usage_ledger_event_check CHECK (event_sequence IS NULL OR (action = 'consume' AND actor_type = 'license'
    AND event_feature_code IS NOT NULL AND event_id IS NOT NULL AND device_id IS NOT NULL))
);
COMMENT ON TABLE usage_ledger IS 'A row is a change of what a license has consumed of a feature or may consume; a consumption is at the same time its event.';
CREATE UNIQUE INDEX usage_ledger_event_id ON usage_ledger (license_id, event_id) WHERE event_id IS NOT NULL;
CREATE UNIQUE INDEX usage_ledger_event ON usage_ledger (event_sequence) WITH (deduplicate_items = off)
  WHERE event_sequence IS NOT NULL;
CREATE UNIQUE INDEX usage_ledger_license_event ON usage_ledger (license_id, event_sequence) WITH (deduplicate_items = off)
  WHERE event_sequence IS NOT NULL;
-- Reports read the rows of a license in their order, and periods over all licenses. Rows are appended in the order of time, so a
-- few entries for each range of pages tell where a period is.
CREATE INDEX usage_ledger_license ON usage_ledger (license_id, sequence) WITH (deduplicate_items = off);
CREATE INDEX usage_ledger_time ON usage_ledger USING brin (occurred_at) WITH (pages_per_range = 32, autosummarize = on);

-- The condition is outside of UNION ALL: inside, it would prevent reading both tables in the order of their indexes.
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
COMMENT ON VIEW events IS 'A row is an event: all of event_log, and the consumptions of usage_ledger.';

-- Usage sums: so that a summary of a month need not read every ledger row of the month. A worker writes them after the ledger.

CREATE TABLE usage_rollup (
  unit text NOT NULL CONSTRAINT usage_rollup_unit_check CHECK (unit IN ('hour', 'day')),
  bucket_start timestamptz NOT NULL,
  product_id text NOT NULL,
  -- Empty = all features together, because a license that used two of them counts as one license.
  feature_id text NOT NULL,
  -- Sums of int64 exceed int64.
  consumed numeric NOT NULL,
  consumptions bigint NOT NULL,
  reset numeric NOT NULL,
  topped_up numeric NOT NULL,
  licenses bigint NOT NULL,
  CONSTRAINT usage_rollup_pkey PRIMARY KEY (product_id, unit, bucket_start, feature_id)
);
COMMENT ON TABLE usage_rollup IS 'A row is the sums of the usage ledger of one product and feature in one hour or day of UTC.';
CREATE INDEX usage_rollup_time ON usage_rollup (unit, bucket_start);

CREATE TABLE usage_rollup_progress (
  "only" boolean CONSTRAINT usage_rollup_progress_pkey PRIMARY KEY DEFAULT true
    CONSTRAINT usage_rollup_progress_only_check CHECK ("only"),
  sequence bigint NOT NULL
) WITH (fillfactor = 10);
COMMENT ON TABLE usage_rollup_progress IS 'The only row is the number of the last ledger row that usage_rollup_days has counted.';
INSERT INTO usage_rollup_progress (sequence) VALUES (0);

CREATE TABLE usage_rollup_days (
  day timestamptz CONSTRAINT usage_rollup_days_pkey PRIMARY KEY,
  ledger_rows bigint NOT NULL,
  -- How many of them the sums include.
  rolled_rows bigint NOT NULL DEFAULT 0,
  -- When the newest of them was counted.
  seen_at timestamptz NOT NULL
) WITH (fillfactor = 50);
COMMENT ON TABLE usage_rollup_days IS 'A row is a day of UTC with its number of ledger rows; reports read the ledger for a day whose sums lack some of them.';
CREATE INDEX usage_rollup_days_open ON usage_rollup_days (day) WHERE rolled_rows <> ledger_rows;

-- Webhooks

CREATE TABLE webhook_endpoints (
  id text CONSTRAINT webhook_endpoints_pkey PRIMARY KEY,
  name text NOT NULL,
  url text NOT NULL,
  -- Names of events, or noun.* for all events of a noun; empty = all.
  event_types text[] NOT NULL,
  is_active boolean NOT NULL,
  -- Why the service has disabled it: the receiver answered 410, or deliveries in a row were exhausted.
  disabled_reason text
    CONSTRAINT webhook_endpoints_disabled_reason_check CHECK (disabled_reason IN ('gone', 'exhausted')),
  secret_prefix text NOT NULL,
  -- Sealed under the master key. So is the previous secret, which also signs until its end.
  secret_sealed bytea NOT NULL,
  previous_secret_sealed bytea,
  previous_secret_until timestamptz,
  -- Rises with every edit, so that nodes know when their cached copy is old.
  revision bigint NOT NULL DEFAULT 1,
  exhausted_in_a_row integer NOT NULL DEFAULT 0,
  last_success_at timestamptz,
  last_failure_at timestamptz,
  last_failure text,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL
) WITH (fillfactor = 50);
COMMENT ON TABLE webhook_endpoints IS 'A row is a URL that receives events.';
CREATE INDEX webhook_endpoints_page ON webhook_endpoints (created_at DESC, id DESC);
CREATE INDEX webhook_endpoints_active_page ON webhook_endpoints (is_active, created_at DESC, id DESC);
CREATE INDEX webhook_endpoints_active ON webhook_endpoints (id) WHERE is_active;

CREATE TABLE webhook_deliveries (
  -- No foreign keys: they would lock an endpoint's row for each delivery. A worker removes the deliveries of deleted endpoints.
  endpoint_id text NOT NULL,
  sequence bigint NOT NULL,
  status text NOT NULL DEFAULT 'pending'
    CONSTRAINT webhook_deliveries_status_check CHECK (status IN ('pending', 'delivered', 'exhausted')),
  -- Attempts that have ended.
  attempts smallint NOT NULL DEFAULT 0,
  due_at timestamptz NOT NULL,
  -- Until then a node is delivering it. No index holds this column, so that claiming a delivery writes no index.
  leased_until timestamptz,
  created_at timestamptz NOT NULL,
  finished_at timestamptz,
  CONSTRAINT webhook_deliveries_pkey PRIMARY KEY (endpoint_id, sequence)
) WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.05);
COMMENT ON TABLE webhook_deliveries IS 'A row is the delivery of one event to one endpoint, written in the transaction of the event.';
-- What is due next, by endpoint: the long queue of one endpoint is never read through for another.
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (endpoint_id, due_at, sequence) WHERE status = 'pending';

CREATE TABLE webhook_delivery_counts (
  endpoint_id text NOT NULL,
  period timestamptz NOT NULL,
  delivered bigint NOT NULL,
  -- Attempts that failed, including the last attempts of exhausted deliveries.
  failed bigint NOT NULL,
  exhausted bigint NOT NULL,
  CONSTRAINT webhook_delivery_counts_pkey PRIMARY KEY (endpoint_id, period)
) WITH (fillfactor = 50);
COMMENT ON TABLE webhook_delivery_counts IS 'A row is the number of deliveries of one endpoint in ten minutes, by result.';

-- Report exports

CREATE TABLE report_exports (
  id text CONSTRAINT report_exports_pkey PRIMARY KEY,
  report_kind text NOT NULL,
  format text NOT NULL CONSTRAINT report_exports_format_check CHECK (format IN ('json', 'csv', 'pdf')),
  status text NOT NULL
    CONSTRAINT report_exports_status_check CHECK (status IN ('pending', 'processing', 'completed', 'failed')),
  filters jsonb NOT NULL,
  -- SHA-256 of the canonical JSON of the figures, and of the file; empty until it is complete.
  digest text NOT NULL DEFAULT '',
  artifact_digest text NOT NULL DEFAULT '',
  content_type text NOT NULL,
  size_bytes bigint,
  -- Why it failed, in a sentence for the caller.
  failure text,
  created_by text NOT NULL,
  -- The moment of the figures, and the last ledger row at that moment.
  generated_at timestamptz NOT NULL,
  ledger_last bigint NOT NULL,
  -- The last ledger row whose chunks are written: the next attempt continues there.
  collected bigint NOT NULL DEFAULT 0,
  rows_done bigint NOT NULL DEFAULT 0,
  chunks_done integer NOT NULL DEFAULT 0,
  attempts smallint NOT NULL DEFAULT 0,
  -- Until then a node is working on it.
  leased_until timestamptz,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL
);
COMMENT ON TABLE report_exports IS 'A row is a requested export of a report, with its progress and result.';
CREATE INDEX report_exports_waiting ON report_exports (created_at, id) WHERE status IN ('pending', 'processing');
CREATE INDEX report_exports_age ON report_exports (created_at);

CREATE TABLE report_export_chunks (
  export_id text NOT NULL CONSTRAINT report_export_chunks_export_id_fkey REFERENCES report_exports ON DELETE CASCADE,
  -- snapshot = the figures as canonical JSON; artifact = the file, where it has another format.
  part text NOT NULL CONSTRAINT report_export_chunks_part_check CHECK (part IN ('snapshot', 'artifact')),
  ordinal integer NOT NULL,
  bytes bytea NOT NULL,
  CONSTRAINT report_export_chunks_pkey PRIMARY KEY (export_id, part, ordinal)
);
COMMENT ON TABLE report_export_chunks IS 'A row is a part of the bytes of an export.';
-- Uncompressed: chunks are written once and soon read or deleted, and compressing them took 16 of the 25 microseconds that a
-- ledger row of an export costs the server.
ALTER TABLE report_export_chunks ALTER COLUMN bytes SET STORAGE EXTERNAL;

-- Activities: the feed of events and refused runtime calls

CREATE TABLE refusals (
  -- The place in the feed: the last event before it, plus the refusals up to it.
  activity_sequence bigint CONSTRAINT refusals_pkey PRIMARY KEY,
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
COMMENT ON TABLE refusals IS 'A row is a runtime call that was refused after its license was known; it holds no key, token or binding.';
CREATE INDEX refusals_license ON refusals (license_id, activity_sequence DESC);
CREATE INDEX refusals_action ON refusals (action, activity_sequence DESC);
CREATE INDEX refusals_request ON refusals (request_id, activity_sequence DESC);
CREATE INDEX refusals_age ON refusals (occurred_at);

-- Rows are never deleted, as events are not; refusals may be.
CREATE TABLE activity_offsets (
  -- The last event before these refusals.
  after_sequence bigint CONSTRAINT activity_offsets_pkey PRIMARY KEY,
  refusals_total bigint NOT NULL,
  -- The place of the last of these refusals: after_sequence + refusals_total.
  activity_sequence bigint NOT NULL CONSTRAINT activity_offsets_activity_key UNIQUE
);
COMMENT ON TABLE activity_offsets IS 'A row is a batch of refusals between two events: the place of a later event in the feed is its sequence plus refusals_total of the last row before it.';

CREATE TABLE event_spans (
  last_sequence bigint CONSTRAINT event_spans_pkey PRIMARY KEY,
  first_sequence bigint NOT NULL,
  first_at timestamptz NOT NULL,
  last_at timestamptz NOT NULL
);
COMMENT ON TABLE event_spans IS 'A row is a range of events with its first and last time, which finds a period without an index that every event would pay for.';

CREATE TABLE license_validations (
  license_id text NOT NULL,
  -- The beginning of the hour.
  hour timestamptz NOT NULL,
  validations bigint NOT NULL,
  refused bigint NOT NULL,
  CONSTRAINT license_validations_pkey PRIMARY KEY (license_id, hour)
) WITH (fillfactor = 80);
COMMENT ON TABLE license_validations IS 'A row is the number of validations of one license in one hour.';
CREATE INDEX license_validations_age ON license_validations (hour);

CREATE TABLE handovers (
  writer text CONSTRAINT handovers_pkey PRIMARY KEY,
  batch bigint NOT NULL,
  written_at timestamptz NOT NULL
);
COMMENT ON TABLE handovers IS 'A row is the last batch that a buffered writer has committed, so that a batch whose commit was not confirmed is not written twice.';

-- API keys

CREATE TABLE api_keys (
  id text CONSTRAINT api_keys_pkey PRIMARY KEY,
  name text NOT NULL,
  key_prefix text NOT NULL,
  -- SHA-256 of the token. The token itself is not stored.
  token_hash bytea NOT NULL CONSTRAINT api_keys_token_hash_key UNIQUE,
  scopes text[] NOT NULL,
  allowed_cidrs text[] NOT NULL,
  is_active boolean NOT NULL,
  expires_at timestamptz,
  last_used_at timestamptz,
  revoked_at timestamptz,
  created_at timestamptz NOT NULL,
  -- The first key of the installation. An operator may have chosen its token, so only its text may lack the shape of our tokens.
  is_bootstrap boolean NOT NULL DEFAULT false
);
COMMENT ON TABLE api_keys IS 'A row is a key to the management API; a revoked key keeps its row.';
CREATE INDEX api_keys_page ON api_keys (created_at DESC, id DESC) WHERE revoked_at IS NULL;
CREATE INDEX api_keys_active_page ON api_keys (is_active, created_at DESC, id DESC) WHERE revoked_at IS NULL;
CREATE UNIQUE INDEX api_keys_bootstrap ON api_keys (is_bootstrap) WHERE is_bootstrap;

-- Idempotency

CREATE TABLE idempotent_answers (
  -- SHA-256 over credential, method, path and key; for renewals over the license and the key alone.
  scope bytea CONSTRAINT idempotent_answers_pkey PRIMARY KEY,
  -- SHA-256 over the request's body: the same key with another body is refused.
  body_hash bytea NOT NULL,
  status smallint NOT NULL,
  content_type text,
  -- Sealed under the master key, because a response may contain a secret. A renewal's contains none and is stored as it was sent.
  body bytea NOT NULL,
  sealed boolean NOT NULL,
  -- NULL = never (renewals).
  expires_at timestamptz,
  created_at timestamptz NOT NULL
);
COMMENT ON TABLE idempotent_answers IS 'A row is the response to a request with an Idempotency-Key, written in the transaction of its change and repeated when the request is.';
CREATE INDEX idempotent_answers_expiry ON idempotent_answers (expires_at) WHERE expires_at IS NOT NULL;

-- Signing keys

CREATE TABLE signing_keys (
  kid text CONSTRAINT signing_keys_pkey PRIMARY KEY,
  algorithm text NOT NULL,
  public_key bytea NOT NULL,
  private_key_sealed bytea NOT NULL,
  status text NOT NULL CONSTRAINT signing_keys_status_check CHECK (status IN ('active', 'retired')),
  created_at timestamptz NOT NULL,
  retired_at timestamptz
);
COMMENT ON TABLE signing_keys IS 'A row is a key that signs runtime responses, its private half sealed under the master key.';
CREATE UNIQUE INDEX signing_keys_active ON signing_keys (status) WHERE status = 'active';

-- Journal

CREATE TABLE journals (
  id text CONSTRAINT journals_pkey PRIMARY KEY,
  last_group bigint NOT NULL,
  written_at timestamptz NOT NULL
) WITH (fillfactor = 10);
COMMENT ON TABLE journals IS 'A row is the last group commit of one node''s journal, which tells after a lost connection whether the group was committed.';

-- Fails the statement, and with it the transaction, if a condition does not hold: so a whole group commit needs one round trip.
CREATE FUNCTION demand(holds boolean, state text, message text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  IF holds THEN RETURN true; END IF;
  RAISE EXCEPTION USING ERRCODE = state, MESSAGE = message;
END $$;

-- Migrations

COMMENT ON TABLE schema_migrations IS 'A row is a migration that this database has.';

-- The planner takes a table without statistics for ten pages. These are small until they grow.
ANALYZE licenses, license_states, devices;
