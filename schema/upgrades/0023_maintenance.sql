-- How 0023_maintenance.sql is applied to a database in use: the index is built while writers continue.

-- step
ALTER TABLE policies ADD COLUMN maintenance_days integer,
  ADD CONSTRAINT policies_maintenance_days_check CHECK (maintenance_days >= 1);

-- step
CREATE INDEX CONCURRENTLY licenses_maintenance_page ON licenses (COALESCE(maintenance_expires_at, 'infinity'), id);
