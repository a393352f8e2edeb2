-- The last notice of the end of maintenance: for which end, and how many days before it; 0 = that it has ended.
ALTER TABLE licenses ADD COLUMN maintenance_told_for timestamptz, ADD COLUMN maintenance_told_days smallint;

-- 366 = no notice yet.
CREATE INDEX licenses_maintenance_notice ON licenses (policy_id,
  (CASE WHEN maintenance_told_for = maintenance_expires_at THEN maintenance_told_days ELSE 366 END), maintenance_expires_at)
  WHERE maintenance_expires_at IS NOT NULL;
