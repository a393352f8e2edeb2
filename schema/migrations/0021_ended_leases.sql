-- The overview counts the most seats taken at once from the leases that ended since its last count.
CREATE INDEX leases_ended ON leases (ended_at) WHERE ended_at IS NOT NULL;
