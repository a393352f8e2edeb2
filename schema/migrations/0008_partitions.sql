-- event_log and usage_ledger become tables that are partitioned by ranges of their numbers, so that old rows can be removed by
-- detaching a partition, and so that no index grows without limit. No row is read or moved: each existing table becomes the only
-- partition, for all numbers. A worker gives it an end later, without blocking writers.

-- For this lock, which blocks no reader or writer, PostgreSQL ends an automatic VACUUM of the tables.
LOCK TABLE usage_ledger, event_log IN SHARE UPDATE EXCLUSIVE MODE;

-- Readers and writers wait for this transaction from here on; it takes milliseconds. If a long report holds a table, the lock is
-- given up after a moment and tried again, so that writers do not queue behind it.
DO $lock$
BEGIN
  LOOP
    BEGIN
      PERFORM set_config('lock_timeout', '200ms', true);
      LOCK TABLE usage_ledger, event_log, events IN ACCESS EXCLUSIVE MODE;
      EXIT;
    EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
      PERFORM pg_sleep(0.5);
    END;
  END LOOP;
  PERFORM set_config('lock_timeout', '0', true);
END $lock$;

DROP VIEW events;

ALTER TABLE event_log RENAME TO event_log_from_1;
ALTER INDEX events_pkey RENAME TO event_log_from_1_pkey;
ALTER INDEX events_type RENAME TO event_log_from_1_type;
ALTER INDEX events_resource RENAME TO event_log_from_1_resource;
ALTER INDEX events_resource_type RENAME TO event_log_from_1_resource_type;
ALTER INDEX events_actor_type RENAME TO event_log_from_1_actor_type;
ALTER INDEX events_of_license RENAME TO event_log_from_1_of_license;

CREATE TABLE event_log (LIKE event_log_from_1 INCLUDING DEFAULTS INCLUDING CONSTRAINTS, CONSTRAINT events_pkey PRIMARY KEY (sequence))
  PARTITION BY RANGE (sequence);
COMMENT ON TABLE event_log IS 'A row is an event that is not a row of usage_ledger.';
COMMENT ON TABLE event_log_from_1 IS NULL;
CREATE INDEX events_type ON event_log (event_type, sequence DESC) WITH (deduplicate_items = off);
CREATE INDEX events_resource ON event_log (resource_id, sequence DESC) WITH (deduplicate_items = off);
CREATE INDEX events_resource_type ON event_log (resource_type, sequence DESC) WITH (deduplicate_items = off);
CREATE INDEX events_actor_type ON event_log (actor_type, sequence DESC) WITH (deduplicate_items = off);
CREATE INDEX events_of_license ON event_log ((metadata ->> 'license_id'), sequence DESC) WITH (deduplicate_items = off)
  WHERE resource_type IN ('device', 'lease');
-- The bounds need no proof beyond NOT NULL, so the rows are not read.
ALTER TABLE event_log ATTACH PARTITION event_log_from_1 FOR VALUES FROM (MINVALUE) TO (MAXVALUE);

ALTER TABLE usage_ledger RENAME TO usage_ledger_from_1;
ALTER INDEX usage_ledger_pkey RENAME TO usage_ledger_from_1_pkey;
ALTER INDEX usage_ledger_event_id RENAME TO usage_ledger_from_1_event_id;
ALTER INDEX usage_ledger_event RENAME TO usage_ledger_from_1_event;
ALTER INDEX usage_ledger_license_event RENAME TO usage_ledger_from_1_license_event;
ALTER INDEX usage_ledger_license RENAME TO usage_ledger_from_1_license;
ALTER INDEX usage_ledger_time RENAME TO usage_ledger_from_1_time;

CREATE TABLE usage_ledger (
  LIKE usage_ledger_from_1 INCLUDING DEFAULTS INCLUDING CONSTRAINTS, CONSTRAINT usage_ledger_pkey PRIMARY KEY (sequence)
) PARTITION BY RANGE (sequence);
COMMENT ON TABLE usage_ledger IS 'A row is a change of what a license has consumed of a feature or may consume; a consumption is at the same time its event.';
COMMENT ON TABLE usage_ledger_from_1 IS NULL;
CREATE INDEX usage_ledger_license ON usage_ledger (license_id, sequence) WITH (deduplicate_items = off);
CREATE INDEX usage_ledger_time ON usage_ledger USING brin (occurred_at) WITH (pages_per_range = 32, autosummarize = on);
ALTER TABLE usage_ledger ATTACH PARTITION usage_ledger_from_1 FOR VALUES FROM (MINVALUE) TO (MAXVALUE);

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
COMMENT ON VIEW events IS 'A row is an event: all of event_log, and the consumptions of usage_ledger.';

