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
