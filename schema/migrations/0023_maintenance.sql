-- The days of a pending maintenance are the license's term_days: a perpetual license has no other term.
ALTER TABLE policies ADD COLUMN maintenance_days integer,
  ADD CONSTRAINT policies_maintenance_days_check CHECK (maintenance_days >= 1);

-- For the list of licenses by maintenance_expires_at, filtered or sorted.
CREATE INDEX licenses_maintenance_page ON licenses (COALESCE(maintenance_expires_at, 'infinity'), id);
