-- A change of a license's state writes no index of licenses any more, so the row's next version goes beside the one before in its
-- page, and none of the other indexes, the one of names among them, gets an entry either. What finds licenses by their state is a
-- table of its own: narrow rows, and few indexes.

CREATE TABLE license_states (
  status text NOT NULL,
  created_at timestamptz NOT NULL,
  license_id text NOT NULL,
  policy_id text NOT NULL,
  expires_at timestamptz,
  -- Of an active license that ends: the days of the notice that was given last for the date that holds; 8 = none.
  notice smallint,
  -- The licenses of a state, in the order in which licenses are listed.
  PRIMARY KEY (status, created_at, license_id)
);

-- The notice of a license that was given last, as above.
CREATE FUNCTION license_notice(status text, expires_at timestamptz, expiring_for timestamptz, expiring_days smallint)
  RETURNS smallint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN status <> 'active' OR expires_at IS NULL THEN NULL
    WHEN expiring_for = expires_at THEN expiring_days ELSE 8 END
$$;

-- Whatever writes a license keeps its row there, and the counts, within the same statement. A sweep that moves very many does both
-- by itself, for all of a batch at once, and says so by a setting of its transaction.
CREATE FUNCTION keep_license_state() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP <> 'INSERT' AND (TG_OP = 'DELETE' OR OLD.status <> NEW.status) THEN
    INSERT INTO kept_counts VALUES ('licenses.' || OLD.status, -1);
  END IF;
  IF TG_OP <> 'DELETE' AND (TG_OP = 'INSERT' OR OLD.status <> NEW.status) THEN
    INSERT INTO kept_counts VALUES ('licenses.' || NEW.status, 1);
  END IF;
  IF TG_OP = 'UPDATE' THEN
    UPDATE license_states SET status = NEW.status, created_at = NEW.created_at, license_id = NEW.id, policy_id = NEW.policy_id,
      expires_at = NEW.expires_at,
      notice = license_notice(NEW.status, NEW.expires_at, NEW.expiring_for, NEW.expiring_days)
    WHERE status = OLD.status AND created_at = OLD.created_at AND license_id = OLD.id;
  ELSIF TG_OP = 'DELETE' THEN
    DELETE FROM license_states WHERE status = OLD.status AND created_at = OLD.created_at AND license_id = OLD.id;
  ELSE
    INSERT INTO license_states VALUES (NEW.status, NEW.created_at, NEW.id, NEW.policy_id, NEW.expires_at,
      license_notice(NEW.status, NEW.expires_at, NEW.expiring_for, NEW.expiring_days));
  END IF;
  RETURN NULL;
END $$;

DROP TRIGGER licenses_counted ON licenses;
DROP TRIGGER licenses_recounted ON licenses;
CREATE TRIGGER licenses_state AFTER INSERT OR DELETE ON licenses FOR EACH ROW EXECUTE FUNCTION keep_license_state();
-- A group commit writes the status of every license in it; only where something changes is there anything to do.
CREATE TRIGGER licenses_restated
  AFTER UPDATE OF status, expires_at, expiring_for, expiring_days, policy_id, created_at, id ON licenses
  FOR EACH ROW WHEN (
    (OLD.status IS DISTINCT FROM NEW.status OR OLD.expires_at IS DISTINCT FROM NEW.expires_at
      OR OLD.expiring_for IS DISTINCT FROM NEW.expiring_for OR OLD.expiring_days IS DISTINCT FROM NEW.expiring_days
      OR OLD.policy_id IS DISTINCT FROM NEW.policy_id OR OLD.created_at IS DISTINCT FROM NEW.created_at
      OR OLD.id IS DISTINCT FROM NEW.id)
    AND current_setting('licensing.states_kept', true) IS DISTINCT FROM 'on'
  ) EXECUTE FUNCTION keep_license_state();

-- Nobody writes a license from the new triggers on until all of this is done.
INSERT INTO license_states (status, created_at, license_id, policy_id, expires_at, notice)
SELECT status, created_at, id, policy_id, expires_at, license_notice(status, expires_at, expiring_for, expiring_days)
FROM licenses;

-- As before, each on expressions that no other index has: no plan can choose another one.

-- What the clock moves, by policy, for grace is the policy's.
CREATE INDEX license_states_clock ON license_states ((policy_id || ' ' || status), (expires_at AT TIME ZONE 'UTC'))
  WHERE expires_at IS NOT NULL;
-- Active licenses by the notice that was given last.
CREATE INDEX license_states_notice ON license_states (notice, (expires_at AT TIME ZONE 'UTC')) WHERE notice IS NOT NULL;
-- Licenses that are written down as past their expiry, by their expiry: those that are not past it any more are at its end.
CREATE INDEX license_states_past ON license_states (
  (CASE WHEN status IN ('grace_period', 'expired') THEN expires_at AT TIME ZONE 'UTC' END)
) WHERE status IN ('grace_period', 'expired');

-- A license and its row there are joined by id and by the instant of creation, so that a list of a state has its order by either table.
-- The second of these leaves out nothing that the first has left, which estimates have to be told.
ALTER TABLE licenses ALTER COLUMN created_at SET (n_distinct = 1);
ALTER TABLE license_states ALTER COLUMN created_at SET (n_distinct = 1);

DROP INDEX licenses_clock;
DROP INDEX licenses_expiring;
DROP INDEX licenses_past;
DROP INDEX licenses_status_page;

ANALYZE licenses, license_states;
