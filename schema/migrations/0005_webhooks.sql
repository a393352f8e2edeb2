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
