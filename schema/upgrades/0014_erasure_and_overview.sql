-- How 0014_erasure_and_overview.sql is applied to a database in use: writers continue while the indexes are built.

-- step
ALTER TABLE customers
  ADD COLUMN erasing boolean DEFAULT false NOT NULL,
  ADD COLUMN erased_at timestamptz;

-- step
CREATE TABLE erasures (
  customer_id text PRIMARY KEY,
  phase text NOT NULL,
  position text NOT NULL,
  terms text[] NOT NULL,
  actor_type text NOT NULL,
  actor_id text NOT NULL,
  request_id text NOT NULL,
  ip_address text,
  requested_at timestamptz NOT NULL
);
COMMENT ON TABLE erasures IS 'A row is an erasure of a customer that is not finished: where it continues, and the names and addresses that it removes.';
CREATE INDEX erasures_requested ON erasures (requested_at, customer_id);

CREATE TABLE erasure_records (
  customer_id text NOT NULL REFERENCES erasures (customer_id) ON DELETE CASCADE,
  resource_id text NOT NULL,
  terms text[] NOT NULL,
  PRIMARY KEY (customer_id, resource_id)
);
COMMENT ON TABLE erasure_records IS 'A row is a license, order or subscription whose events and exports an erasure still has to change.';

-- step
-- Reads the customer under a lock that an erasure waits for: a license that is written before the erasure begins is found by it,
-- and one that is written later is decided again.
CREATE FUNCTION refuse_erasing_customer() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE is_erasing boolean;
BEGIN
  SELECT erasing INTO is_erasing FROM customers WHERE id = NEW.customer_id FOR KEY SHARE;
  IF is_erasing THEN
    RAISE EXCEPTION USING ERRCODE = 'LS001', MESSAGE = 'the customer is being erased';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER licenses_erasing_insert AFTER INSERT ON licenses FOR EACH ROW
  WHEN (NEW.customer_id IS NOT NULL) EXECUTE FUNCTION refuse_erasing_customer();
CREATE TRIGGER licenses_erasing_update AFTER UPDATE OF customer_id, customer_name, customer_email ON licenses FOR EACH ROW
  WHEN (NEW.customer_id IS NOT NULL AND (NEW.customer_id IS DISTINCT FROM OLD.customer_id
    OR (NEW.customer_name IS NOT NULL AND NEW.customer_name IS DISTINCT FROM OLD.customer_name)
    OR (NEW.customer_email IS NOT NULL AND NEW.customer_email IS DISTINCT FROM OLD.customer_email)))
  EXECUTE FUNCTION refuse_erasing_customer();

-- step
-- Finds the stored responses of a license's renewals.
CREATE FUNCTION answered_license(body bytea) RETURNS text
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
  SELECT substring(convert_from(body, 'UTF8') FROM '"id":"(lic_[0-9A-Za-z]+)"')
$$;

-- step
CREATE INDEX CONCURRENTLY idempotent_answers_license ON idempotent_answers (answered_license(body)) WHERE NOT sealed;

-- step
ALTER TABLE report_exports ADD COLUMN erased_at timestamptz;

-- step
CREATE INDEX CONCURRENTLY report_exports_kind ON report_exports (report_kind, id);

-- step
CREATE TABLE erasure_progress (
  "only" boolean DEFAULT true NOT NULL PRIMARY KEY CHECK ("only"),
  changes bigint NOT NULL
);
COMMENT ON TABLE erasure_progress IS 'The only row counts how often an erasure has changed recorded data, so that no export keeps what was read before.';
INSERT INTO erasure_progress (changes) VALUES (0);

-- The overview report.
CREATE TABLE overview_counts (
  product_id text NOT NULL,
  unit text NOT NULL CHECK (unit IN ('quarter', 'day')),
  bucket_start timestamptz NOT NULL,
  kind text NOT NULL CHECK (kind IN ('created', 'expired', 'activated', 'refused', 'seats')),
  code text NOT NULL,
  count bigint NOT NULL,
  PRIMARY KEY (product_id, unit, bucket_start, kind, code)
) WITH (fillfactor = 80);
COMMENT ON TABLE overview_counts IS 'A row is how often something happened in a quarter of an hour or a day of UTC, in one product or, with an empty product_id, in all.';
CREATE INDEX overview_counts_age ON overview_counts (unit, bucket_start);

CREATE TABLE license_samples (
  product_id text NOT NULL,
  at timestamptz NOT NULL,
  active bigint NOT NULL,
  expiring bigint NOT NULL,
  PRIMARY KEY (product_id, at)
);
COMMENT ON TABLE license_samples IS 'A row is the number of active and of expiring licenses of one product, or with an empty product_id of all, from an instant until the next row.';

CREATE TABLE license_numbers (
  product_id text NOT NULL PRIMARY KEY,
  active bigint NOT NULL,
  expiring bigint NOT NULL,
  seats bigint NOT NULL
) WITH (fillfactor = 50);
COMMENT ON TABLE license_numbers IS 'A row is the last count of active and expiring licenses and of taken seats of one product, or with an empty product_id of all.';

CREATE TABLE overview_progress (
  "only" boolean DEFAULT true NOT NULL PRIMARY KEY CHECK ("only"),
  event_sequence bigint NOT NULL,
  activity_sequence bigint NOT NULL,
  counted_at timestamptz,
  sampled_from timestamptz,
  sampled_at timestamptz
) WITH (fillfactor = 10);
COMMENT ON TABLE overview_progress IS 'The only row is up to which event and refusal overview_counts has counted, and the times of license_numbers and license_samples.';
INSERT INTO overview_progress (event_sequence, activity_sequence) VALUES (0, 0);

-- step
CREATE INDEX CONCURRENTLY license_states_active ON license_states (policy_id, expires_at) WHERE status = 'active';
