-- How 0019_pending_feature_expiry.sql is applied to a database in use: writers continue while the rows are checked.

-- step
ALTER TABLE license_features ADD COLUMN expires_after_days integer,
  ADD CONSTRAINT license_features_expires_after_days_check CHECK (expires_after_days >= 1) NOT VALID;

-- step
ALTER TABLE license_features VALIDATE CONSTRAINT license_features_expires_after_days_check;
