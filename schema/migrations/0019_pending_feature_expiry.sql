-- The days of a feature that came with a policy, while the license's term waits for its first use. They become expires_at then.
ALTER TABLE license_features ADD COLUMN expires_after_days integer,
  ADD CONSTRAINT license_features_expires_after_days_check CHECK (expires_after_days >= 1);
