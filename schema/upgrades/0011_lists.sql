-- How 0011_lists.sql is applied to a database in use: writers continue while the indexes are built.

-- step
CREATE INDEX CONCURRENTLY customers_name_page ON customers (name, id);

-- step
CREATE INDEX CONCURRENTLY customers_metadata ON customers USING gin (metadata jsonb_path_ops) WITH (fastupdate = off) WHERE metadata <> '{}';

-- step
CREATE INDEX CONCURRENTLY customers_address_page ON customers (lower(email), created_at DESC, id DESC) WHERE email IS NOT NULL;

-- step
CREATE INDEX CONCURRENTLY product_versions_released_page ON product_versions (product_id, released_at, id);

-- step
CREATE INDEX CONCURRENTLY subscriptions_end_page ON subscriptions (product_id, current_period_end, id);

-- step
CREATE INDEX CONCURRENTLY licenses_expiry_page ON licenses (COALESCE(expires_at, 'infinity'), id);

-- step
CREATE INDEX CONCURRENTLY licenses_metadata ON licenses USING gin (metadata jsonb_path_ops) WITH (fastupdate = off) WHERE metadata <> '{}';

-- step
CREATE FUNCTION fingerprint_hash(fingerprint text) RETURNS bytea
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
  SELECT sha256(convert_to(fingerprint, 'UTF8'))
$$;

-- step
CREATE INDEX CONCURRENTLY devices_created_page ON devices (created_at DESC, id DESC);

-- step
CREATE INDEX CONCURRENTLY devices_hostname_page ON devices (lower(hostname), created_at DESC, id DESC) WHERE hostname IS NOT NULL;

-- step
CREATE INDEX CONCURRENTLY devices_fingerprint_page ON devices (fingerprint_hash(fingerprint), created_at DESC, id DESC)
  WHERE fingerprint IS NOT NULL;

-- step
CREATE INDEX CONCURRENTLY devices_container_page ON devices (created_at DESC, id DESC) WHERE binding_kind = 'container';

-- step
CREATE INDEX CONCURRENTLY devices_ended_page ON devices (listed_as, created_at DESC, id DESC) WHERE listed_as <> 'either';

-- step
CREATE INDEX CONCURRENTLY customers_search ON customers USING gin (search_grams(search_text(name, email))) WITH (fastupdate = off);

-- step
CREATE INDEX CONCURRENTLY subscriptions_external_id ON subscriptions (external_id, created_at DESC, id DESC);

-- step
CREATE INDEX CONCURRENTLY orders_external_id ON orders (external_id, created_at DESC, id DESC);

-- step
DROP INDEX CONCURRENTLY customers_email_page;
