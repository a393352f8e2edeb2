-- Sorts and filters of lists: each has an index.
CREATE INDEX customers_name_page ON customers (name, id);
CREATE INDEX customers_metadata ON customers USING gin (metadata jsonb_path_ops) WITH (fastupdate = off) WHERE metadata <> '{}';
-- Addresses compare without case.
CREATE INDEX customers_address_page ON customers (lower(email), created_at DESC, id DESC) WHERE email IS NOT NULL;
DROP INDEX customers_email_page;

CREATE INDEX product_versions_released_page ON product_versions (product_id, released_at, id);
CREATE INDEX subscriptions_end_page ON subscriptions (product_id, current_period_end, id);

-- A license without expiry is sorted as one that expires after all others.
CREATE INDEX licenses_expiry_page ON licenses (COALESCE(expires_at, 'infinity'), id);
CREATE INDEX licenses_metadata ON licenses USING gin (metadata jsonb_path_ops) WITH (fastupdate = off) WHERE metadata <> '{}';

-- Devices of all licenses. None of these contains a column that a validation writes.
CREATE FUNCTION fingerprint_hash(fingerprint text) RETURNS bytea
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
  SELECT sha256(convert_to(fingerprint, 'UTF8'))
$$;
CREATE INDEX devices_created_page ON devices (created_at DESC, id DESC);
CREATE INDEX devices_hostname_page ON devices (lower(hostname), created_at DESC, id DESC) WHERE hostname IS NOT NULL;
CREATE INDEX devices_fingerprint_page ON devices (fingerprint_hash(fingerprint), created_at DESC, id DESC)
  WHERE fingerprint IS NOT NULL;
CREATE INDEX devices_container_page ON devices (created_at DESC, id DESC) WHERE binding_kind = 'container';
CREATE INDEX devices_ended_page ON devices (listed_as, created_at DESC, id DESC) WHERE listed_as <> 'either';

-- The search over all records.
CREATE INDEX customers_search ON customers USING gin (search_grams(search_text(name, email))) WITH (fastupdate = off);
CREATE INDEX subscriptions_external_id ON subscriptions (external_id, created_at DESC, id DESC);
CREATE INDEX orders_external_id ON orders (external_id, created_at DESC, id DESC);
