-- The overview also counts renewed and ended maintenance.
ALTER TABLE overview_counts DROP CONSTRAINT overview_counts_kind_check,
  ADD CONSTRAINT overview_counts_kind_check CHECK (kind IN ('created', 'expired', 'activated', 'refused', 'seats', 'maintenance_renewed', 'maintenance_expired'));
