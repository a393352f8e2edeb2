-- How 0030_expires_with_license.sql is applied to a database in use: writers continue while the rows are checked.

-- step
ALTER TABLE policy_features ADD COLUMN expires_with_license boolean,
  ADD CONSTRAINT policy_features_expires_with_license_check CHECK (expires_with_license) NOT VALID;

-- step
ALTER TABLE policy_features VALIDATE CONSTRAINT policy_features_expires_with_license_check;

-- step
ALTER TABLE license_features ADD COLUMN expires_with_license boolean,
  ADD CONSTRAINT license_features_expires_with_license_check CHECK (expires_with_license) NOT VALID;

-- step
ALTER TABLE license_features VALIDATE CONSTRAINT license_features_expires_with_license_check;
