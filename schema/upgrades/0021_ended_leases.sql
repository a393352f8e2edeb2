-- How 0021_ended_leases.sql is applied to a database in use: writers continue while the index is built.

-- step
CREATE INDEX CONCURRENTLY leases_ended ON leases (ended_at) WHERE ended_at IS NOT NULL;