CREATE TABLE sequence_partitions (
  name text CONSTRAINT sequence_partitions_pkey PRIMARY KEY,
  parent text NOT NULL CONSTRAINT sequence_partitions_parent_check CHECK (parent IN ('event_log', 'usage_ledger')),
  -- Numbers from the first to below the end. NULL = the open partition, for all further numbers.
  first_sequence bigint NOT NULL,
  end_sequence bigint,
  -- A number of an event: none in the partition is below, all in earlier partitions are. NULL = not known yet.
  first_event bigint,
  -- The end that the open partition is going to have: a constraint keeps its rows below, and they are being validated.
  planned_end bigint,
  -- Since when it is a table of its own, which the service does not read, and the time of its newest event.
  detached_at timestamptz,
  newest_at timestamptz,
  CONSTRAINT sequence_partitions_first_key UNIQUE (parent, first_sequence)
);
COMMENT ON TABLE sequence_partitions IS 'A row is a partition of event_log or usage_ledger; detached ones keep their row.';
CREATE INDEX sequence_partitions_event ON sequence_partitions (parent, first_event);
INSERT INTO sequence_partitions (name, parent, first_sequence, first_event)
VALUES ('event_log_from_1', 'event_log', 1, 1), ('usage_ledger_from_1', 'usage_ledger', 1, 1);

-- Makes a table with the columns, constraints and indexes of a partition. The unique indexes on numbers of events exist on each
-- partition only, because those on the whole table would have to include its own number.
CREATE FUNCTION make_partition(parent text, name text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING INDEXES)', name, parent);
  IF parent = 'usage_ledger' THEN
    EXECUTE format('CREATE UNIQUE INDEX %I ON %I (event_sequence) WITH (deduplicate_items = off) WHERE event_sequence IS NOT NULL',
      name || '_event', name);
    EXECUTE format('CREATE UNIQUE INDEX %I ON %I (license_id, event_sequence) WITH (deduplicate_items = off) '
      'WHERE event_sequence IS NOT NULL', name || '_license_event', name);
  END IF;
END $$;

-- The event with a number, if it exists. Of the ledger only the partition is searched that can have it.
CREATE FUNCTION event_numbered(number bigint) RETURNS SETOF events LANGUAGE sql STABLE AS $$
  SELECT event.sequence, event.event_type, event.actor_type, event.actor_id, event.resource_type, event.resource_id,
    event.ip_address, event.metadata, event.created_at
  FROM (
    SELECT (SELECT p.first_sequence FROM sequence_partitions p
        WHERE p.parent = 'usage_ledger' AND p.first_event <= number ORDER BY p.first_event DESC LIMIT 1) AS first,
      (SELECT p.first_sequence FROM sequence_partitions p
        WHERE p.parent = 'usage_ledger' AND p.first_event > number ORDER BY p.first_event LIMIT 1) AS beyond
    OFFSET 0
  ) AS ledger CROSS JOIN LATERAL (
    SELECT l.sequence, l.event_type, l.actor_type, l.actor_id, l.resource_type, l.resource_id, l.ip_address, l.metadata,
      l.created_at
    FROM event_log l WHERE l.sequence = number
    UNION ALL
    SELECT u.event_sequence, 'usage.consumed', 'license', u.actor_id, 'license', u.license_id, u.event_ip_address,
      jsonb_strip_nulls(jsonb_build_object('feature_id', u.feature_id, 'feature_code', u.event_feature_code, 'amount', u.amount,
        'event_id', u.event_id, 'balance_after', u.balance_after, 'max_after', u.max_after, 'device_id', u.device_id,
        'request_id', u.request_id)),
      u.occurred_at
    FROM usage_ledger u
    WHERE u.event_sequence = number AND u.sequence >= ledger.first
      AND u.sequence < coalesce(ledger.beyond, 9223372036854775807)
  ) AS event
$$;

