-- A feature without a date of its own, which ends with its license's access: true or NULL.
ALTER TABLE policy_features ADD COLUMN expires_with_license boolean,
  ADD CONSTRAINT policy_features_expires_with_license_check CHECK (expires_with_license);
ALTER TABLE license_features ADD COLUMN expires_with_license boolean,
  ADD CONSTRAINT license_features_expires_with_license_check CHECK (expires_with_license);
