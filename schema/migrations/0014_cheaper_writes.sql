-- A heartbeat moves the end of a lease, which no index holds any more: the row's next version goes beside it in its page, and no
-- index is written.

-- The lease does not end before this instant; NULL = since it was checked out. A lower bound that heartbeats leave alone. The
-- sweep moves it when it comes to a lease that lives on, so that it looks at a lease once in a timeout.
ALTER TABLE leases ADD COLUMN sweep_at timestamptz;
UPDATE leases SET sweep_at = expires_at WHERE status = 'live';

CREATE INDEX leases_sweep ON leases ((coalesce(sweep_at, checked_out_at)), id) WHERE status = 'live';
DROP INDEX leases_lapse;

-- When the next lease of a license may end.
DROP INDEX leases_live;
CREATE INDEX leases_live ON leases (license_id, (coalesce(sweep_at, checked_out_at))) WHERE status = 'live';

-- Leases are listed while they live, and only then.
CREATE INDEX leases_live_page ON leases (license_id, checked_out_at DESC, id DESC) WHERE status = 'live';
DROP INDEX leases_page;

-- Room for the versions of a lease that is checked out, heard of and given back within a moment.
ALTER TABLE leases SET (fillfactor = 50);

-- Keys that end with a sequence number occur once. Looking for equal ones before each split of a page is in vain.
ALTER INDEX events_actor_type SET (deduplicate_items = off);
ALTER INDEX events_of_license SET (deduplicate_items = off);
ALTER INDEX events_resource SET (deduplicate_items = off);
ALTER INDEX events_resource_type SET (deduplicate_items = off);
ALTER INDEX events_type SET (deduplicate_items = off);
ALTER INDEX usage_ledger_license SET (deduplicate_items = off);
