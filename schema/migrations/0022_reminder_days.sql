ALTER TABLE policies ADD COLUMN reminder_days integer[] NOT NULL DEFAULT '{7,3,1}';

-- The number 8 still means that no reminder was sent, so that no row has to change. Reminders of 8 days and more are counted one higher.
CREATE OR REPLACE FUNCTION license_notice(status text, expires_at timestamptz, expiring_for timestamptz, expiring_days smallint)
RETURNS smallint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN status <> 'active' OR expires_at IS NULL THEN NULL
    WHEN expiring_for = expires_at THEN expiring_days + (expiring_days >= 8)::integer ELSE 8 END
$$;

CREATE INDEX license_states_reminder ON license_states (policy_id, notice, (expires_at AT TIME ZONE 'UTC')) WHERE notice IS NOT NULL;
DROP INDEX license_states_notice;
