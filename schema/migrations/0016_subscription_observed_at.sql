-- When the other system observed what the row says: older facts do not overwrite it.
ALTER TABLE subscriptions ADD COLUMN observed_at timestamptz;
