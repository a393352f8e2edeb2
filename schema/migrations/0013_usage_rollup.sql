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