-- Event ids are unique per license for ever, also after the partition with their row is gone, and a unique index of a partitioned
-- table cannot guarantee that. So this table has all of them, as digests: of the license 32 bits, which keep the ids of a license
-- together in the index, and of the event id 96 bits, 64 of which depend on the license, too. The digests are those by which PostgreSQL places rows in hash partitions,
-- so they are the same in all versions.
CREATE TABLE usage_event_ids (
  event_digest bigint NOT NULL,
  feature_digest bigint NOT NULL,
  amount bigint NOT NULL,
  license_digest integer NOT NULL,
  event_digest_rest integer NOT NULL,
  CONSTRAINT usage_ledger_event_id PRIMARY KEY (license_digest, event_digest_rest, event_digest)
);
COMMENT ON TABLE usage_event_ids IS 'A row is an event id that a license has used, with what was counted under it; rows are never deleted.';

-- Ledger rows from before this migration whose event ids are not in usage_event_ids yet. A worker copies them and then replaces
-- the view by an empty one.
CREATE VIEW earlier_event_ids AS
SELECT NULL::bigint AS sequence, NULL::text AS license_id, NULL::text AS event_id, NULL::text AS feature_id, NULL::bigint AS amount
WHERE false;
COMMENT ON VIEW earlier_event_ids IS 'A row is an event id that is not in usage_event_ids yet.';

CREATE TABLE event_id_copy (
  "only" boolean CONSTRAINT event_id_copy_pkey PRIMARY KEY DEFAULT true CONSTRAINT event_id_copy_only_check CHECK ("only"),
  copied bigint NOT NULL,
  until bigint NOT NULL
);
COMMENT ON TABLE event_id_copy IS 'The only row, if any, is up to which ledger row event ids were copied to usage_event_ids, and up to which they must be.';

-- Copies event ids of ledger rows with numbers above `after` up to `until`.
CREATE FUNCTION copy_event_ids(after bigint, until bigint) RETURNS void LANGUAGE sql AS $$
  INSERT INTO usage_event_ids (event_digest, feature_digest, amount, license_digest, event_digest_rest)
  SELECT hashtextextended(event_id, hashtextextended(license_id, 0)), hashtextextended(feature_id, 0), amount, hashtext(license_id),
    hashtext(event_id)
  FROM usage_ledger WHERE sequence > after AND sequence <= until AND event_id IS NOT NULL
  ORDER BY 4, 5, 1
  ON CONFLICT DO NOTHING
$$;

-- What was counted under an event id of a license.
CREATE FUNCTION counted_event(license text, event text) RETURNS TABLE (feature_digest bigint, amount bigint)
  LANGUAGE sql STABLE AS $$
  SELECT used.feature_digest, used.amount FROM usage_event_ids used
  WHERE used.license_digest = hashtext(license) AND used.event_digest_rest = hashtext(event)
    AND used.event_digest = hashtextextended(event, hashtextextended(license, 0))
  UNION ALL
  SELECT hashtextextended(earlier.feature_id, 0), earlier.amount FROM earlier_event_ids earlier
  WHERE earlier.license_id = license AND earlier.event_id = event
  LIMIT 1
$$;

-- Runs once for each statement, also for those of nodes of the previous version.
CREATE FUNCTION keep_event_ids() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
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
END $$;
CREATE TRIGGER usage_ledger_event_ids AFTER INSERT ON usage_ledger REFERENCING NEW TABLE AS added
  FOR EACH STATEMENT EXECUTE FUNCTION keep_event_ids();

-- A small ledger is copied here, in a second at most.
DO $copy$
DECLARE
  last bigint := (SELECT ledger_last FROM event_sequence);
BEGIN
  IF (SELECT count(*) FROM (SELECT FROM usage_ledger LIMIT 100001) AS row) <= 100000 THEN
    PERFORM copy_event_ids(0, last);
    DROP INDEX usage_ledger_from_1_event_id;
  ELSE
    INSERT INTO event_id_copy (copied, until) VALUES (0, last);
    CREATE OR REPLACE VIEW earlier_event_ids AS
      SELECT sequence, license_id, event_id, feature_id, amount FROM usage_ledger_from_1 WHERE event_id IS NOT NULL;
  END IF;
END $copy$;

ANALYZE sequence_partitions;
