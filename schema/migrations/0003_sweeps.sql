-- How sweeps find what time has changed: each by a range of an index that holds nothing else, so that a pass with nothing to do
-- costs nothing, however many licenses, devices and leases there are.

ALTER TABLE licenses
  -- The expiry date that license.expiring was last recorded for, and the days before it: an edited date begins anew.
  ADD COLUMN expiring_for timestamptz,
  ADD COLUMN expiring_days smallint,
  -- No device of the license that holds a slot was heard of before this instant; NULL = since the license was made. A lower
  -- bound, moved by the heartbeat sweep alone, so that it looks at a license once in a validation interval.
  ADD COLUMN heartbeat_from timestamptz;

-- Sweeps look for what was hardly there when statistics were made, so estimates are no guide to them. Each index is on
-- expressions that no other index has, and the sweep's conditions are on these alone: no plan can choose another one. (With
-- plain columns 100,000 licenses that expired at once took 71 seconds instead of 19.)

-- What the clock moves, by policy, for grace is the policy's.
CREATE INDEX licenses_clock ON licenses ((policy_id || ' ' || status), (expires_at AT TIME ZONE 'UTC'))
  WHERE expires_at IS NOT NULL;

-- Active licenses by the notice that was given last for the date that holds; 8 = none.
CREATE INDEX licenses_expiring ON licenses (
  (CASE WHEN status <> 'active' THEN NULL WHEN expiring_for = expires_at THEN expiring_days ELSE 8 END),
  (expires_at AT TIME ZONE 'UTC')
) WHERE expires_at IS NOT NULL;

CREATE INDEX licenses_heartbeat ON licenses ((policy_id || ''), (coalesce(heartbeat_from, created_at)));

CREATE INDEX leases_lapse ON leases (expires_at, id) WHERE status = 'live';
