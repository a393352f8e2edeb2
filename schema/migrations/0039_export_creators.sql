-- The name of the API key or person that requested an export, at the time.
ALTER TABLE report_exports ADD COLUMN created_by_name text;
