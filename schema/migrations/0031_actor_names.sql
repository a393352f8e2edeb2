-- The name of the API key or person at the time, of management events, ledger rows, bulk jobs and erasures.
ALTER TABLE event_log ADD COLUMN actor_name text;
ALTER TABLE usage_ledger ADD COLUMN actor_name text;
ALTER TABLE bulk_jobs ADD COLUMN actor_name text;
ALTER TABLE erasures ADD COLUMN actor_name text;

CREATE OR REPLACE VIEW events AS
SELECT sequence, event_type, actor_type, actor_id, resource_type, resource_id, ip_address, metadata, created_at, actor_name
FROM (
  SELECT sequence, event_type, actor_type, actor_id, resource_type, resource_id, ip_address, metadata, created_at, actor_name
  FROM event_log
  UNION ALL
  SELECT event_sequence AS sequence, 'usage.consumed' AS event_type, 'license' AS actor_type, actor_id,
    'license' AS resource_type, license_id AS resource_id, event_ip_address AS ip_address,
    jsonb_strip_nulls(jsonb_build_object('feature_id', feature_id, 'feature_code', event_feature_code, 'amount', amount,
      'event_id', event_id, 'balance_after', balance_after, 'max_after', max_after, 'device_id', device_id,
      'request_id', request_id)) AS metadata,
    occurred_at AS created_at, NULL AS actor_name
  FROM usage_ledger
) AS event
WHERE sequence IS NOT NULL;

CREATE OR REPLACE FUNCTION event_numbered(number bigint) RETURNS SETOF events LANGUAGE sql STABLE AS $$
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
$$;
