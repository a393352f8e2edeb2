-- Whether the expiry of an assigned feature was recorded, or needs no record. Expiries before this migration need none.
ALTER TABLE license_features ADD COLUMN expiry_recorded boolean NOT NULL DEFAULT false;
UPDATE license_features SET expiry_recorded = true WHERE expires_at <= current_setting('licensing.migrated_at')::timestamptz;

-- Expiries not recorded yet: for the sweep in the order of time, and for one license. The expression keeps plans of other
-- statements from choosing the first one.
CREATE INDEX license_features_expiry ON license_features ((expires_at AT TIME ZONE 'UTC'))
  WHERE enabled AND NOT expiry_recorded AND expires_at IS NOT NULL;
CREATE INDEX license_features_license_expiry ON license_features (license_id, expires_at)
  WHERE enabled AND NOT expiry_recorded AND expires_at IS NOT NULL;

-- When the event license.activation_limit_reached was last recorded.
ALTER TABLE licenses ADD COLUMN activation_limit_recorded_at timestamptz;
