-- A consumption is written once: its row of the ledger is its event, too. What was an event of its own before stays one, and so
-- do resets and credits.

-- The event's number, what the feature was called then (codes change, features go), and where the request came from. NULL in rows
-- whose event stands in event_log. What the view below says of each of these events is held by the constraint. No query of the
-- version before knows another column by these names.
ALTER TABLE usage_ledger
  ADD COLUMN event_sequence bigint,
  ADD COLUMN event_feature_code text,
  ADD COLUMN event_ip_address text,
  ADD CONSTRAINT usage_ledger_event_check CHECK (event_sequence IS NULL OR (action = 'consume' AND actor_type = 'license'
    AND event_feature_code IS NOT NULL AND event_id IS NOT NULL AND device_id IS NOT NULL));

CREATE UNIQUE INDEX usage_ledger_event ON usage_ledger (event_sequence) WITH (deduplicate_items = off)
  WHERE event_sequence IS NOT NULL;
CREATE UNIQUE INDEX usage_ledger_license_event ON usage_ledger (license_id, event_sequence) WITH (deduplicate_items = off)
  WHERE event_sequence IS NOT NULL;

-- The events that are written as such. `events` is all of them: readers of this version and of the one before find there what they
-- have always found.
ALTER TABLE events RENAME TO event_log;

-- The condition is outside of UNION ALL, where it does not keep the two from being read in the order of their indexes.
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

-- Nodes of the version before write all events here. Nobody else does.
CREATE FUNCTION append_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO event_log (sequence, event_type, actor_type, actor_id, resource_type, resource_id, ip_address, metadata, created_at)
  VALUES (NEW.sequence, NEW.event_type, NEW.actor_type, NEW.actor_id, NEW.resource_type, NEW.resource_id, NEW.ip_address,
    NEW.metadata, NEW.created_at);
  RETURN NEW;
END $$;
CREATE TRIGGER events_appended INSTEAD OF INSERT ON events FOR EACH ROW EXECUTE FUNCTION append_event();
