-- How 0032_maintenance_counts.sql is applied to a database in use: writers continue while the rows are checked.

-- step
ALTER TABLE overview_counts DROP CONSTRAINT overview_counts_kind_check,
  ADD CONSTRAINT overview_counts_kind_check CHECK (kind IN ('created', 'expired', 'activated', 'refused', 'seats', 'maintenance_renewed', 'maintenance_expired')) NOT VALID;

-- step
ALTER TABLE overview_counts VALIDATE CONSTRAINT overview_counts_kind_check;
