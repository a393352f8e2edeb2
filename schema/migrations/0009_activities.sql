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
