-- The whole schema as the migrations leave it, for reading and for review. Generated; do not edit.

-- Products

CREATE TABLE products (
  id text NOT NULL,
  name text NOT NULL,
  code text NOT NULL,
  metadata jsonb NOT NULL,
  catalog_revision bigint DEFAULT 1 NOT NULL,
  created_at timestamp with time zone NOT NULL,
  updated_at timestamp with time zone NOT NULL,
  CONSTRAINT products_pkey PRIMARY KEY (id),
  CONSTRAINT products_code_key UNIQUE (code)
);
COMMENT ON TABLE products IS 'A row is a product that licenses are sold for.';
CREATE INDEX products_page ON products USING btree (created_at DESC, id DESC);

-- Policies

CREATE TABLE policies (
  id text NOT NULL,
  product_id text NOT NULL,
  name text NOT NULL,
  code text NOT NULL,
  license_type text NOT NULL,
  max_activations integer NOT NULL,
  max_floating_users integer,
  max_container_instances integer,
  floating_timeout_minutes integer NOT NULL,
  grace_period_days integer NOT NULL,
  validation_interval_minutes integer NOT NULL,
  require_heartbeat boolean NOT NULL,
  allow_offline_activation boolean NOT NULL,
  offline_grace_days integer NOT NULL,
  allow_vm boolean NOT NULL,
  allow_container boolean NOT NULL,
  max_transfers integer NOT NULL,
  metadata jsonb NOT NULL,
  revision bigint DEFAULT 1 NOT NULL,
  entitlement_counter bigint DEFAULT 0 NOT NULL,
  created_at timestamp with time zone NOT NULL,
  updated_at timestamp with time zone NOT NULL,
  not_due_before timestamp with time zone,
  allow_transfer boolean DEFAULT true NOT NULL,
  duration_days integer,
  duration_starts text DEFAULT 'creation'::text NOT NULL,
  public_trial boolean DEFAULT false NOT NULL,
  reminder_days integer[] DEFAULT '{7,3,1}'::integer[] NOT NULL,
  maintenance_days integer,
  borrow_days_max integer,
  self_deactivations_per_month integer DEFAULT 3 NOT NULL,
  hold_offline_slots boolean DEFAULT false NOT NULL,
  show_licensee boolean DEFAULT false NOT NULL,
  show_metadata text[] DEFAULT '{}'::text[] NOT NULL,
  mail_reminders boolean DEFAULT false NOT NULL,
  CONSTRAINT policies_pkey PRIMARY KEY (id),
  CONSTRAINT policies_product_id_fkey FOREIGN KEY (product_id) REFERENCES products(id),
  CONSTRAINT policies_borrow_days_max_check CHECK ((borrow_days_max >= 0)),
  CONSTRAINT policies_code_key UNIQUE (product_id, code),
  CONSTRAINT policies_duration_days_check CHECK ((duration_days >= 1)),
  CONSTRAINT policies_duration_starts_check CHECK ((duration_starts = ANY (ARRAY['creation'::text, 'first_activation'::text]))),
  CONSTRAINT policies_floating_timeout_minutes_check CHECK ((floating_timeout_minutes >= 1)),
  CONSTRAINT policies_grace_period_days_check CHECK ((grace_period_days >= 0)),
  CONSTRAINT policies_license_type_check CHECK ((license_type = ANY (ARRAY['perpetual'::text, 'time_limited'::text, 'subscription'::text, 'trial'::text, 'consumption'::text]))),
  CONSTRAINT policies_maintenance_days_check CHECK ((maintenance_days >= 1)),
  CONSTRAINT policies_max_activations_check CHECK ((max_activations >= 0)),
  CONSTRAINT policies_max_container_instances_check CHECK ((max_container_instances >= 0)),
  CONSTRAINT policies_max_floating_users_check CHECK ((max_floating_users >= 0)),
  CONSTRAINT policies_max_transfers_check CHECK ((max_transfers >= 0)),
  CONSTRAINT policies_offline_grace_days_check CHECK ((offline_grace_days >= 0)),
  CONSTRAINT policies_public_trial_check CHECK (((NOT public_trial) OR (license_type = 'trial'::text))),
  CONSTRAINT policies_self_deactivations_per_month_check CHECK ((self_deactivations_per_month >= 0)),
  CONSTRAINT policies_validation_interval_minutes_check CHECK ((validation_interval_minutes >= 1))
);
COMMENT ON TABLE policies IS 'A row is a set of rules that a product''s licenses follow: type, limits, grace and offline use.';
CREATE INDEX policies_page ON policies USING btree (product_id, created_at DESC, id DESC);

-- Features

CREATE TABLE features (
  id text NOT NULL,
  product_id text NOT NULL,
  name text NOT NULL,
  code text NOT NULL,
  metadata jsonb NOT NULL,
  created_at timestamp with time zone NOT NULL,
  CONSTRAINT features_pkey PRIMARY KEY (id),
  CONSTRAINT features_product_id_fkey FOREIGN KEY (product_id) REFERENCES products(id),
  CONSTRAINT features_code_key UNIQUE (product_id, code)
);
COMMENT ON TABLE features IS 'A row is a feature of a product that can be assigned to licenses.';
CREATE INDEX features_page ON features USING btree (product_id, created_at DESC, id DESC);

CREATE TABLE policy_features (
  policy_id text NOT NULL,
  feature_id text NOT NULL,
  enabled boolean NOT NULL,
  max_consumptions bigint,
  expires_after_days integer,
  metadata jsonb NOT NULL,
  created_at timestamp with time zone NOT NULL,
  updated_at timestamp with time zone NOT NULL,
  reset_period text,
  reset_anchor text,
  rollover_max bigint,
  overage_max bigint,
  expires_with_license boolean,
  CONSTRAINT policy_features_pkey PRIMARY KEY (policy_id, feature_id),
  CONSTRAINT policy_features_feature_id_fkey FOREIGN KEY (feature_id) REFERENCES features(id),
  CONSTRAINT policy_features_policy_id_fkey FOREIGN KEY (policy_id) REFERENCES policies(id) ON DELETE CASCADE,
  CONSTRAINT policy_features_expires_after_days_check CHECK ((expires_after_days >= 1)),
  CONSTRAINT policy_features_expires_with_license_check CHECK (expires_with_license),
  CONSTRAINT policy_features_max_consumptions_check CHECK ((max_consumptions >= 0)),
  CONSTRAINT policy_features_overage_max_check CHECK ((overage_max >= '-1'::integer)),
  CONSTRAINT policy_features_reset_anchor_check CHECK ((reset_anchor = ANY (ARRAY['license'::text, 'subscription'::text]))),
  CONSTRAINT policy_features_reset_period_check CHECK ((reset_period = ANY (ARRAY['day'::text, 'week'::text, 'month'::text, 'year'::text, 'subscription'::text]))),
  CONSTRAINT policy_features_rollover_max_check CHECK ((rollover_max >= 0))
);
COMMENT ON TABLE policy_features IS 'A row is a feature that licenses get with their policy.';
CREATE INDEX policy_features_feature ON policy_features USING btree (feature_id);
CREATE INDEX policy_features_page ON policy_features USING btree (policy_id, created_at DESC, feature_id DESC);

-- Versions

CREATE TABLE product_versions (
  id text NOT NULL,
  product_id text NOT NULL,
  version text NOT NULL,
  released_at timestamp with time zone NOT NULL,
  metadata jsonb NOT NULL,
  created_at timestamp with time zone NOT NULL,
  updated_at timestamp with time zone NOT NULL,
  CONSTRAINT product_versions_pkey PRIMARY KEY (id),
  CONSTRAINT product_versions_product_id_fkey FOREIGN KEY (product_id) REFERENCES products(id),
  CONSTRAINT product_versions_version_key UNIQUE (product_id, version)
);
COMMENT ON TABLE product_versions IS 'A row is a released version of a product.';
CREATE INDEX product_versions_page ON product_versions USING btree (product_id, created_at DESC, id DESC);
CREATE INDEX product_versions_released_page ON product_versions USING btree (product_id, released_at, id);

-- Customers

