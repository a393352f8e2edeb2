-- Borrowed seats, devices that customers deactivate themselves, and what signed payloads show of a license's owner.
ALTER TABLE policies ADD COLUMN borrow_days_max integer,
  ADD COLUMN self_deactivations_per_month integer NOT NULL DEFAULT 3,
  ADD COLUMN hold_offline_slots boolean NOT NULL DEFAULT false,
  ADD COLUMN show_licensee boolean NOT NULL DEFAULT false,
  ADD COLUMN show_metadata text[] NOT NULL DEFAULT '{}',
  ADD CONSTRAINT policies_borrow_days_max_check CHECK (borrow_days_max >= 0),
  ADD CONSTRAINT policies_self_deactivations_per_month_check CHECK (self_deactivations_per_month >= 0);

-- self_deactivated_at has the instants in milliseconds. No slot of a deactivated device is held from slots_held_until on.
ALTER TABLE licenses ADD COLUMN self_deactivations_per_month integer,
  ADD COLUMN self_deactivated_at jsonb,
  ADD COLUMN slots_held_until timestamptz;

ALTER TABLE devices ADD COLUMN slot_held_until timestamptz;

ALTER TABLE leases ADD COLUMN borrowed_until timestamptz;
