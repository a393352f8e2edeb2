-- How 0024_maintenance_notices.sql is applied to a database in use: the index is built while writers continue.

-- step
ALTER TABLE licenses ADD COLUMN maintenance_told_for timestamptz, ADD COLUMN maintenance_told_days smallint;

-- step
CREATE INDEX CONCURRENTLY licenses_maintenance_notice ON licenses (policy_id,
  (CASE WHEN maintenance_told_for = maintenance_expires_at THEN maintenance_told_days ELSE 366 END), maintenance_expires_at)
  WHERE maintenance_expires_at IS NOT NULL;
