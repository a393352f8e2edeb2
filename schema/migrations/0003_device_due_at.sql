-- Heartbeats are due at the instant that the device was promised, not at one computed from the policy of the moment.
ALTER TABLE devices
  -- Until when the last activate or validate promised the device its slot. NULL = no promise since this column exists.
  ADD COLUMN due_at timestamptz,
  -- When the device's latest offline envelope expires. The device keeps its slot until then.
  ADD COLUMN offline_expires_at timestamptz;
-- No device of the license is due before this instant: the license was refused, and each device got a whole interval when it was
-- served again.
ALTER TABLE licenses ADD COLUMN not_due_before timestamptz;
-- No device of the policy's licenses is due before this instant: heartbeats were switched on.
ALTER TABLE policies ADD COLUMN not_due_before timestamptz;
-- licenses.heartbeat_from has a new meaning: no device with a slot of the license is due before it; NULL = since the license was
-- created. The heartbeat sweep moves it, at most once in a validation interval; an earlier due instant or a reinstatement lowers
-- it. The values of before are earlier than any due instant, so they stay.

-- No device loses its slot early because of the upgrade. Existing devices have no promise yet; each has a whole interval, and as
-- long as an offline envelope that was issued before lasts. The day beyond that is for nodes of the previous version, which still
-- run and store no promises.
UPDATE policies SET not_due_before = current_setting('licensing.migrated_at')::timestamptz + interval '1 day' + greatest(
  make_interval(mins => validation_interval_minutes, secs => 30),
  CASE WHEN allow_offline_activation THEN make_interval(days => offline_grace_days) END
);
UPDATE licenses l SET not_due_before = l.starts_at + make_interval(mins => p.validation_interval_minutes, secs => 30)
FROM policies p WHERE p.id = l.policy_id AND l.starts_at > current_setting('licensing.migrated_at')::timestamptz;