CREATE FUNCTION search_text(customer_name text, customer_email text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$
  SELECT lower(coalesce(customer_name, '') || ' ' || coalesce(customer_email, ''))
$function$;

CREATE FUNCTION search_grams(content text)
 RETURNS tsvector
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$
  SELECT array_to_tsvector(array_remove(string_to_array(
    regexp_replace(content, '(.{4})', E'\\1\x01', 'g') || E'\x01' ||
    regexp_replace(substr(content, 2), '(.{4})', E'\\1\x01', 'g') || E'\x01' ||
    regexp_replace(substr(content, 3), '(.{4})', E'\\1\x01', 'g') || E'\x01' ||
    regexp_replace(substr(content, 4), '(.{4})', E'\\1\x01', 'g'), E'\x01'), ''))
$function$;

CREATE FUNCTION search_query(part text)
 RETURNS tsquery
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$
  SELECT coalesce(string_agg(
    '''' || replace(replace(substr(part, least(n, greatest(length(part) - 3, 1)), 4), '\', '\\'), '''', '''''')
      || CASE WHEN length(part) < 4 THEN ''':*' ELSE '''' END, ' & '
  ), '')::tsquery
  FROM generate_series(1, length(part), 4) AS n
$function$;

CREATE TABLE customers (
  id text NOT NULL,
  name text NOT NULL,
  code text NOT NULL,
  email text,
  metadata jsonb NOT NULL,
  created_at timestamp with time zone NOT NULL,
  updated_at timestamp with time zone NOT NULL,
  erasing boolean DEFAULT false NOT NULL,
  erased_at timestamp with time zone,
  erasure_revision bigint DEFAULT 0 NOT NULL,
  CONSTRAINT customers_pkey PRIMARY KEY (id),
  CONSTRAINT customers_code_key UNIQUE (code)
);
COMMENT ON TABLE customers IS 'A row is a customer that licenses, orders and subscriptions can name.';
CREATE INDEX customers_address_page ON customers USING btree (lower(email), created_at DESC, id DESC) WHERE (email IS NOT NULL);
CREATE INDEX customers_metadata ON customers USING gin (metadata jsonb_path_ops) WITH (fastupdate=off) WHERE (metadata <> '{}'::jsonb);
CREATE INDEX customers_name_page ON customers USING btree (name, id);
CREATE INDEX customers_page ON customers USING btree (created_at DESC, id DESC);
CREATE INDEX customers_search ON customers USING gin (search_grams(search_text(name, email))) WITH (fastupdate=off);

-- Subscriptions and orders

CREATE TABLE subscriptions (
  id text NOT NULL,
  product_id text NOT NULL,
  customer_id text,
  external_system text NOT NULL,
  external_id text NOT NULL,
  status text NOT NULL,
  current_period_start timestamp with time zone NOT NULL,
  current_period_end timestamp with time zone NOT NULL,
  cancel_at_period_end boolean NOT NULL,
  canceled_at timestamp with time zone,
  metadata jsonb NOT NULL,
  created_at timestamp with time zone NOT NULL,
  updated_at timestamp with time zone NOT NULL,
  observed_at timestamp with time zone,
  CONSTRAINT subscriptions_pkey PRIMARY KEY (id),
  CONSTRAINT subscriptions_customer_id_fkey FOREIGN KEY (customer_id) REFERENCES customers(id),
  CONSTRAINT subscriptions_product_id_fkey FOREIGN KEY (product_id) REFERENCES products(id),
  CONSTRAINT subscriptions_check CHECK ((current_period_end > current_period_start)),
  CONSTRAINT subscriptions_check1 CHECK (((canceled_at IS NULL) OR (status = 'canceled'::text))),
  CONSTRAINT subscriptions_external_key UNIQUE (product_id, external_system, external_id),
  CONSTRAINT subscriptions_status_check CHECK ((status = ANY (ARRAY['trialing'::text, 'active'::text, 'past_due'::text, 'paused'::text, 'canceled'::text])))
);
COMMENT ON TABLE subscriptions IS 'A row is a subscription of an external commerce system.';
CREATE INDEX subscriptions_customer_page ON subscriptions USING btree (customer_id, created_at DESC, id DESC) WHERE (customer_id IS NOT NULL);
CREATE INDEX subscriptions_end_page ON subscriptions USING btree (product_id, current_period_end, id);
CREATE INDEX subscriptions_external_id ON subscriptions USING btree (external_id, created_at DESC, id DESC);
CREATE INDEX subscriptions_external_page ON subscriptions USING btree (product_id, external_id, created_at DESC, id DESC);
CREATE INDEX subscriptions_page ON subscriptions USING btree (product_id, created_at DESC, id DESC);
CREATE INDEX subscriptions_status_page ON subscriptions USING btree (product_id, status, created_at DESC, id DESC);
CREATE INDEX subscriptions_system_page ON subscriptions USING btree (product_id, external_system, created_at DESC, id DESC);

CREATE TABLE orders (
  id text NOT NULL,
  product_id text NOT NULL,
  customer_id text,
  subscription_id text,
  external_system text NOT NULL,
  external_id text NOT NULL,
  status text NOT NULL,
  period_start timestamp with time zone,
  period_end timestamp with time zone,
  metadata jsonb NOT NULL,
  created_at timestamp with time zone NOT NULL,
  updated_at timestamp with time zone NOT NULL,
  CONSTRAINT orders_pkey PRIMARY KEY (id),
  CONSTRAINT orders_customer_id_fkey FOREIGN KEY (customer_id) REFERENCES customers(id),
  CONSTRAINT orders_product_id_fkey FOREIGN KEY (product_id) REFERENCES products(id),
  CONSTRAINT orders_subscription_id_fkey FOREIGN KEY (subscription_id) REFERENCES subscriptions(id),
  CONSTRAINT orders_check CHECK (((period_start IS NULL) = (period_end IS NULL))),
  CONSTRAINT orders_external_key UNIQUE (product_id, external_system, external_id),
  CONSTRAINT orders_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'paid'::text, 'fulfilled'::text, 'canceled'::text, 'refunded'::text])))
);
COMMENT ON TABLE orders IS 'A row is an order of an external commerce system.';
CREATE INDEX orders_customer_page ON orders USING btree (customer_id, created_at DESC, id DESC) WHERE (customer_id IS NOT NULL);
CREATE INDEX orders_external_id ON orders USING btree (external_id, created_at DESC, id DESC);
CREATE INDEX orders_external_page ON orders USING btree (product_id, external_id, created_at DESC, id DESC);
CREATE INDEX orders_page ON orders USING btree (product_id, created_at DESC, id DESC);
CREATE INDEX orders_status_page ON orders USING btree (product_id, status, created_at DESC, id DESC);
CREATE INDEX orders_subscription_page ON orders USING btree (subscription_id, created_at DESC, id DESC) WHERE (subscription_id IS NOT NULL);
CREATE INDEX orders_system_page ON orders USING btree (product_id, external_system, created_at DESC, id DESC);

-- Licenses

CREATE TABLE licenses (
  id text NOT NULL,
  product_id text NOT NULL,
  policy_id text NOT NULL,
  customer_id text,
  order_id text,
  subscription_id text,
  key_hash bytea NOT NULL,
  license_key_prefix text NOT NULL,
  license_key_last4 text NOT NULL,
  status text NOT NULL,
  customer_email text,
  customer_name text,
  starts_at timestamp with time zone,
  expires_at timestamp with time zone,
  maintenance_expires_at timestamp with time zone,
  active_device_count integer DEFAULT 0 NOT NULL,
  times_activated integer DEFAULT 0 NOT NULL,
  times_transferred integer DEFAULT 0 NOT NULL,
  total_consumptions bigint DEFAULT 0 NOT NULL,
  entitlement_counter bigint DEFAULT 1 NOT NULL,
  metadata jsonb NOT NULL,
  revision bigint DEFAULT 1 NOT NULL,
  created_at timestamp with time zone NOT NULL,
  updated_at timestamp with time zone NOT NULL,
  expiring_for timestamp with time zone,
  expiring_days smallint,
  heartbeat_from timestamp with time zone,
  not_due_before timestamp with time zone,
  activation_limit_recorded_at timestamp with time zone,
  max_activations integer,
  max_container_instances integer,
  max_floating_users integer,
  max_transfers integer,
  offline_grace_days integer,
  term_days integer,
  maintenance_told_for timestamp with time zone,
  maintenance_told_days smallint,
  kept_counts jsonb,
  term_began_at timestamp with time zone,
  self_deactivations_per_month integer,
  self_deactivated_at jsonb,
  slots_held_until timestamp with time zone,
  CONSTRAINT licenses_pkey PRIMARY KEY (id),
  CONSTRAINT licenses_customer_id_fkey FOREIGN KEY (customer_id) REFERENCES customers(id),
  CONSTRAINT licenses_order_id_fkey FOREIGN KEY (order_id) REFERENCES orders(id),
  CONSTRAINT licenses_policy_id_fkey FOREIGN KEY (policy_id) REFERENCES policies(id),
  CONSTRAINT licenses_product_id_fkey FOREIGN KEY (product_id) REFERENCES products(id),
  CONSTRAINT licenses_subscription_id_fkey FOREIGN KEY (subscription_id) REFERENCES subscriptions(id),
  CONSTRAINT licenses_active_device_count_check CHECK ((active_device_count >= 0)),
  CONSTRAINT licenses_key_hash_key UNIQUE (key_hash),
  CONSTRAINT licenses_limits_check CHECK (((max_activations >= 0) AND (max_container_instances >= 0) AND (max_floating_users >= 0) AND (max_transfers >= 0) AND (offline_grace_days >= 0) AND (term_days >= 1))),
  CONSTRAINT licenses_status_check CHECK ((status = ANY (ARRAY['active'::text, 'suspended'::text, 'expired'::text, 'revoked'::text, 'grace_period'::text])))
) WITH (fillfactor=80);
COMMENT ON TABLE licenses IS 'A row is a license, with its counters and its last written state.';
ALTER TABLE licenses ALTER COLUMN created_at SET (n_distinct=1);
CREATE INDEX licenses_customer_page ON licenses USING btree (customer_id, created_at DESC, id DESC) WHERE (customer_id IS NOT NULL);
CREATE INDEX licenses_expiry ON licenses USING btree (expires_at, id) WHERE (expires_at IS NOT NULL);
CREATE INDEX licenses_expiry_page ON licenses USING btree (COALESCE(expires_at, 'infinity'::timestamp with time zone), id);
CREATE INDEX licenses_heartbeat ON licenses USING btree (((policy_id || ''::text)), COALESCE(heartbeat_from, created_at));
CREATE INDEX licenses_last4_page ON licenses USING btree (license_key_last4, created_at DESC, id DESC);
CREATE INDEX licenses_maintenance_notice ON licenses USING btree (policy_id, (
CASE
    WHEN (maintenance_told_for = maintenance_expires_at) THEN (maintenance_told_days)::integer
    ELSE 366
END), maintenance_expires_at) WHERE (maintenance_expires_at IS NOT NULL);
CREATE INDEX licenses_maintenance_page ON licenses USING btree (COALESCE(maintenance_expires_at, 'infinity'::timestamp with time zone), id);
CREATE INDEX licenses_metadata ON licenses USING gin (metadata jsonb_path_ops) WITH (fastupdate=off) WHERE (metadata <> '{}'::jsonb);
CREATE INDEX licenses_order_page ON licenses USING btree (order_id, created_at DESC, id DESC) WHERE (order_id IS NOT NULL);
CREATE INDEX licenses_page ON licenses USING btree (created_at DESC, id DESC);
CREATE INDEX licenses_policy_page ON licenses USING btree (policy_id, created_at DESC, id DESC);
CREATE INDEX licenses_product_customer ON licenses USING btree (product_id, customer_id, created_at DESC, id DESC) WHERE (customer_id IS NOT NULL);
CREATE INDEX licenses_product_page ON licenses USING btree (product_id, created_at DESC, id DESC);
CREATE INDEX licenses_search ON licenses USING gin (search_grams(search_text(customer_name, customer_email))) WITH (fastupdate=off);
CREATE INDEX licenses_subscription_page ON licenses USING btree (subscription_id, created_at DESC, id DESC) WHERE (subscription_id IS NOT NULL);

CREATE TABLE license_features (
  license_id text NOT NULL,
  feature_id text NOT NULL,
  enabled boolean NOT NULL,
  max_consumptions bigint,
  total_consumptions bigint DEFAULT 0 NOT NULL,
  expires_at timestamp with time zone,
  metadata jsonb NOT NULL,
  created_at timestamp with time zone NOT NULL,
  updated_at timestamp with time zone NOT NULL,
  expiry_recorded boolean DEFAULT false NOT NULL,
  from_policy boolean DEFAULT false NOT NULL,
  expires_after_days integer,
  reset_period text,
  reset_anchor text,
  rollover_max bigint,
  overage_max bigint,
  credits_used bigint,
  overage bigint,
  rolled_over bigint,
  extra_credits bigint,
  period_anchor timestamp with time zone,
  periods_end_at timestamp with time zone,
  period_start timestamp with time zone,
  resets_at timestamp with time zone,
  expires_with_license boolean,
  CONSTRAINT license_features_pkey PRIMARY KEY (license_id, feature_id),
  CONSTRAINT license_features_feature_id_fkey FOREIGN KEY (feature_id) REFERENCES features(id),
  CONSTRAINT license_features_license_id_fkey FOREIGN KEY (license_id) REFERENCES licenses(id),
  CONSTRAINT license_features_expires_after_days_check CHECK ((expires_after_days >= 1)),
  CONSTRAINT license_features_expires_with_license_check CHECK (expires_with_license),
  CONSTRAINT license_features_max_consumptions_check CHECK ((max_consumptions >= 0)),
  CONSTRAINT license_features_quota_check CHECK (((rollover_max >= 0) AND (overage_max >= '-1'::integer) AND (credits_used > 0) AND (overage > 0) AND (rolled_over > 0) AND (extra_credits > 0))),
  CONSTRAINT license_features_reset_anchor_check CHECK ((reset_anchor = ANY (ARRAY['license'::text, 'subscription'::text]))),
  CONSTRAINT license_features_reset_period_check CHECK ((reset_period = ANY (ARRAY['day'::text, 'week'::text, 'month'::text, 'year'::text, 'subscription'::text]))),
  CONSTRAINT license_features_total_consumptions_check CHECK ((total_consumptions >= 0))
) WITH (fillfactor=80);
COMMENT ON TABLE license_features IS 'A row assigns a feature to a license, with its limit and what was consumed of it.';
CREATE INDEX license_features_expiry ON license_features USING btree ((expires_at AT TIME ZONE 'UTC'::text)) WHERE (enabled AND (NOT expiry_recorded) AND (expires_at IS NOT NULL));
CREATE INDEX license_features_feature ON license_features USING btree (feature_id);
CREATE INDEX license_features_license_expiry ON license_features USING btree (license_id, expires_at) WHERE (enabled AND (NOT expiry_recorded) AND (expires_at IS NOT NULL));
CREATE INDEX license_features_resets ON license_features USING btree (resets_at) WHERE (resets_at IS NOT NULL);

CREATE TABLE vendor_key_use (
  "only" boolean DEFAULT true NOT NULL,
  known boolean NOT NULL,
  CONSTRAINT vendor_key_use_pkey PRIMARY KEY ("only"),
  CONSTRAINT vendor_key_use_only_check CHECK ("only")
);
COMMENT ON TABLE vendor_key_use IS 'Its only row, if there is one, says that licenses may have keys that the vendor chose.';

CREATE TABLE public_trials (
  product_id text NOT NULL,
  binding_kind text NOT NULL,
  binding_hash bytea NOT NULL,
  license_id text NOT NULL,
  created_at timestamp with time zone NOT NULL,
  CONSTRAINT public_trials_pkey PRIMARY KEY (product_id, binding_kind, binding_hash),
  CONSTRAINT public_trials_product_id_fkey FOREIGN KEY (product_id) REFERENCES products(id) ON DELETE CASCADE
);
COMMENT ON TABLE public_trials IS 'A row is a device that has used its trial of a product. It stays when the trial''s license is gone.';

-- License states

CREATE FUNCTION license_notice(status text, expires_at timestamp with time zone, expiring_for timestamp with time zone, expiring_days smallint)
 RETURNS smallint
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$
  SELECT CASE WHEN status <> 'active' OR expires_at IS NULL THEN NULL
    WHEN expiring_for = expires_at THEN expiring_days + (expiring_days >= 8)::integer ELSE 8 END
$function$;

CREATE TABLE license_states (
  status text NOT NULL,
  created_at timestamp with time zone NOT NULL,
  license_id text NOT NULL,
  policy_id text NOT NULL,
  expires_at timestamp with time zone,
  notice smallint,
  CONSTRAINT license_states_pkey PRIMARY KEY (status, created_at, license_id)
);
COMMENT ON TABLE license_states IS 'A row is the state of a license, copied from licenses in the same statement, to find licenses by state.';
ALTER TABLE license_states ALTER COLUMN created_at SET (n_distinct=1);
CREATE INDEX license_states_active ON license_states USING btree (policy_id, expires_at) WHERE (status = 'active'::text);
CREATE INDEX license_states_clock ON license_states USING btree ((((policy_id || ' '::text) || status)), (expires_at AT TIME ZONE 'UTC'::text)) WHERE (expires_at IS NOT NULL);
CREATE INDEX license_states_past ON license_states USING btree ((
CASE
    WHEN (status = ANY (ARRAY['grace_period'::text, 'expired'::text])) THEN (expires_at AT TIME ZONE 'UTC'::text)
    ELSE NULL::timestamp without time zone
END)) WHERE (status = ANY (ARRAY['grace_period'::text, 'expired'::text]));
CREATE INDEX license_states_reminder ON license_states USING btree (policy_id, notice, (expires_at AT TIME ZONE 'UTC'::text)) WHERE (notice IS NOT NULL);

CREATE FUNCTION keep_license_state()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
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
END $function$;
CREATE TRIGGER licenses_restated AFTER UPDATE OF status, expires_at, expiring_for, expiring_days, policy_id, created_at, id ON licenses FOR EACH ROW WHEN ((((old.status IS DISTINCT FROM new.status) OR (old.expires_at IS DISTINCT FROM new.expires_at) OR (old.expiring_for IS DISTINCT FROM new.expiring_for) OR (old.expiring_days IS DISTINCT FROM new.expiring_days) OR (old.policy_id IS DISTINCT FROM new.policy_id) OR (old.created_at IS DISTINCT FROM new.created_at) OR (old.id IS DISTINCT FROM new.id)) AND (current_setting('licensing.states_kept'::text, true) IS DISTINCT FROM 'on'::text))) EXECUTE FUNCTION keep_license_state();
CREATE TRIGGER licenses_state AFTER INSERT OR DELETE ON licenses FOR EACH ROW EXECUTE FUNCTION keep_license_state();

-- Custom fields

CREATE TABLE custom_field_definitions (
  id text NOT NULL,
  product_id text NOT NULL,
  resource_type text NOT NULL,
  code text NOT NULL,
  name text NOT NULL,
  value_type text NOT NULL,
  is_required boolean NOT NULL,
  enum_options text[] NOT NULL,
  metadata jsonb NOT NULL,
  created_at timestamp with time zone NOT NULL,
  updated_at timestamp with time zone NOT NULL,
  CONSTRAINT custom_field_definitions_pkey PRIMARY KEY (id),
  CONSTRAINT custom_field_definitions_product_id_fkey FOREIGN KEY (product_id) REFERENCES products(id),
  CONSTRAINT custom_field_definitions_check CHECK (((value_type = 'enum'::text) = (cardinality(enum_options) > 0))),
  CONSTRAINT custom_field_definitions_code_key UNIQUE (product_id, resource_type, code),
  CONSTRAINT custom_field_definitions_resource_type_check CHECK ((resource_type = ANY (ARRAY['license'::text, 'customer'::text]))),
  CONSTRAINT custom_field_definitions_value_type_check CHECK ((value_type = ANY (ARRAY['string'::text, 'integer'::text, 'boolean'::text, 'datetime'::text, 'enum'::text])))
);
COMMENT ON TABLE custom_field_definitions IS 'A row defines a custom field of a product''s licenses or customers.';
CREATE INDEX custom_field_definitions_page ON custom_field_definitions USING btree (product_id, created_at DESC, id DESC);

CREATE TABLE custom_field_values (
  definition_id text NOT NULL,
  license_id text,
  customer_id text,
  string_value text,
  integer_value bigint,
  boolean_value boolean,
  datetime_value timestamp with time zone,
  enum_value text,
  created_at timestamp with time zone NOT NULL,
  updated_at timestamp with time zone NOT NULL,
  CONSTRAINT custom_field_values_customer_id_fkey FOREIGN KEY (customer_id) REFERENCES customers(id) ON DELETE CASCADE,
  CONSTRAINT custom_field_values_definition_id_fkey FOREIGN KEY (definition_id) REFERENCES custom_field_definitions(id),
  CONSTRAINT custom_field_values_license_id_fkey FOREIGN KEY (license_id) REFERENCES licenses(id),
  CONSTRAINT custom_field_values_check CHECK ((num_nonnulls(license_id, customer_id) = 1)),
  CONSTRAINT custom_field_values_check1 CHECK ((num_nonnulls(string_value, integer_value, boolean_value, datetime_value, enum_value) = 1))
);
COMMENT ON TABLE custom_field_values IS 'A row is the value of a custom field of one license or customer, in the column of its type.';
CREATE UNIQUE INDEX custom_field_values_customer ON custom_field_values USING btree (customer_id, definition_id) WHERE (customer_id IS NOT NULL);
CREATE INDEX custom_field_values_customer_page ON custom_field_values USING btree (customer_id, created_at DESC, definition_id DESC) WHERE (customer_id IS NOT NULL);
CREATE INDEX custom_field_values_definition ON custom_field_values USING btree (definition_id, enum_value);
CREATE UNIQUE INDEX custom_field_values_license ON custom_field_values USING btree (license_id, definition_id) WHERE (license_id IS NOT NULL);
CREATE INDEX custom_field_values_license_page ON custom_field_values USING btree (license_id, created_at DESC, definition_id DESC) WHERE (license_id IS NOT NULL);

-- Devices

CREATE FUNCTION fingerprint_hash(fingerprint text)
 RETURNS bytea
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE STRICT
AS $function$
  SELECT sha256(convert_to(fingerprint, 'UTF8'))
$function$;

CREATE TABLE devices (
  id text NOT NULL,
  license_id text NOT NULL,
  binding_kind text NOT NULL,
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
  status text NOT NULL,
  holds_slot boolean NOT NULL,
  activated_at timestamp with time zone,
  first_seen_at timestamp with time zone NOT NULL,
  last_seen_at timestamp with time zone NOT NULL,
  last_validated_at timestamp with time zone,
  metadata jsonb NOT NULL,
  created_at timestamp with time zone NOT NULL,
  updated_at timestamp with time zone NOT NULL,
  listed_as text GENERATED ALWAYS AS (COALESCE(NULLIF(NULLIF(status, 'active'::text), 'deactivated'::text), 'either'::text)) STORED NOT NULL,
  due_at timestamp with time zone,
  offline_expires_at timestamp with time zone,
  slot_held_until timestamp with time zone,
  CONSTRAINT devices_pkey PRIMARY KEY (id),
  CONSTRAINT devices_license_id_fkey FOREIGN KEY (license_id) REFERENCES licenses(id),
  CONSTRAINT devices_binding_kind_check CHECK ((binding_kind = ANY (ARRAY['hardware'::text, 'container'::text]))),
  CONSTRAINT devices_status_check CHECK ((status = ANY (ARRAY['active'::text, 'deactivated'::text, 'blacklisted'::text, 'reset'::text, 'expired'::text])))
) WITH (fillfactor=80);
COMMENT ON TABLE devices IS 'A row is a device or container that has used a license.';
CREATE UNIQUE INDEX devices_binding_key ON devices USING btree (license_id, binding_kind, binding_key);
CREATE INDEX devices_container_page ON devices USING btree (created_at DESC, id DESC) WHERE (binding_kind = 'container'::text);
CREATE INDEX devices_created_page ON devices USING btree (created_at DESC, id DESC);
CREATE INDEX devices_ended_page ON devices USING btree (listed_as, created_at DESC, id DESC) WHERE (listed_as <> 'either'::text);
CREATE INDEX devices_fingerprint_page ON devices USING btree (fingerprint_hash(fingerprint), created_at DESC, id DESC) WHERE (fingerprint IS NOT NULL);
CREATE INDEX devices_hostname_page ON devices USING btree (lower(hostname), created_at DESC, id DESC) WHERE (hostname IS NOT NULL);
CREATE INDEX devices_listed_page ON devices USING btree (license_id, listed_as, holds_slot, created_at DESC, id DESC);
CREATE INDEX devices_page ON devices USING btree (license_id, created_at DESC, id DESC);

-- Leases

CREATE TABLE leases (
  id text NOT NULL,
  license_id text NOT NULL,
  device_id text NOT NULL,
  token_hash bytea NOT NULL,
  status text NOT NULL,
  checked_out_at timestamp with time zone NOT NULL,
  heartbeat_at timestamp with time zone NOT NULL,
  expires_at timestamp with time zone NOT NULL,
  ended_at timestamp with time zone,
  sweep_at timestamp with time zone,
  borrowed_until timestamp with time zone,
  CONSTRAINT leases_pkey PRIMARY KEY (id),
  CONSTRAINT leases_device_id_fkey FOREIGN KEY (device_id) REFERENCES devices(id),
  CONSTRAINT leases_status_check CHECK ((status = ANY (ARRAY['live'::text, 'checked_in'::text, 'superseded'::text, 'expired'::text, 'ended'::text, 'blacklisted'::text]))),
  CONSTRAINT leases_token_hash_key UNIQUE (token_hash)
) WITH (fillfactor=50);
COMMENT ON TABLE leases IS 'A row is a floating seat that a device has, or had, checked out.';
CREATE UNIQUE INDEX leases_device_live ON leases USING btree (device_id) WHERE (status = 'live'::text);
CREATE INDEX leases_ended ON leases USING btree (ended_at) WHERE (ended_at IS NOT NULL);
CREATE INDEX leases_live ON leases USING btree (license_id, COALESCE(sweep_at, checked_out_at)) WHERE (status = 'live'::text);
CREATE INDEX leases_live_page ON leases USING btree (license_id, checked_out_at DESC, id DESC) WHERE (status = 'live'::text);
CREATE INDEX leases_sweep ON leases USING btree (COALESCE(sweep_at, checked_out_at), id) WHERE (status = 'live'::text);

-- Events and usage ledger

CREATE TABLE event_sequence (
  "only" boolean DEFAULT true NOT NULL,
  last bigint NOT NULL,
  ledger_last bigint NOT NULL,
  webhooks_revision bigint DEFAULT 1 NOT NULL,
  refusals_last bigint DEFAULT 0 NOT NULL,
  waiting_from xid8 DEFAULT '0'::xid8 NOT NULL,
  CONSTRAINT event_sequence_pkey PRIMARY KEY ("only"),
  CONSTRAINT event_sequence_only_check CHECK ("only")
) WITH (fillfactor=10);
COMMENT ON TABLE event_sequence IS 'The only row is the counters of events, ledger rows and refusals; every transaction that appends locks it last, which makes the sequences gapless and commit-ordered.';

CREATE TABLE event_log (
  sequence bigint NOT NULL,
  event_type text NOT NULL,
  actor_type text NOT NULL,
  actor_id text NOT NULL,
  resource_type text NOT NULL,
  resource_id text,
  ip_address text,
  metadata jsonb NOT NULL,
  created_at timestamp with time zone NOT NULL,
  actor_name text,
  CONSTRAINT events_pkey PRIMARY KEY (sequence),
  CONSTRAINT events_actor_type_check CHECK ((actor_type = ANY (ARRAY['api_key'::text, 'license'::text, 'oidc_subject'::text, 'system'::text])))
) PARTITION BY RANGE (sequence);
COMMENT ON TABLE event_log IS 'A row is an event that is not a row of usage_ledger.';
CREATE INDEX events_actor_type ON event_log USING btree (actor_type, sequence DESC) WITH (deduplicate_items=off);
CREATE INDEX events_of_license ON event_log USING btree (((metadata ->> 'license_id'::text)), sequence DESC) WITH (deduplicate_items=off) WHERE (resource_type = ANY (ARRAY['device'::text, 'lease'::text]));
CREATE INDEX events_resource ON event_log USING btree (resource_id, sequence DESC) WITH (deduplicate_items=off);
CREATE INDEX events_resource_type ON event_log USING btree (resource_type, sequence DESC) WITH (deduplicate_items=off);
CREATE INDEX events_type ON event_log USING btree (event_type, sequence DESC) WITH (deduplicate_items=off);

CREATE TABLE usage_ledger (
  sequence bigint NOT NULL,
  license_id text NOT NULL,
  feature_id text NOT NULL,
  action text NOT NULL,
  event_id text,
  amount bigint NOT NULL,
  balance_after bigint NOT NULL,
  max_after bigint,
  device_id text,
  actor_type text NOT NULL,
  actor_id text NOT NULL,
  request_id text NOT NULL,
  occurred_at timestamp with time zone NOT NULL,
  event_sequence bigint,
  event_feature_code text,
  event_ip_address text,
  credits bigint,
  overage bigint,
  reverses text,
  actor_name text,
  CONSTRAINT usage_ledger_pkey PRIMARY KEY (sequence),
  CONSTRAINT usage_ledger_action_check CHECK ((action = ANY (ARRAY['consume'::text, 'reverse'::text, 'reset'::text, 'period_reset'::text, 'top_up'::text, 'set_limit'::text]))),
  CONSTRAINT usage_ledger_event_check CHECK (((event_sequence IS NULL) OR ((action = 'consume'::text) AND (actor_type = 'license'::text) AND (event_feature_code IS NOT NULL) AND (event_id IS NOT NULL) AND (device_id IS NOT NULL))))
) PARTITION BY RANGE (sequence);
COMMENT ON TABLE usage_ledger IS 'A row is a change of what a license has consumed of a feature or may consume; a consumption is at the same time its event.';
CREATE INDEX usage_ledger_license ON usage_ledger USING btree (license_id, sequence) WITH (deduplicate_items=off);
CREATE INDEX usage_ledger_time ON usage_ledger USING brin (occurred_at) WITH (pages_per_range='32', autosummarize='on');

CREATE VIEW events AS
 SELECT sequence,
    event_type,
    actor_type,
    actor_id,
    resource_type,
    resource_id,
    ip_address,
    metadata,
    created_at,
    actor_name
   FROM ( SELECT event_log.sequence,
            event_log.event_type,
            event_log.actor_type,
            event_log.actor_id,
            event_log.resource_type,
            event_log.resource_id,
            event_log.ip_address,
            event_log.metadata,
            event_log.created_at,
            event_log.actor_name
           FROM event_log
        UNION ALL
         SELECT usage_ledger.event_sequence AS sequence,
            'usage.consumed'::text AS event_type,
            'license'::text AS actor_type,
            usage_ledger.actor_id,
            'license'::text AS resource_type,
            usage_ledger.license_id AS resource_id,
            usage_ledger.event_ip_address AS ip_address,
            jsonb_strip_nulls(jsonb_build_object('feature_id', usage_ledger.feature_id, 'feature_code', usage_ledger.event_feature_code, 'amount', usage_ledger.amount, 'event_id', usage_ledger.event_id, 'balance_after', usage_ledger.balance_after, 'max_after', usage_ledger.max_after, 'device_id', usage_ledger.device_id, 'request_id', usage_ledger.request_id)) AS metadata,
            usage_ledger.occurred_at AS created_at,
            NULL::text AS actor_name
           FROM usage_ledger) event
  WHERE (sequence IS NOT NULL);
COMMENT ON VIEW events IS 'A row is an event: all of event_log, and the consumptions of usage_ledger.';

-- Entries that wait for their numbers

CREATE TABLE waiting_entries (
  sequence bigint GENERATED BY DEFAULT AS IDENTITY (INCREMENT BY 1048576 MINVALUE 4611686018427387904) NOT NULL,
  writer xid8 DEFAULT pg_current_xact_id() NOT NULL,
  event_type text,
  resource_type text,
  resource_id text,
  metadata jsonb,
  license_id text,
  feature_id text,
  action text,
  event_id text,
  amount bigint,
  balance_after bigint,
  max_after bigint,
  credits bigint,
  overage bigint,
  reverses text,
  device_id text,
  request_id text,
  feature_code text,
  actor_type text NOT NULL,
  actor_id text NOT NULL,
  actor_name text,
  ip_address text,
  occurred_at timestamp with time zone NOT NULL,
  CONSTRAINT waiting_entries_action_check CHECK ((action = ANY (ARRAY['consume'::text, 'reverse'::text, 'reset'::text, 'period_reset'::text, 'top_up'::text, 'set_limit'::text]))),
  CONSTRAINT waiting_entries_actor_type_check CHECK ((actor_type = ANY (ARRAY['api_key'::text, 'license'::text, 'oidc_subject'::text, 'system'::text]))),
  CONSTRAINT waiting_entries_event_check CHECK (((action <> 'consume'::text) OR ((actor_type = 'license'::text) AND (feature_code IS NOT NULL) AND (event_id IS NOT NULL) AND (device_id IS NOT NULL)))),
  CONSTRAINT waiting_entries_kind_check CHECK (
CASE
    WHEN (action IS NULL) THEN ((event_type IS NOT NULL) AND (resource_type IS NOT NULL) AND (metadata IS NOT NULL))
    ELSE ((event_type IS NULL) AND (license_id IS NOT NULL) AND (feature_id IS NOT NULL) AND (amount IS NOT NULL) AND (balance_after IS NOT NULL) AND (request_id IS NOT NULL))
END)
) WITH (autovacuum_vacuum_threshold=10000, autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_cost_delay=0);
COMMENT ON TABLE waiting_entries IS 'A row is an event or a row of usage_ledger that is committed and gets its number when the event counter is next locked, some milliseconds later. Its sequence is above all numbers.';
CREATE INDEX waiting_entries_writer ON waiting_entries USING btree (writer) WITH (deduplicate_items=off);

CREATE FUNCTION waiting_since(counter event_sequence)
 RETURNS xid8
 LANGUAGE sql
AS $function$
  SELECT CASE WHEN counter.waiting_from <= pg_snapshot_xmax(pg_current_snapshot()) THEN counter.waiting_from ELSE '0' END
$function$;

CREATE FUNCTION subscribes(event_types text[], event_type text)
 RETURNS boolean
 LANGUAGE sql
 IMMUTABLE
AS $function$
  SELECT event_types = '{}' OR event_types && ARRAY[event_type, split_part(event_type, '.', 1) || '.*']
$function$;

CREATE FUNCTION number_waiting_entries()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
DECLARE
  since xid8 := waiting_since(OLD);
  ended xid8 := pg_snapshot_xmin(pg_current_snapshot());
  last_number bigint;
  last_ledger_number bigint;
BEGIN
  NEW.waiting_from := since;
  IF NOT EXISTS (SELECT FROM waiting_entries WHERE writer >= since) THEN
    RETURN NEW;
  END IF;
  WITH taken AS (DELETE FROM waiting_entries WHERE writer >= since RETURNING *),
  numbered AS (
    SELECT taken.*, OLD.last + count(*) FILTER (WHERE action IS NULL OR action = 'consume') OVER earlier AS number,
      OLD.ledger_last + count(action) OVER earlier AS ledger_number
    FROM taken WINDOW earlier AS (ORDER BY sequence ROWS UNBOUNDED PRECEDING)
  ),
  logged AS (
    INSERT INTO event_log (sequence, event_type, actor_type, actor_id, actor_name, resource_type, resource_id, ip_address,
      metadata, created_at)
    SELECT number, event_type, actor_type, actor_id, actor_name, resource_type, resource_id, ip_address, metadata, occurred_at
    FROM numbered WHERE action IS NULL
    RETURNING sequence, event_type, created_at
  ),
  used AS (
    INSERT INTO usage_ledger (sequence, license_id, feature_id, action, event_id, amount, balance_after, max_after, credits,
      overage, reverses, device_id, actor_type, actor_id, actor_name, request_id, occurred_at, event_sequence,
      event_feature_code, event_ip_address)
    SELECT ledger_number, license_id, feature_id, action, event_id, amount, balance_after, max_after, credits,
      overage, reverses, device_id, actor_type, actor_id, actor_name, request_id, occurred_at,
      CASE WHEN action = 'consume' THEN number END, feature_code, ip_address
    FROM numbered WHERE action IS NOT NULL
    RETURNING event_sequence, occurred_at
  ),
  event (sequence, event_type, created_at) AS (
    SELECT sequence, event_type, created_at FROM logged
    UNION ALL SELECT event_sequence, 'usage.consumed', occurred_at FROM used WHERE event_sequence IS NOT NULL
  ),
  delivery AS (
    INSERT INTO webhook_deliveries (endpoint_id, sequence, due_at, created_at)
    SELECT endpoint.id, event.sequence, event.created_at, event.created_at
    FROM event JOIN webhook_endpoints endpoint ON endpoint.is_active AND subscribes(endpoint.event_types, event.event_type)
  )
  SELECT max(number), max(ledger_number) INTO last_number, last_ledger_number FROM numbered;
  NEW.last := NEW.last + coalesce(last_number - OLD.last, 0);
  NEW.ledger_last := NEW.ledger_last + coalesce(last_ledger_number - OLD.ledger_last, 0);
  NEW.waiting_from := ended;
  RETURN NEW;
END $function$;
CREATE TRIGGER event_sequence_waiting BEFORE UPDATE ON event_sequence FOR EACH ROW EXECUTE FUNCTION number_waiting_entries();

-- Partitions of events and usage ledger

CREATE TABLE sequence_partitions (
  name text NOT NULL,
  parent text NOT NULL,
  first_sequence bigint NOT NULL,
  end_sequence bigint,
  first_event bigint,
  planned_end bigint,
  detached_at timestamp with time zone,
  newest_at timestamp with time zone,
  CONSTRAINT sequence_partitions_pkey PRIMARY KEY (name),
  CONSTRAINT sequence_partitions_first_key UNIQUE (parent, first_sequence),
  CONSTRAINT sequence_partitions_parent_check CHECK ((parent = ANY (ARRAY['event_log'::text, 'usage_ledger'::text])))
);
COMMENT ON TABLE sequence_partitions IS 'A row is a partition of event_log or usage_ledger; detached ones keep their row.';
CREATE INDEX sequence_partitions_event ON sequence_partitions USING btree (parent, first_event);

CREATE FUNCTION make_partition(parent text, name text)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
BEGIN
  EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING INDEXES)', name, parent);
  IF parent = 'usage_ledger' THEN
    EXECUTE format('CREATE UNIQUE INDEX %I ON %I (event_sequence) WITH (deduplicate_items = off) WHERE event_sequence IS NOT NULL',
      name || '_event', name);
    EXECUTE format('CREATE UNIQUE INDEX %I ON %I (license_id, event_sequence) WITH (deduplicate_items = off) '
      'WHERE event_sequence IS NOT NULL', name || '_license_event', name);
  END IF;
END $function$;

CREATE FUNCTION ends_partitions()
 RETURNS boolean
 LANGUAGE sql
 IMMUTABLE
AS $function$
  SELECT current_setting('licensing.ends_partitions', true) IS NOT DISTINCT FROM 'on'
$function$;

CREATE FUNCTION event_numbered(number bigint)
 RETURNS SETOF events
 LANGUAGE sql
 STABLE
AS $function$
  SELECT event.sequence, event.event_type, event.actor_type, event.actor_id, event.resource_type, event.resource_id,
    event.ip_address, event.metadata, event.created_at, event.actor_name
  FROM (
    SELECT (SELECT p.first_sequence FROM sequence_partitions p
        WHERE p.parent = 'usage_ledger' AND p.first_event <= number ORDER BY p.first_event DESC LIMIT 1) AS first,
      (SELECT p.first_sequence FROM sequence_partitions p
        WHERE p.parent = 'usage_ledger' AND p.first_event > number ORDER BY p.first_event LIMIT 1) AS beyond
    OFFSET 0
  ) AS ledger CROSS JOIN LATERAL (
    SELECT l.sequence, l.event_type, l.actor_type, l.actor_id, l.resource_type, l.resource_id, l.ip_address, l.metadata,
      l.created_at, l.actor_name
    FROM event_log l WHERE l.sequence = number
    UNION ALL
    SELECT u.event_sequence, 'usage.consumed', 'license', u.actor_id, 'license', u.license_id, u.event_ip_address,
      jsonb_strip_nulls(jsonb_build_object('feature_id', u.feature_id, 'feature_code', u.event_feature_code, 'amount', u.amount,
        'event_id', u.event_id, 'balance_after', u.balance_after, 'max_after', u.max_after, 'device_id', u.device_id,
        'request_id', u.request_id)),
      u.occurred_at, NULL
    FROM usage_ledger u
    WHERE u.event_sequence = number AND u.sequence >= ledger.first
      AND u.sequence < coalesce(ledger.beyond, 9223372036854775807)
  ) AS event
$function$;

-- Event ids of consumptions

CREATE TABLE usage_event_ids (
  event_digest bigint NOT NULL,
  feature_digest bigint NOT NULL,
  amount bigint NOT NULL,
  license_digest integer NOT NULL,
  event_digest_rest integer NOT NULL,
  CONSTRAINT usage_ledger_event_id PRIMARY KEY (license_digest, event_digest_rest, event_digest)
);
COMMENT ON TABLE usage_event_ids IS 'A row is an event id that a license has used, with what was counted under it; rows are never deleted.';

CREATE VIEW earlier_event_ids AS
 SELECT NULL::bigint AS sequence,
    NULL::text AS license_id,
    NULL::text AS event_id,
    NULL::text AS feature_id,
    NULL::bigint AS amount
  WHERE false;
COMMENT ON VIEW earlier_event_ids IS 'A row is an event id that is not in usage_event_ids yet.';

CREATE TABLE event_id_copy (
  "only" boolean DEFAULT true NOT NULL,
  copied bigint NOT NULL,
  until bigint NOT NULL,
  CONSTRAINT event_id_copy_pkey PRIMARY KEY ("only"),
  CONSTRAINT event_id_copy_only_check CHECK ("only")
);
COMMENT ON TABLE event_id_copy IS 'The only row, if any, is up to which ledger row event ids were copied to usage_event_ids, and up to which they must be.';

CREATE FUNCTION copy_event_ids(after bigint, until bigint)
 RETURNS void
 LANGUAGE sql
AS $function$
  INSERT INTO usage_event_ids (event_digest, feature_digest, amount, license_digest, event_digest_rest)
  SELECT hashtextextended(event_id, hashtextextended(license_id, 0)), hashtextextended(feature_id, 0), amount, hashtext(license_id),
    hashtext(event_id)
  FROM usage_ledger WHERE sequence > after AND sequence <= until AND event_id IS NOT NULL
  ORDER BY 4, 5, 1
  ON CONFLICT DO NOTHING
$function$;

CREATE FUNCTION counted_event(license text, event text)
 RETURNS TABLE(feature_digest bigint, amount bigint)
 LANGUAGE sql
 STABLE
AS $function$
  SELECT used.feature_digest, used.amount FROM usage_event_ids used
  WHERE used.license_digest = hashtext(license) AND used.event_digest_rest = hashtext(event)
    AND used.event_digest = hashtextextended(event, hashtextextended(license, 0))
  UNION ALL
  SELECT hashtextextended(earlier.feature_id, 0), earlier.amount FROM earlier_event_ids earlier
  WHERE earlier.license_id = license AND earlier.event_id = event
  LIMIT 1
$function$;

CREATE FUNCTION keep_event_ids()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF pg_trigger_depth() > 1 THEN
    RETURN NULL;
  END IF;
  IF EXISTS (
    SELECT FROM added CROSS JOIN LATERAL (
      SELECT FROM earlier_event_ids earlier WHERE earlier.license_id = added.license_id AND earlier.event_id = added.event_id
        AND earlier.sequence < added.sequence LIMIT 1
    ) AS earlier
  ) THEN
    RAISE unique_violation USING CONSTRAINT = 'usage_ledger_event_id', TABLE = 'usage_event_ids',
      MESSAGE = 'the license has used the event id before';
  END IF;
  INSERT INTO usage_event_ids (event_digest, feature_digest, amount, license_digest, event_digest_rest)
  SELECT hashtextextended(event_id, hashtextextended(license_id, 0)), hashtextextended(feature_id, 0), amount, hashtext(license_id),
    hashtext(event_id)
  FROM added WHERE event_id IS NOT NULL;
  RETURN NULL;
END $function$;
CREATE TRIGGER usage_ledger_event_ids AFTER INSERT ON usage_ledger REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION keep_event_ids();
CREATE TRIGGER waiting_entries_event_ids AFTER INSERT ON waiting_entries REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION keep_event_ids();

-- Usage sums

CREATE TABLE usage_rollup (
  unit text NOT NULL,
  bucket_start timestamp with time zone NOT NULL,
  product_id text NOT NULL,
  feature_id text NOT NULL,
  consumed numeric NOT NULL,
  consumptions bigint NOT NULL,
  reset numeric NOT NULL,
  topped_up numeric NOT NULL,
  licenses bigint NOT NULL,
  reversed numeric DEFAULT 0 NOT NULL,
  overage numeric DEFAULT 0 NOT NULL,
  credits_used numeric DEFAULT 0 NOT NULL,
  CONSTRAINT usage_rollup_pkey PRIMARY KEY (product_id, unit, bucket_start, feature_id),
  CONSTRAINT usage_rollup_unit_check CHECK ((unit = ANY (ARRAY['hour'::text, 'day'::text])))
);
COMMENT ON TABLE usage_rollup IS 'A row is the sums of the usage ledger of one product and feature in one hour or day of UTC.';
CREATE INDEX usage_rollup_time ON usage_rollup USING btree (unit, bucket_start);

CREATE TABLE usage_rollup_progress (
  "only" boolean DEFAULT true NOT NULL,
  sequence bigint NOT NULL,
  CONSTRAINT usage_rollup_progress_pkey PRIMARY KEY ("only"),
  CONSTRAINT usage_rollup_progress_only_check CHECK ("only")
) WITH (fillfactor=10);
COMMENT ON TABLE usage_rollup_progress IS 'The only row is the number of the last ledger row that usage_rollup_days has counted.';

CREATE TABLE usage_rollup_days (
  day timestamp with time zone NOT NULL,
  ledger_rows bigint NOT NULL,
  rolled_rows bigint DEFAULT 0 NOT NULL,
  seen_at timestamp with time zone NOT NULL,
  CONSTRAINT usage_rollup_days_pkey PRIMARY KEY (day)
) WITH (fillfactor=50);
COMMENT ON TABLE usage_rollup_days IS 'A row is a day of UTC with its number of ledger rows; reports read the ledger for a day whose sums lack some of them.';
CREATE INDEX usage_rollup_days_open ON usage_rollup_days USING btree (day) WHERE (rolled_rows <> ledger_rows);

-- Webhooks

CREATE TABLE webhook_endpoints (
  id text NOT NULL,
  name text NOT NULL,
  url text NOT NULL,
  event_types text[] NOT NULL,
  is_active boolean NOT NULL,
  disabled_reason text,
  secret_prefix text NOT NULL,
  secret_sealed bytea NOT NULL,
  previous_secret_sealed bytea,
  previous_secret_until timestamp with time zone,
  revision bigint DEFAULT 1 NOT NULL,
  exhausted_in_a_row integer DEFAULT 0 NOT NULL,
  last_success_at timestamp with time zone,
  last_failure_at timestamp with time zone,
  last_failure text,
  created_at timestamp with time zone NOT NULL,
  updated_at timestamp with time zone NOT NULL,
  CONSTRAINT webhook_endpoints_pkey PRIMARY KEY (id),
  CONSTRAINT webhook_endpoints_disabled_reason_check CHECK ((disabled_reason = ANY (ARRAY['gone'::text, 'exhausted'::text])))
) WITH (fillfactor=50);
COMMENT ON TABLE webhook_endpoints IS 'A row is a URL that receives events.';
CREATE INDEX webhook_endpoints_active ON webhook_endpoints USING btree (id) WHERE is_active;
CREATE INDEX webhook_endpoints_active_page ON webhook_endpoints USING btree (is_active, created_at DESC, id DESC);
CREATE INDEX webhook_endpoints_page ON webhook_endpoints USING btree (created_at DESC, id DESC);

CREATE TABLE webhook_deliveries (
  endpoint_id text NOT NULL,
  sequence bigint NOT NULL,
  status text DEFAULT 'pending'::text NOT NULL,
  attempts smallint DEFAULT 0 NOT NULL,
  due_at timestamp with time zone NOT NULL,
  leased_until timestamp with time zone,
  created_at timestamp with time zone NOT NULL,
  finished_at timestamp with time zone,
  CONSTRAINT webhook_deliveries_pkey PRIMARY KEY (endpoint_id, sequence),
  CONSTRAINT webhook_deliveries_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'delivered'::text, 'exhausted'::text])))
) WITH (fillfactor=60, autovacuum_vacuum_scale_factor=0.02, autovacuum_vacuum_insert_scale_factor=0.05);
COMMENT ON TABLE webhook_deliveries IS 'A row is the delivery of one event to one endpoint, written in the transaction of the event.';
CREATE INDEX webhook_deliveries_due ON webhook_deliveries USING btree (endpoint_id, due_at, sequence) WHERE (status = 'pending'::text);

CREATE TABLE webhook_delivery_counts (
  endpoint_id text NOT NULL,
  period timestamp with time zone NOT NULL,
  delivered bigint NOT NULL,
  failed bigint NOT NULL,
  exhausted bigint NOT NULL,
  CONSTRAINT webhook_delivery_counts_pkey PRIMARY KEY (endpoint_id, period)
) WITH (fillfactor=50);
COMMENT ON TABLE webhook_delivery_counts IS 'A row is the number of deliveries of one endpoint in ten minutes, by result.';

-- Mails

CREATE TABLE mails (
  id text NOT NULL,
  kind text NOT NULL,
  license_id text,
  recipient_hash bytea NOT NULL,
  content_sealed bytea NOT NULL,
  attempts integer DEFAULT 0 NOT NULL,
  due_at timestamp with time zone NOT NULL,
  leased_until timestamp with time zone,
  expires_at timestamp with time zone NOT NULL,
  created_at timestamp with time zone NOT NULL,
  CONSTRAINT mails_pkey PRIMARY KEY (id)
) WITH (fillfactor=80);
COMMENT ON TABLE mails IS 'A row is a mail that waits to be sent, at most a day. Its address, names and values are encrypted under the master key.';
CREATE INDEX mails_due ON mails USING btree (due_at, id);
CREATE INDEX mails_expiring ON mails USING btree (expires_at);

CREATE TABLE mail_counts (
  period timestamp with time zone NOT NULL,
  sent integer DEFAULT 0 NOT NULL,
  failed integer DEFAULT 0 NOT NULL,
  given_up integer DEFAULT 0 NOT NULL,
  last_success_at timestamp with time zone,
  last_failure_at timestamp with time zone,
  last_failure text,
  CONSTRAINT mail_counts_pkey PRIMARY KEY (period)
);
COMMENT ON TABLE mail_counts IS 'A row is ten minutes with attempts to send mails.';

-- Bulk jobs

CREATE TABLE bulk_jobs (
  id text NOT NULL,
  action text NOT NULL,
  filter jsonb,
  parameters jsonb NOT NULL,
  dry_run boolean NOT NULL,
  reason text,
  status text NOT NULL,
  matched integer NOT NULL,
  "position" integer DEFAULT 0 NOT NULL,
  changed integer DEFAULT 0 NOT NULL,
  unchanged integer DEFAULT 0 NOT NULL,
  refused integer DEFAULT 0 NOT NULL,
  failure text,
  product_ids text[],
  actor_type text NOT NULL,
  actor_id text NOT NULL,
  request_id text NOT NULL,
  ip_address text,
  attempts integer DEFAULT 0 NOT NULL,
  leased_until timestamp with time zone,
  created_at timestamp with time zone NOT NULL,
  updated_at timestamp with time zone NOT NULL,
  ended_at timestamp with time zone,
  actor_name text,
  CONSTRAINT bulk_jobs_pkey PRIMARY KEY (id),
  CONSTRAINT bulk_jobs_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'running'::text, 'completed'::text, 'canceled'::text, 'failed'::text])))
) WITH (fillfactor=50);
COMMENT ON TABLE bulk_jobs IS 'A row is a change of many licenses. Position is the number of licenses that it has gone through.';
CREATE INDEX bulk_jobs_created ON bulk_jobs USING btree (created_at, id);
CREATE INDEX bulk_jobs_open ON bulk_jobs USING btree (id) WHERE (status = ANY (ARRAY['pending'::text, 'running'::text]));

CREATE TABLE bulk_job_parts (
  job_id text NOT NULL,
  start integer NOT NULL,
  license_ids text[] NOT NULL,
  CONSTRAINT bulk_job_parts_pkey PRIMARY KEY (job_id, start),
  CONSTRAINT bulk_job_parts_job_id_fkey FOREIGN KEY (job_id) REFERENCES bulk_jobs(id) ON DELETE CASCADE
);
COMMENT ON TABLE bulk_job_parts IS 'A row is a part of the licenses that matched when the job was created. Start is the position of the first one.';

CREATE TABLE bulk_job_refusals (
  job_id text NOT NULL,
  license_id text NOT NULL,
  code text NOT NULL,
  message text NOT NULL,
  created_at timestamp with time zone NOT NULL,
  CONSTRAINT bulk_job_refusals_pkey PRIMARY KEY (job_id, created_at, license_id),
  CONSTRAINT bulk_job_refusals_job_id_fkey FOREIGN KEY (job_id) REFERENCES bulk_jobs(id) ON DELETE CASCADE
);
COMMENT ON TABLE bulk_job_refusals IS 'A row is a license that a job could not change, and why.';

-- The customer's page

CREATE TABLE portal_sessions (
  id text NOT NULL,
  token_hash bytea NOT NULL,
  license_id text,
  key_hash bytea,
  address text,
  created_at timestamp with time zone NOT NULL,
  expires_at timestamp with time zone NOT NULL,
  CONSTRAINT portal_sessions_pkey PRIMARY KEY (id),
  CONSTRAINT portal_sessions_check CHECK ((((license_id IS NULL) = (key_hash IS NULL)) AND ((license_id IS NULL) <> (address IS NULL)))),
  CONSTRAINT portal_sessions_token_hash_key UNIQUE (token_hash)
);
COMMENT ON TABLE portal_sessions IS 'A row is a session of the customer''s page: of a license, by its key, or of the licenses of an e-mail address.';
CREATE INDEX portal_sessions_address ON portal_sessions USING btree (address) WHERE (address IS NOT NULL);
CREATE INDEX portal_sessions_ended ON portal_sessions USING btree (expires_at);

CREATE TABLE portal_links (
  token_hash bytea NOT NULL,
  address text NOT NULL,
  expires_at timestamp with time zone NOT NULL,
  CONSTRAINT portal_links_pkey PRIMARY KEY (token_hash)
);
COMMENT ON TABLE portal_links IS 'A row is a link that was sent to an e-mail address and not used yet.';
CREATE INDEX portal_links_address ON portal_links USING btree (address, expires_at);
CREATE INDEX portal_links_ended ON portal_links USING btree (expires_at);

-- Report exports

CREATE TABLE report_exports (
  id text NOT NULL,
  report_kind text NOT NULL,
  format text NOT NULL,
  status text NOT NULL,
  filters jsonb NOT NULL,
  digest text DEFAULT ''::text NOT NULL,
  artifact_digest text DEFAULT ''::text NOT NULL,
  content_type text NOT NULL,
  size_bytes bigint,
  failure text,
  created_by text NOT NULL,
  generated_at timestamp with time zone NOT NULL,
  ledger_last bigint NOT NULL,
  collected bigint DEFAULT 0 NOT NULL,
  rows_done bigint DEFAULT 0 NOT NULL,
  chunks_done integer DEFAULT 0 NOT NULL,
  attempts smallint DEFAULT 0 NOT NULL,
  leased_until timestamp with time zone,
  created_at timestamp with time zone NOT NULL,
  updated_at timestamp with time zone NOT NULL,
  product_ids text[],
  erased_at timestamp with time zone,
  created_by_name text,
  CONSTRAINT report_exports_pkey PRIMARY KEY (id),
  CONSTRAINT report_exports_format_check CHECK ((format = ANY (ARRAY['json'::text, 'csv'::text, 'pdf'::text]))),
  CONSTRAINT report_exports_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'processing'::text, 'completed'::text, 'failed'::text])))
);
COMMENT ON TABLE report_exports IS 'A row is a requested export of a report, with its progress and result.';
CREATE INDEX report_exports_age ON report_exports USING btree (created_at);
CREATE INDEX report_exports_kind ON report_exports USING btree (report_kind, id);
CREATE INDEX report_exports_report ON report_exports USING btree (report_kind, created_at, id);
CREATE INDEX report_exports_status ON report_exports USING btree (status, created_at, id);
CREATE INDEX report_exports_waiting ON report_exports USING btree (created_at, id) WHERE (status = ANY (ARRAY['pending'::text, 'processing'::text]));

CREATE TABLE report_export_chunks (
  export_id text NOT NULL,
  part text NOT NULL,
  ordinal integer NOT NULL,
  bytes bytea NOT NULL,
  plain_size integer,
  CONSTRAINT report_export_chunks_pkey PRIMARY KEY (export_id, part, ordinal),
  CONSTRAINT report_export_chunks_export_id_fkey FOREIGN KEY (export_id) REFERENCES report_exports(id) ON DELETE CASCADE,
  CONSTRAINT report_export_chunks_part_check CHECK ((part = ANY (ARRAY['snapshot'::text, 'artifact'::text]))),
  CONSTRAINT report_export_chunks_plain_size_check CHECK ((plain_size > 0))
);
COMMENT ON TABLE report_export_chunks IS 'A row is a part of the bytes of an export.';
ALTER TABLE report_export_chunks ALTER COLUMN bytes SET STORAGE EXTERNAL;

-- Overview

CREATE TABLE overview_counts (
  product_id text NOT NULL,
  unit text NOT NULL,
  bucket_start timestamp with time zone NOT NULL,
  kind text NOT NULL,
  code text NOT NULL,
  count bigint NOT NULL,
  CONSTRAINT overview_counts_pkey PRIMARY KEY (product_id, unit, bucket_start, kind, code),
  CONSTRAINT overview_counts_kind_check CHECK ((kind = ANY (ARRAY['created'::text, 'expired'::text, 'activated'::text, 'refused'::text, 'seats'::text, 'maintenance_renewed'::text, 'maintenance_expired'::text]))),
  CONSTRAINT overview_counts_unit_check CHECK ((unit = ANY (ARRAY['quarter'::text, 'day'::text])))
) WITH (fillfactor=80);
COMMENT ON TABLE overview_counts IS 'A row is how often something happened in a quarter of an hour or a day of UTC, in one product or, with an empty product_id, in all.';
CREATE INDEX overview_counts_age ON overview_counts USING btree (unit, bucket_start);

CREATE TABLE overview_progress (
  "only" boolean DEFAULT true NOT NULL,
  event_sequence bigint NOT NULL,
  activity_sequence bigint NOT NULL,
  counted_at timestamp with time zone,
  sampled_from timestamp with time zone,
  sampled_at timestamp with time zone,
  CONSTRAINT overview_progress_pkey PRIMARY KEY ("only"),
  CONSTRAINT overview_progress_only_check CHECK ("only")
) WITH (fillfactor=10);
COMMENT ON TABLE overview_progress IS 'The only row is up to which event and refusal overview_counts has counted, and the times of license_numbers and license_samples.';

CREATE TABLE license_numbers (
  product_id text NOT NULL,
  active bigint NOT NULL,
  expiring bigint NOT NULL,
  seats bigint NOT NULL,
  CONSTRAINT license_numbers_pkey PRIMARY KEY (product_id)
) WITH (fillfactor=50);
COMMENT ON TABLE license_numbers IS 'A row is the last count of active and expiring licenses and of taken seats of one product, or with an empty product_id of all.';

CREATE TABLE license_samples (
  product_id text NOT NULL,
  at timestamp with time zone NOT NULL,
  active bigint NOT NULL,
  expiring bigint NOT NULL,
  CONSTRAINT license_samples_pkey PRIMARY KEY (product_id, at)
);
COMMENT ON TABLE license_samples IS 'A row is the number of active and of expiring licenses of one product, or with an empty product_id of all, from an instant until the next row.';

-- Erasures

CREATE TABLE erasures (
  customer_id text NOT NULL,
  phase text NOT NULL,
  "position" text NOT NULL,
  terms text[] NOT NULL,
  actor_type text NOT NULL,
  actor_id text NOT NULL,
  request_id text NOT NULL,
  ip_address text,
  requested_at timestamp with time zone NOT NULL,
  attempts integer DEFAULT 0 NOT NULL,
  retry_at timestamp with time zone,
  changed_partitions text[] DEFAULT '{}'::text[] NOT NULL,
  actor_name text,
  CONSTRAINT erasures_pkey PRIMARY KEY (customer_id)
);
COMMENT ON TABLE erasures IS 'A row is an erasure of a customer that is not finished: where it continues, and the names and addresses that it removes.';
CREATE INDEX erasures_requested ON erasures USING btree (requested_at, customer_id);

CREATE TABLE erasure_records (
  customer_id text NOT NULL,
  resource_id text NOT NULL,
  terms text[] NOT NULL,
  CONSTRAINT erasure_records_pkey PRIMARY KEY (customer_id, resource_id),
  CONSTRAINT erasure_records_customer_id_fkey FOREIGN KEY (customer_id) REFERENCES erasures(customer_id) ON DELETE CASCADE
);
COMMENT ON TABLE erasure_records IS 'A row is a license, order or subscription whose events and exports an erasure still has to change.';

CREATE TABLE erasure_progress (
  "only" boolean DEFAULT true NOT NULL,
  changes bigint NOT NULL,
  CONSTRAINT erasure_progress_pkey PRIMARY KEY ("only"),
  CONSTRAINT erasure_progress_only_check CHECK ("only")
);
COMMENT ON TABLE erasure_progress IS 'The only row counts how often an erasure has changed recorded data, so that no export keeps what was read before.';

CREATE FUNCTION refuse_erasing_customer()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
DECLARE is_erasing boolean;
BEGIN
  SELECT erasing INTO is_erasing FROM customers WHERE id = NEW.customer_id FOR KEY SHARE;
  IF is_erasing THEN
    RAISE EXCEPTION USING ERRCODE = 'LS001', MESSAGE = 'the customer is being erased';
  END IF;
  RETURN NULL;
END $function$;
CREATE TRIGGER licenses_erasing_insert AFTER INSERT ON licenses FOR EACH ROW WHEN ((new.customer_id IS NOT NULL)) EXECUTE FUNCTION refuse_erasing_customer();
CREATE TRIGGER licenses_erasing_update AFTER UPDATE OF customer_id, customer_name, customer_email ON licenses FOR EACH ROW WHEN (((new.customer_id IS NOT NULL) AND ((new.customer_id IS DISTINCT FROM old.customer_id) OR ((new.customer_name IS NOT NULL) AND (new.customer_name IS DISTINCT FROM old.customer_name)) OR ((new.customer_email IS NOT NULL) AND (new.customer_email IS DISTINCT FROM old.customer_email))))) EXECUTE FUNCTION refuse_erasing_customer();

CREATE FUNCTION refuse_erasing_link()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF current_setting('licensing.erasing', true) = 'on' THEN
    RETURN NULL;
  END IF;
  PERFORM FROM customers WHERE id IN (NEW.customer_id, CASE WHEN TG_OP = 'UPDATE' THEN OLD.customer_id END)
    ORDER BY id FOR KEY SHARE;
  IF EXISTS (SELECT FROM customers WHERE erasing
      AND id IN (NEW.customer_id, CASE WHEN TG_OP = 'UPDATE' THEN OLD.customer_id END)) THEN
    RAISE EXCEPTION USING ERRCODE = 'LS001', MESSAGE = 'the customer is being erased';
  END IF;
  RETURN NULL;
END $function$;
CREATE TRIGGER orders_erasing_insert AFTER INSERT ON orders FOR EACH ROW WHEN ((new.customer_id IS NOT NULL)) EXECUTE FUNCTION refuse_erasing_link();
CREATE TRIGGER orders_erasing_update AFTER UPDATE OF customer_id, metadata ON orders FOR EACH ROW WHEN (((new.customer_id IS DISTINCT FROM old.customer_id) OR ((new.customer_id IS NOT NULL) AND (new.metadata IS DISTINCT FROM old.metadata)))) EXECUTE FUNCTION refuse_erasing_link();
CREATE TRIGGER subscriptions_erasing_insert AFTER INSERT ON subscriptions FOR EACH ROW WHEN ((new.customer_id IS NOT NULL)) EXECUTE FUNCTION refuse_erasing_link();
CREATE TRIGGER subscriptions_erasing_update AFTER UPDATE OF customer_id, metadata ON subscriptions FOR EACH ROW WHEN (((new.customer_id IS DISTINCT FROM old.customer_id) OR ((new.customer_id IS NOT NULL) AND (new.metadata IS DISTINCT FROM old.metadata)))) EXECUTE FUNCTION refuse_erasing_link();

-- Activities

CREATE TABLE refusals (
  activity_sequence bigint NOT NULL,
  occurred_at timestamp with time zone NOT NULL,
  action text NOT NULL,
  license_id text NOT NULL,
  device_id text,
  feature_code text,
  code text NOT NULL,
  status_code smallint NOT NULL,
  request_id text NOT NULL,
  ip_address text,
  CONSTRAINT refusals_pkey PRIMARY KEY (activity_sequence)
);
COMMENT ON TABLE refusals IS 'A row is a runtime call that was refused after its license was known; it holds no key, token or binding.';
CREATE INDEX refusals_action ON refusals USING btree (action, activity_sequence DESC);
CREATE INDEX refusals_age ON refusals USING btree (occurred_at);
CREATE INDEX refusals_license ON refusals USING btree (license_id, activity_sequence DESC);
CREATE INDEX refusals_request ON refusals USING btree (request_id, activity_sequence DESC);

CREATE TABLE activity_offsets (
  after_sequence bigint NOT NULL,
  refusals_total bigint NOT NULL,
  activity_sequence bigint NOT NULL,
  CONSTRAINT activity_offsets_pkey PRIMARY KEY (after_sequence),
  CONSTRAINT activity_offsets_activity_key UNIQUE (activity_sequence)
);
COMMENT ON TABLE activity_offsets IS 'A row is a batch of refusals between two events: the place of a later event in the feed is its sequence plus refusals_total of the last row before it.';

CREATE TABLE event_spans (
  last_sequence bigint NOT NULL,
  first_sequence bigint NOT NULL,
  first_at timestamp with time zone NOT NULL,
  last_at timestamp with time zone NOT NULL,
  CONSTRAINT event_spans_pkey PRIMARY KEY (last_sequence)
);
COMMENT ON TABLE event_spans IS 'A row is a range of events with its first and last time, which finds a period without an index that every event would pay for.';

CREATE TABLE license_validations (
  license_id text NOT NULL,
  hour timestamp with time zone NOT NULL,
  validations bigint NOT NULL,
  refused bigint NOT NULL,
  CONSTRAINT license_validations_pkey PRIMARY KEY (license_id, hour)
) WITH (fillfactor=80);
COMMENT ON TABLE license_validations IS 'A row is the number of validations of one license in one hour.';
CREATE INDEX license_validations_age ON license_validations USING btree (hour);

CREATE TABLE handovers (
  writer text NOT NULL,
  batch bigint NOT NULL,
  written_at timestamp with time zone NOT NULL,
  CONSTRAINT handovers_pkey PRIMARY KEY (writer)
);
COMMENT ON TABLE handovers IS 'A row is the last batch that a buffered writer has committed, so that a batch whose commit was not confirmed is not written twice.';

-- API keys

CREATE TABLE api_keys (
  id text NOT NULL,
  name text NOT NULL,
  key_prefix text NOT NULL,
  token_hash bytea NOT NULL,
  scopes text[] NOT NULL,
  allowed_cidrs text[] NOT NULL,
  is_active boolean NOT NULL,
  expires_at timestamp with time zone,
  last_used_at timestamp with time zone,
  revoked_at timestamp with time zone,
  created_at timestamp with time zone NOT NULL,
  is_bootstrap boolean DEFAULT false NOT NULL,
  token_sealed bytea,
  product_ids text[],
  limited_scopes text[],
  CONSTRAINT api_keys_pkey PRIMARY KEY (id),
  CONSTRAINT api_keys_product_ids_check CHECK ((((product_ids IS NULL) = (limited_scopes IS NULL)) AND ((product_ids IS NULL) OR ((cardinality(product_ids) >= 1) AND (cardinality(product_ids) <= 100) AND (scopes = '{}'::text[]) AND (NOT ('admin'::text = ANY (limited_scopes))) AND (NOT is_bootstrap))))),
  CONSTRAINT api_keys_token_hash_key UNIQUE (token_hash),
  CONSTRAINT api_keys_token_sealed_check CHECK (((token_sealed IS NULL) OR is_bootstrap))
);
COMMENT ON TABLE api_keys IS 'A row is a key to the management API; a revoked key keeps its row.';
CREATE INDEX api_keys_active_page ON api_keys USING btree (is_active, created_at DESC, id DESC) WHERE (revoked_at IS NULL);
CREATE UNIQUE INDEX api_keys_bootstrap ON api_keys USING btree (is_bootstrap) WHERE is_bootstrap;
CREATE INDEX api_keys_page ON api_keys USING btree (created_at DESC, id DESC) WHERE (revoked_at IS NULL);

-- Idempotency

CREATE FUNCTION answered_license(body bytea)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE STRICT
AS $function$
  SELECT substring(convert_from(body, 'UTF8') FROM '"id":"(lic_[0-9A-Za-z]+)"')
$function$;

CREATE TABLE idempotent_answers (
  scope bytea NOT NULL,
  body_hash bytea NOT NULL,
  status smallint NOT NULL,
  content_type text,
  body bytea NOT NULL,
  sealed boolean NOT NULL,
  expires_at timestamp with time zone,
  created_at timestamp with time zone NOT NULL,
  CONSTRAINT idempotent_answers_pkey PRIMARY KEY (scope)
);
COMMENT ON TABLE idempotent_answers IS 'A row is the response to a request with an Idempotency-Key, written in the transaction of its change and repeated when the request is.';
CREATE INDEX idempotent_answers_expiry ON idempotent_answers USING btree (expires_at) WHERE (expires_at IS NOT NULL);
CREATE INDEX idempotent_answers_license ON idempotent_answers USING btree (answered_license(body)) WHERE (NOT sealed);

-- Signing keys

CREATE TABLE signing_keys (
  kid text NOT NULL,
  algorithm text NOT NULL,
  public_key bytea NOT NULL,
  private_key_sealed bytea NOT NULL,
  status text NOT NULL,
  created_at timestamp with time zone NOT NULL,
  retired_at timestamp with time zone,
  CONSTRAINT signing_keys_pkey PRIMARY KEY (kid),
  CONSTRAINT signing_keys_status_check CHECK ((status = ANY (ARRAY['active'::text, 'retired'::text])))
);
COMMENT ON TABLE signing_keys IS 'A row is a key that signs runtime responses, its private half sealed under the master key.';
CREATE UNIQUE INDEX signing_keys_active ON signing_keys USING btree (status) WHERE (status = 'active'::text);

-- Journal

CREATE TABLE journals (
  id text NOT NULL,
  last_group bigint NOT NULL,
  written_at timestamp with time zone NOT NULL,
  CONSTRAINT journals_pkey PRIMARY KEY (id)
) WITH (fillfactor=10);
COMMENT ON TABLE journals IS 'A row is the last group commit of one node''s journal, which tells after a lost connection whether the group was committed.';

CREATE TABLE nodes (
  id text NOT NULL,
  epoch text NOT NULL,
  version text NOT NULL,
  address text,
  started_at timestamp with time zone NOT NULL,
  heard_at timestamp with time zone NOT NULL,
  CONSTRAINT nodes_pkey PRIMARY KEY (id)
) WITH (fillfactor=50);
COMMENT ON TABLE nodes IS 'A row is a node, with its last sign of life; removed when the node stops, or an hour after its last sign.';

CREATE FUNCTION demand(holds boolean, state text, message text)
 RETURNS boolean
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF holds THEN RETURN true; END IF;
  RAISE EXCEPTION USING ERRCODE = state, MESSAGE = message;
END $function$;

-- Cluster

CREATE TABLE cluster_runners (
  machine_id integer GENERATED BY DEFAULT AS IDENTITY NOT NULL,
  address character varying(255) NOT NULL,
  runner text NOT NULL,
  healthy boolean DEFAULT true NOT NULL,
  last_heartbeat timestamp without time zone DEFAULT now() NOT NULL,
  CONSTRAINT cluster_runners_pkey PRIMARY KEY (machine_id),
  CONSTRAINT cluster_runners_address_key UNIQUE (address)
) WITH (fillfactor=10);
COMMENT ON TABLE cluster_runners IS 'A row is a node that takes part in the cluster. Written by effect/cluster.';

-- Migrations

CREATE TABLE schema_migrations (
  id integer NOT NULL,
  name text NOT NULL,
  checksum text NOT NULL,
  applied_at timestamp with time zone NOT NULL,
  CONSTRAINT schema_migrations_pkey PRIMARY KEY (id)
);
COMMENT ON TABLE schema_migrations IS 'A row is a migration that this database has.';
